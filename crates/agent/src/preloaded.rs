//! Where the loader cannot find our file any more, it is not told to load it: it would say so, on the standard error of each program
//! that is started. Nor is it where it runs nothing and only lists what it would load (`ldd`).
//!
//! A program that calls `chroot` looks files up elsewhere from then on, and so do those that it starts. If our file is not
//! there either, its name is taken out of the list of what is loaded first, in the environment that the program hands on.

use core::ffi::{CStr, c_char};
use core::ptr::{null, null_mut};
use core::slice;
use core::sync::atomic::{AtomicPtr, Ordering};

use tomo_wire::environment;

use crate::closed;
use crate::door::{self, Closed};
use crate::loader::{self, Module, weak};
use crate::pointed::Reader;
use crate::system::{self, Access, Errno};

/// How the variable with that list begins.
const LIST: &[u8] = b"LD_PRELOAD=";

/// What the loader is told where it is to list what it would load.
const ASKS: &[u8] = b"LD_TRACE_LOADED_OBJECTS=";

/// The program has another root directory now.
pub(crate) fn after_leaving_root() {
    let path = own_path().filter(|path| system::open(path, Access::Read, true).is_err());
    let Some(path) = path else {
        return;
    };
    let _ = for_each(own(), |entry, said| {
        if let Some((start, end)) = place_of(path.to_bytes(), said) {
            // SAFETY: the program's own string, which it can change; nobody has put our name into one that it cannot.
            unsafe { close_up(entry.cast(), start, end) };
        }
    });
}

/// The name by which the loader has found our file, as the loader says.
fn own_path() -> Option<&'static CStr> {
    let here = own_path as *const () as usize;
    let mut found = None;
    loader::for_each(|module| {
        if module.holds(here) {
            found = Some(module.path.as_ptr());
        }
    });
    // SAFETY: the loader keeps it as long as the module, which stays; it ends with a zero byte.
    found.map(|path| unsafe { CStr::from_ptr(path) })
}

/// The name by which the loader has found our file.
static NAME: AtomicPtr<c_char> = AtomicPtr::new(null_mut());

/// This module is loaded, which may be ours.
pub(crate) fn note(module: &Module<'_>) {
    if module.holds(note as *const () as usize) {
        // The loader keeps it as long as the module.
        NAME.store(module.path.as_ptr().cast_mut(), Ordering::Relaxed);
    }
}

/// The environment in which another program is to be executed.
pub(crate) struct Handed {
    entries: Entries,
    /// Whether that program is merely asked what it would load.
    asks: bool,
    /// Whether we are to be loaded into it, and know why; or nothing will be.
    is_complete: bool,
}

impl Handed {
    /// What this one says (null: an empty one).
    pub(crate) fn of(environment: usize) -> Self {
        let entries = environment as Entries;
        let (mut asks, mut has_roster, mut has_agent) = (false, false, false);
        let is_whole = for_each(entries, |entry, said| {
            asks |= said.starts_with(ASKS);
            has_roster |= names_roster(entry, said);
            has_agent |= names_agent(said);
        });
        Self {
            entries,
            asks: asks && is_whole.is_some(),
            // What cannot be read nothing is started with.
            is_complete: has_roster && has_agent && !makes_raised() || is_whole.is_none(),
        }
    }

    /// Whether the program will be without us, though it is to run.
    pub(crate) fn is_without(&self) -> bool {
        !(self.asks || self.is_complete)
    }

    /// Calls `execute` with it; where the program is merely asked what it would load, with one that does not name our file.
    pub(crate) fn give<R>(&self, execute: impl FnOnce(usize) -> R) -> R {
        let path = self.asks.then(own_path).flatten();
        let copy = path.and_then(|path| {
            Copy::of(self.entries, |said| match place_of(path.to_bytes(), said) {
                Some(place) => Becomes::Without(place),
                None => Becomes::Itself,
            })
        });
        execute(copy.as_ref().map_or(self.entries as usize, Copy::place))
    }

