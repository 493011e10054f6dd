//! The tactics: ways to probe a place, each in a file of its own with its argument why no thread can
//! meet half of it. In the manner of e9patch (Duck, Gao, Roychoudhury, *Binary Rewriting without
//! Control Flow Recovery*, PLDI 2020, §3: named tactics, tried in order), with other tactics.

pub(crate) mod held;
pub(crate) mod hop;
pub(crate) mod prefixed;
pub(crate) mod quadword;
pub(crate) mod retarget;
pub(crate) mod staying;
pub(crate) mod trap;
