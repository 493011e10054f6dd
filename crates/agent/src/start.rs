//! When and whether anything happens: once, before the program's own start.

use core::ffi::{CStr, c_char, c_int};
use core::slice;

use tomo_wire::environment;
use tomo_wire::record::Reason;
use tomo_wire::roster::RosterView;

use crate::loader::{self, Module, weak};
use crate::system::{self, Access, Protection};
use crate::{
    arm, door, emulator, fatal, forked, kept, late, offered, preloaded, segment, signals, slabs,
    symbols, tracer, trap,
};

/// Largest roster that is looked at, in bytes.
const LARGEST_ROSTER: i64 = 16 << 20;

// SAFETY: what stands in this section is called once by the loader, with arguments of these types or
// with none, which `start` finds out before it looks at them.
#[cfg_attr(feature = "carried", used, unsafe(link_section = ".init_array"))]
static START: unsafe extern "C" fn(c_int, *const *const c_char, *const *const c_char) = start;

/// Called by the loader.
///
/// # Safety
/// glibc hands over the program's arguments and environment; other libraries need not.
unsafe extern "C" fn start(_: c_int, _: *const *const c_char, environment: *const *const c_char) {
    // Only glibc hands the environment over; others have set their variable by now.
    let environment = if weak!("gnu_get_libc_version") != 0 {
        environment
    } else {
        let variable = weak!("__environ") as *const *const *const c_char;
        if variable.is_null() {
            return;
        }
        // SAFETY: the C library's variable of this name.
        unsafe { *variable }
    };
    // While no lock of the loader is held and nothing is armed; those that stand before the C library's functions are there in any case.
    signals::look_up();
    // SAFETY: a list of strings that ends with null, from the loader or the C library.
    let roster = unsafe { value_of(environment, environment::ROSTER.as_bytes()) };
    if let Some(path) = roster.filter(|_| symbols::is_first_agent()) {
        slabs::start();
        let _ = arm_all(path);
    }
}

/// The value of the variable `name`.
///
/// # Safety
/// `environment` is null, or a list of strings that ends with null.
unsafe fn value_of<'e>(environment: *const *const c_char, name: &[u8]) -> Option<&'e CStr> {
    if environment.is_null() {
        return None;
    }
    let mut next = environment;
    loop {
        // SAFETY: not behind the null at the end, at which this returns.
        let entry = unsafe { *next };
        if entry.is_null() {
            return None;
        }
        // SAFETY: an entry is a string that ends with a zero byte.
        if let Some(rest) = unsafe { behind(entry, name) } {
            // SAFETY: the rest of such a string.
            let value = unsafe { CStr::from_ptr(rest) }.to_bytes_with_nul();
            if let Some(value) = value.strip_prefix(b"=") {
                return CStr::from_bytes_with_nul(value).ok();
            }
        }
        // SAFETY: as above.
        next = unsafe { next.add(1) };
    }
}

/// What stands in `string` behind `start`, if it begins so; of a long one that does not little is read.
///
/// # Safety
/// `string` ends with a zero byte, and `start` has none.
unsafe fn behind(string: *const c_char, start: &[u8]) -> Option<*const c_char> {
    let mut at = string;
    for byte in start {
        // SAFETY: not behind the zero byte, which is none of `start`.
        unsafe {
            if at.cast::<u8>().read() != *byte {
                return None;
            }
            at = at.add(1);
        }
    }
    Some(at)
}

/// Arms every loaded module that the roster at `path` names.
fn arm_all(path: &CStr) -> Option<()> {
    if !door::is_in_private_folder(path) {
        return None;
    }
    let (file, status) = door::open_private(path, Access::Read).ok()?;
    if status.length <= 0 || status.length > LARGEST_ROSTER {
        return None;
    }
    let length = status.length as usize;
    let start = system::map(length, Protection::Read, &file, 0).ok()?;
    // SAFETY: mapped just now, and unmapped below unless something refers to it. A roster is
    // replaced by renaming, never written in place.
    let bytes = unsafe { slice::from_raw_parts(start, length) };
    let (mut late, mut separate, mut counts) = (false, false, false);
    if let Ok(roster) = RosterView::read(bytes) {
        late = roster.entries.iter().any(late::is_late);
        separate = roster.entries.iter().any(forked::is_separate);
        // Before anything is armed that counts, or that has to know.
        forked::watch();
        let _ = roster.slabs().and_then(slabs::begin);
        counts = slabs::size() > 0;
        if counts {
            segment::look_at_all(&roster);
        }
        let _ = roster.crashes().and_then(fatal::begin);
        if separate {
            forked::separate();
        }
        let arm = |module: &Module<'_>| {
            preloaded::note(module);
            arm::arm(module, &roster, path, |_| true);
        };
        offered::new_ones(|visit| loader::for_each_at_rest(visit), arm);
    }
    let may_lose = counts && !segment::is_taken() && !emulator::is_blind();
    if (late || separate || may_lose) && kept::keep(bytes, path).is_some() {
        if late {
            watch_for_late();
        } else if may_lose {
            // Where nobody tells of modules that come, none is looked at.
            let _ = late::watch();
        }
        return Some(());
    }
    // SAFETY: what was armed keeps nothing of the roster.
    unsafe { system::unmap(start as usize, length) };
    Some(())
}

/// Modules that come later are armed, or their records say why not.
fn watch_for_late() {
    if emulator::is_blind() {
        refuse_late(Reason::Emulated);
    } else if late::watch().is_some() {
        // What comes later may have traps, and masks are made now.
        trap::expect();
    } else {
        // A debugger's breakpoint is where the loader would tell.
        refuse_late(match tracer::is_debugger() {
            true => Reason::Traced,
            false => Reason::Unannounced,
        });
    }
}

fn refuse_late(reason: Reason) {
    if let Some((roster, path)) = kept::roster() {
        arm::refuse(&roster, path, late::is_late, reason);
    }
}