    /// One as the program would hand it on without us, if this one names us.
    pub(crate) fn without_us(&self) -> Option<Copy> {
        let path = own_path()?.to_bytes();
        Copy::of(self.entries, |said| match place_of(path, said) {
            Some((start, end)) if start == LIST.len() && end == said.len() => Becomes::Nothing,
            Some(place) => Becomes::Without(place),
            None if roster_of(said).is_some() => Becomes::Nothing,
            None => Becomes::Itself,
        })
    }
}

/// What becomes of an entry of an environment in a copy.
enum Becomes {
    Itself,
    /// Itself without the bytes from here to there.
    Without((usize, usize)),
    Nothing,
}

/// A copy of an environment, in memory of its own. That of a child of `vfork` which becomes another program stays in its parent's.
pub(crate) struct Copy {
    place: usize,
    length: usize,
}

impl Copy {
    /// Where it is.
    pub(crate) fn place(&self) -> usize {
        self.place
    }

    /// One in which each of `entries` becomes what `change` says; those that stay as they are are not copied. `None` where all do.
    fn of(entries: Entries, change: impl Fn(&[u8]) -> Becomes) -> Option<Self> {
        let (mut count, mut bytes, mut is_changed) = (0, 0, false);
        for_each(entries, |_, said| {
            let becomes = change(said);
            is_changed |= !matches!(becomes, Becomes::Itself);
            count += usize::from(!matches!(becomes, Becomes::Nothing));
            if let Becomes::Without(_) = becomes {
                bytes += said.len() + 1;
            }
        })?;
        is_changed.then_some(())?;
        let texts = (count + 1) * size_of::<usize>();
        let length = texts + bytes;
        let place = system::reserve_anywhere(length).ok()?;
        let copy = Self { place, length };
        // SAFETY: reserved just now, and known to nobody.
        unsafe { system::map_nothing_over(place, length) }.ok()?;
        // SAFETY: mapped just now, as zeros, so that the list ends with null whatever is put before that.
        let (list, mut rest) = unsafe {
            (
                slice::from_raw_parts_mut(place as *mut *mut c_char, count),
                slice::from_raw_parts_mut((place + texts) as *mut u8, bytes),
            )
        };
        let mut places = list.iter_mut();
        for_each(entries, |entry, said| {
            let becomes = change(said);
            let to = match becomes {
                Becomes::Nothing => return,
                Becomes::Itself | Becomes::Without(_) => places.next(),
            };
            let Some(to) = to else {
                return;
            };
            *to = entry;
            let Becomes::Without((start, end)) = becomes else {
                return;
            };
            let (before, behind) = (said.get(..start), said.get(end..));
            let text = rest.split_off_mut(..said.len() + 1);
            if let (Some(before), Some(behind), Some(text)) = (before, behind, text) {
                let all = before.iter().chain(behind);
                text.iter_mut().zip(all).for_each(|(to, from)| *to = *from);
                *to = text.as_mut_ptr().cast();
            }
        })?;
        Some(copy)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // SAFETY: mapped by this value, and nobody uses it any more.
        unsafe { system::unmap(self.place, self.length) };
    }
}

/// Whether our file is in the list that this entry of an environment is.
fn names_agent(entry: &[u8]) -> bool {
    let name = NAME.load(Ordering::Relaxed);
    // SAFETY: the loader's name of a module that stays loaded; it ends with a zero byte.
    !name.is_null() && place_of(unsafe { CStr::from_ptr(name) }.to_bytes(), entry).is_some()
}

/// The roster's path, if this entry of an environment is that.
fn roster_of(entry: &[u8]) -> Option<&[u8]> {
    let value = entry.strip_prefix(environment::ROSTER.as_bytes())?;
    value.strip_prefix(b"=")
}

/// Whether this entry of an environment, which says this, names the roster, and whoever gets it may open that: who gives up a user's
/// rights does so for those that he starts, too. Nobody asks in a sandbox that the program has closed.
fn names_roster(entry: *mut c_char, said: &[u8]) -> bool {
    const DENIED: Errno = Errno(13);
    let Some(path) = roster_of(said) else {
        return false;
    };
    if closed::is_closed() {
        return true;
    }
    let start = entry.wrapping_add(said.len() - path.len());
    // SAFETY: the rest of the program's own string, which ends with a zero byte.
    let opened = door::open_private(unsafe { CStr::from_ptr(start) }, Access::Read);
    !matches!(opened, Err(Closed::NotPrivate | Closed::Errno(DENIED)))
}

