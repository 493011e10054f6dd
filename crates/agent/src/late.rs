//! Modules that are loaded after the start.
//!
//! The loader calls an empty function whenever its list of modules has changed, so that debuggers may
//! stop there; the program's dynamic table leads to its address (System V ABI, "Dynamic Linking",
//! `DT_DEBUG`; glibc's `link.h`, `struct r_debug`). A jump to [`changed`] is put there. What was added is
//! mapped by then, but nothing of it has run: glibc calls once all modules of a `dlopen` are mapped, before it
//! relocates them and runs their constructors, and holds its lock all the while.
//!
//! The jump is made only for a roster that says that modules may come later, or whose probes rely on what a module that comes may
//! take from them (`segment.rs`), before the program's own start, while there is one thread and it is here. musl calls once the
//! modules are relocated, and before their constructors; it holds a lock then that it would need to tell of its modules, so its list is read
//! instead ([`crate::listed`]), and it never unloads any. Where the function has no filling behind it, or in
//! other C libraries, nothing is put anywhere, and the records of such modules say so.

use core::slice;
use core::sync::atomic::{AtomicPtr, Ordering};

use tomo_wire::PAGE;
use tomo_wire::roster::Entry;

use crate::loader::{self, Module, weak};
use crate::system::{self, Protection};
use crate::{arm, armed, kept, listed, offered, segment};

/// What the loader tells debuggers; `struct r_debug`.
#[repr(C)]
struct Debug {
    version: i32,
    modules: usize,
    /// The function that is called.
    called: usize,
    /// 0 when the list is whole.
    state: i32,
    loader: usize,
}

/// The tag of a program's dynamic table under which the loader puts the address of a [`struct@Debug`].
pub(crate) const DEBUG: u64 = 21;

static WATCHED: AtomicPtr<Debug> = AtomicPtr::new(core::ptr::null_mut());

/// Whether the module may come later.
pub(crate) fn is_late(entry: &Entry) -> bool {
    entry.late.get() != 0
}

/// From now on modules of the roster, which was kept, are armed when they are loaded. `None` where that
/// cannot be done; then nothing was changed.
pub(crate) fn watch() -> Option<()> {
    let known = is_glibc() || (is_musl() && listed::is_readable());
    known.then_some(())?;
    let mut debug = None;
    loader::for_each(|module| {
        debug = debug.or_else(|| module.told(DEBUG));
    });
    let debug = debug.filter(|address| *address != 0)? as *mut Debug;
    // SAFETY: the loader put the address of this structure there, which lives as long as it does.
    let place = unsafe { (*debug).called };
    if !debug.is_aligned() || place == 0 {
        return None;
    }
    WATCHED.store(debug, Ordering::Release);
    put_jump(place)
}

/// Whether modules that come are armed when they do: those that are there already were armed before that.
pub(crate) fn is_watching() -> bool {
    !WATCHED.load(Ordering::Relaxed).is_null()
}

fn is_glibc() -> bool {
    weak!("gnu_get_libc_version") != 0
}

fn is_musl() -> bool {
    weak!("__dls3") != 0
}

/// Bytes of a jump with a 32-bit displacement.
const JUMP: usize = 5;

/// Puts a jump to [`changed`] over the empty function at `place`.
fn put_jump(place: usize) -> Option<()> {
    let mut text = false;
    loader::for_each(|module| text |= module.runs(place, JUMP + 8));
    if !text {
        return None;
    }
    // SAFETY: these bytes lie in a module's executable segment, which is mapped.
    let found = unsafe { slice::from_raw_parts(place as *const u8, JUMP + 8) };
    if !is_empty_function(found) {
        return None;
    }
    let after = place.wrapping_add(JUMP);
    let distance = (changed as *const () as usize).wrapping_sub(after) as isize;
    let [a, b, c, d] = i32::try_from(distance).ok()?.to_le_bytes();
    let page = PAGE as usize;
    let first = place / page * page;
    let length = after.next_multiple_of(page).wrapping_sub(first);
    // SAFETY: the pages are the loader's text, which is mapped and which nobody writes.
    let pages = unsafe { slice::from_raw_parts(first as *const u8, length) };
    // A copy is mapped there: some systems let no page be executed that could be written before. It is the process's own, for
    // debuggers put a breakpoint there.
    let copy = system::memory_file(c"tomo:loader").ok()?;
    copy.write_at(pages, 0).ok()?;
    copy.write_at(&[0xe9, a, b, c, d], place.wrapping_sub(first) as u64)
        .ok()?;
    // The same bytes, but for a function that did nothing, and what is behind its `ret` and never ran; `changed` has its type.
    // SAFETY: nobody misses those. This is the only thread, it is in none of these pages, and no handler of a signal is installed before
    // the program's own start.
    unsafe { system::map_privately_over(first, length, Protection::ReadExecute, &copy, 0).ok() }
}

/// Whether these are a `ret`, perhaps behind an `endbr64`, and filling that never runs.
fn is_empty_function(bytes: &[u8]) -> bool {
    let rest = bytes
        .strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa])
        .unwrap_or(bytes);
    let Some(filling) = rest.strip_prefix(&[0xc3]) else {
        return false;
    };
    let needed = JUMP.saturating_sub(bytes.len() - filling.len());
    let long = [0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0];
    let prefixes = filling.iter().take_while(|byte| **byte == 0x66).count();
    let behind = filling.get(prefixes..).unwrap_or(&[]);
    let plain = |byte: u8| filling.iter().take(needed).all(|found| *found == byte);
    let one_long = behind
        .iter()
        .zip(&long)
        .all(|(found, wanted)| found == wanted);
    plain(0x90) || plain(0xcc) || (one_long && prefixes > 0)
}

/// The loader's list of modules has changed.
extern "C" fn changed() {
    let debug = WATCHED.load(Ordering::Acquire);
    // SAFETY: what `watch` put there, aligned and alive as long as the loader.
    if debug.is_null() || unsafe { (&raw const (*debug).state).read_volatile() } != 0 {
        return;
    }
    let Some((roster, path)) = kept::roster() else {
        return;
    };
    let arm = |module: &Module<'_>| {
        segment::look_at(module);
        arm::arm(module, &roster, path, is_late);
    };
    if is_glibc() {
        armed::forget_unloaded();
        offered::new_ones(|visit| loader::for_each(visit), arm);
    } else {
        // SAFETY: the loader's list, of which it holds the lock.
        offered::new_ones(
            |visit| unsafe { listed::for_each((*debug).modules, visit) },
            arm,
        );
    }
}
