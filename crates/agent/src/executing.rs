//! Functions that execute another program, which is to find everything as without us; if it will be without us, that is counted. What we have
//! put into the environment is not to take the room that its arguments need (E2BIG). Functions that
//! take its arguments one by one go on, with a list of them, as those that take a list.

use core::arch::naked_asm;
use core::ffi::c_int;

use tomo_wire::record::Field;

use crate::preloaded::{self, Copy, Handed};
use crate::signals::{execv, execve, execvp};
use crate::{armed, postponed, system, trap};

/// Has another program executed in this environment, by this process or a child, as `execute` does it in the one that it is given. If that is one in
/// which we are not loaded, it is counted. Where it has no room for its arguments because of us, it is tried once more without us. What
/// comes back is 0 if a child has been started; who executes in its own place does not come back.
pub(crate) fn hand_on(environment: usize, execute: impl Fn(usize) -> c_int) -> c_int {
    let result = start(environment, &execute);
    smaller(environment, result).map_or(result, |smaller| start(smaller.place(), &execute))
}

/// The same in the program's own environment, in which `execute` does it; where that is not to be handed on as it is, `execute_in`.
pub(crate) fn hand_on_own(
    execute: impl Fn() -> c_int,
    execute_in: impl Fn(usize) -> c_int,
) -> c_int {
    let own = preloaded::own() as usize;
    let result = start(own, |environment| match environment == own {
        true => execute(),
        false => execute_in(environment),
    });
    // By way of a function that is stood before, too, which counts it.
    smaller(own, result).map_or(result, |smaller| execute_in(smaller.place()))
}

/// Has it executed in this environment as that is, and counts it if we are not loaded there.
fn start(environment: usize, execute: impl FnOnce(usize) -> c_int) -> c_int {
    let handed = Handed::of(environment);
    let region = armed::regions().next().filter(|_| handed.is_without());
    if let Some(region) = region {
        region.common().count(Field::Without);
    }
    let result = postponed::executing(|| trap::ignoring(|| handed.give(execute)));
    if let Some(region) = region.filter(|_| result != 0) {
        region.common().take_back(Field::Without);
    }
    result
}

/// What the system says where a program's arguments and its environment are too long, and functions that start a child.
const TOO_LONG: c_int = 7;

/// The environment without what we have put into it, where a program could not be executed in this one for its length: it may be one that
/// leaves the arguments just enough room.
#[cold]
fn smaller(environment: usize, result: c_int) -> Option<Copy> {
    let is_too_long = result == TOO_LONG || result == -1 && system::errno() == Some(TOO_LONG);
    is_too_long.then(|| Handed::of(environment).without_us())?
}

/// Defines one of the functions that take a program's arguments one by one: all but the first lie one behind the other once those
/// in registers are put in front of those on the stack.
macro_rules! list {
    ($name:ident => $function:path) => {
        /// Stands before the C library's function of this name.
        // SAFETY: called as the C library's function; the stack is aligned for the call, and as it was when this returns.
        #[unsafe(naked)]
        #[cfg_attr(feature = "carried", unsafe(no_mangle))]
        unsafe extern "C" fn $name() {
            naked_asm!(
                "pop r11",
                "push r9",
                "push r8",
                "push rcx",
                "push rdx",
                "push rsi",
                "mov rsi, rsp",
                "push r11",
                "call {function}",
                "pop r11",
                "add rsp, 40",
                "push r11",
                "ret",
                function = sym $function,
            )
        }
    };
}

list! { execl => execv }
list! { execlp => execvp }
list! { execle => execute_in }

/// `execve` with the environment that stands behind the arguments, after the zero at their end.
///
/// # Safety
/// As for `execle`.
unsafe extern "C" fn execute_in(path: usize, arguments: *const usize) -> c_int {
    let mut end = arguments;
    // SAFETY: the caller's: all arguments are there, the zero, and the environment.
    unsafe {
        while *end != 0 {
            end = end.add(1);
        }
        execve(path, arguments as usize, *end.add(1))
    }
}