/// Whether the kernel takes rights for raised in what is executed now, whatever that is: where the effective user or group is not
/// the real one. The loader then preloads nothing. Nobody asks in a sandbox that the program has closed.
fn makes_raised() -> bool {
    !closed::is_closed() && system::is_raised()
}

/// A list of strings that ends with null, or null.
type Entries = *const *mut c_char;

/// That of the program.
pub(crate) fn own() -> Entries {
    let variable = weak!("__environ") as *const Entries;
    if variable.is_null() {
        return null();
    }
    // SAFETY: the C library's variable of this name.
    unsafe { *variable }
}

/// Calls `visit` with where each entry is, and what it says; `None` where there is one that cannot be read, of which the system will
/// tell the program.
fn for_each(entries: Entries, mut visit: impl FnMut(*mut c_char, &[u8])) -> Option<()> {
    // An environment that is null is empty.
    if entries.is_null() {
        return Some(());
    }
    let (mut of_list, mut of_strings) = (Reader::new(), Reader::new());
    let mut at = entries as usize;
    loop {
        let entry = of_list.word(at)?;
        if entry == 0 {
            return Some(());
        }
        // SAFETY: the program's own string, which stays as it is while another program is started with it.
        visit(entry as *mut c_char, unsafe { of_strings.string(entry) }?);
        at = at.wrapping_add(size_of::<usize>());
    }
}

/// Where in this entry of an environment `name` is, with what tells it from the next one.
fn place_of(name: &[u8], entry: &[u8]) -> Option<(usize, usize)> {
    let list = entry.strip_prefix(LIST)?;
    let mut start = LIST.len();
    for one in list.split(|byte| matches!(byte, b':' | b' ')) {
        let end = start.saturating_add(one.len());
        if one == name {
            return Some((start, end.saturating_add(1).min(entry.len())));
        }
        start = end.saturating_add(1);
    }
    None
}

/// Lets what stands from `end` on in a string stand from `start` on.
///
/// # Safety
/// The string may be changed, and both are inside of it.
unsafe fn close_up(string: *mut u8, mut start: usize, mut end: usize) {
    loop {
        // SAFETY: up to the zero byte at the end, with which this returns.
        unsafe {
            let byte = string.add(end).read();
            string.add(start).write_volatile(byte);
            if byte == 0 {
                return;
            }
        }
        (start, end) = (start.wrapping_add(1), end.wrapping_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::{close_up, place_of};

    fn without(name: &str, entry: &str) -> Option<String> {
        let (start, end) = place_of(name.as_bytes(), entry.as_bytes())?;
        let mut string = [entry.as_bytes(), b"\0"].concat();
        // SAFETY: a string of this test, and a place in it.
        unsafe { close_up(string.as_mut_ptr(), start, end) };
        let length = string.iter().position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(&string[..length]).into_owned())
    }

    #[test]
    fn our_name_is_taken_out_of_the_list_and_no_other() {
        let after = |entry| without("/a/b.so", entry).unwrap_or_default();
        assert_eq!(after("LD_PRELOAD=/a/b.so"), "LD_PRELOAD=");
        assert_eq!(after("LD_PRELOAD=/a/b.so:/x.so"), "LD_PRELOAD=/x.so");
        assert_eq!(after("LD_PRELOAD=/x.so /a/b.so /y"), "LD_PRELOAD=/x.so /y");
        assert_eq!(after("LD_PRELOAD=/x.so:/a/b.so"), "LD_PRELOAD=/x.so:");
        assert_eq!(without("/a/b.so", "LD_PRELOAD=/a/b.so.1:/x/a/b.so"), None);
        assert_eq!(without("/a/b.so", "PRELOAD=/a/b.so"), None);
    }
}
