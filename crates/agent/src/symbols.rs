//! Functions of other modules, found in their tables of symbols.
//!
//! `dlsym` would do, but older C libraries have it in a library that need not be loaded, and it takes
//! the loader's locks, which a handler of a signal must not.
//!
//! Sources: System V ABI, "Dynamic Linking" (symbol table); the GNU hash table as GNU binutils
//! write it: buckets, then for each bucket a chain of hashes, of which the last has its lowest bit set.

use core::ffi::CStr;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::listed;
use crate::loader::{self, Module, weak};

/// Of the dynamic section: the module's own name, and the table in which that is.
const NAME: u64 = 14;
const STRINGS: u64 = 5;
const SYMBOLS: u64 = 6;
const HASHES: u64 = 4;
const GNU_HASHES: u64 = 0x6fff_fef5;
/// By symbol: its version, and whether that is for programs of old alone.
const VERSIONS: u64 = 0x6fff_fff0;

/// A symbol of a 64-bit ELF file.
#[repr(C)]
struct Symbol {
    name: u32,
    kind: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

const FUNCTION: u8 = 2;

/// A symbol's name, with its hash.
pub(crate) struct Name {
    text: &'static CStr,
    hash: u32,
}

impl Name {
    /// This one, before anything runs.
    pub(crate) const fn of(text: &'static CStr) -> Self {
        let bytes = text.to_bytes();
        let (mut hash, mut at) = (5381u32, 0);
        while at < bytes.len() {
            hash = hash.wrapping_mul(33).wrapping_add(bytes[at] as u32);
            at += 1;
        }
        Self { text, hash }
    }
}

/// Calls `found` with the number and address of each of `names` that a module after ours defines, and with that module, in
/// the order of the loader: the first definition counts.
pub(crate) fn after_ours<const COUNT: usize>(
    names: &[&Name; COUNT],
    mut found: impl FnMut(usize, usize, &Module<'_>),
) {
    let mut left = [true; COUNT];
    let mut behind = false;
    loader::for_each(|module| {
        if is_here(&module) {
            behind = true;
            return;
        }
        let table = if behind { Table::of(&module) } else { None };
        let Some(table) = table else {
            return;
        };
        for (number, (name, left)) in names.iter().zip(&mut left).enumerate() {
            let address = if *left { table.address(name) } else { None };
            if let Some(address) = address {
                *left = false;
                found(number, address, &module);
            }
        }
    });
}

/// Whether the module is a C library, or a part of one: glibc before 2.34 has functions on signals also in its library of threads.
pub(crate) fn is_c_librarys(module: &Module<'_>) -> bool {
    let path = module.path.to_bytes();
    let mut parts = path.rsplit(|byte| *byte == b'/');
    let name = parts.next().unwrap_or(path);
    let glibc = weak!("gnu_get_libc_version");
    glibc == 0 || module.holds(glibc) || name.starts_with(b"libpthread")
}

/// A function of glibc, also where the program has one of the same name, which may not be ready to be called yet: that of a
/// sanitizer, for one, which is linked into the program.
pub(crate) struct OfGlibc {
    name: Name,
    found: AtomicUsize,
}

impl OfGlibc {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self {
            name: Name::of(name),
            found: AtomicUsize::new(0),
        }
    }

    /// Where it is, if the loader has bound the name to what is at `bound`, or to nothing: that is 0.
    pub(crate) fn address(&self, bound: usize) -> usize {
        let known = self.found.load(Ordering::Relaxed);
        if known != 0 || bound == 0 {
            return known;
        }
        let own = match weak!("gnu_get_libc_version") {
            0 => bound,
            other if bound.abs_diff(other) < NEAR => bound,
            other => self.beside(other).unwrap_or(bound),
        };
        self.found.store(own, Ordering::Relaxed);
        own
    }

    /// That of the module in which this function is.
    fn beside(&self, function: usize) -> Option<usize> {
        let debug = weak!("_r_debug");
        if debug == 0 {
            return None;
        }
        let mut found = None;
        let visit = |module: Module<'_>| {
            if module.holds(function) {
                found = Table::of(&module).and_then(|table| table.address(&self.name));
            }
        };
        // SAFETY: glibc's `_r_debug`, whose second word is the head of the loader's list of modules. It is asked for once, before the
        // program's own start, when all modules of the start are in it and none comes or goes.
        unsafe { listed::for_each(*(debug as *const usize).add(1), visit) };
        found
    }
}

/// A function of the C library is nearer to any other of it; a program's is not, since programs lie far from libraries.
const NEAR: usize = 2 << 20;

/// Whether no other agent is loaded before this one. Where `tomo` is run by what is observed there are two, each from a file of its
/// own, and one roster, that of the inner `tomo`, whose agent comes first: both would put their probes into the same text.
pub(crate) fn is_first_agent() -> bool {
    let mut first = None;
    loader::for_each(|module| {
        if first.is_none() && is_agent(&module) {
            first = Some(is_here(&module));
        }
    });
    first != Some(false)
}

/// Whether `module` is the file in which this is.
fn is_here(module: &Module<'_>) -> bool {
    module.holds(Table::of as *const () as usize)
}

/// Whether `module` is this agent, or another build of it: an agent cannot observe what it is itself made of, and another one is in
/// the same places as this.
pub(crate) fn is_agent(module: &Module<'_>) -> bool {
    is_here(module) || own_name(module) == Some(AGENT)
}

/// What agents are called, wherever their files are.
const AGENT: &CStr = c"libtomo_agent.so";

/// What the module calls itself.
fn own_name<'m>(module: &Module<'m>) -> Option<&'m CStr> {
    let start = module.told_address(STRINGS)?;
    let name = start.wrapping_add(module.told(NAME)? as usize);
    module.holds(name).then_some(())?;
    // SAFETY: a string of the table that the loader uses for each symbol that it binds; it ends with a zero byte.
    Some(unsafe { CStr::from_ptr(name as *const _) })
}

/// The symbols that a module offers to others.
struct Table {
    bias: usize,
    strings: *const u8,
    symbols: *const Symbol,
    /// Null where there are none.
    versions: *const u16,
    hashes: Hashes,
}

#[derive(Clone, Copy)]
enum Hashes {
    Gnu(*const u32),
    /// The older table; only its number of symbols is used.
    All(*const u32),
}

impl Table {
    fn of(module: &Module<'_>) -> Option<Self> {
        let address = |tag| {
            let address = module.told_address(tag)?;
            (module.holds(address) && address.is_multiple_of(4)).then_some(address)
        };
        let hashes = match address(GNU_HASHES) {
            Some(gnu) => Hashes::Gnu(gnu as *const u32),
            None => Hashes::All(address(HASHES)? as *const u32),
        };
        let symbols = address(SYMBOLS)? as *const Symbol;
        let versions = module.told_address(VERSIONS).unwrap_or(0) as *const u16;
        let has_versions = module.holds(versions as usize) && versions.is_aligned();
        let strings = module.told_address(STRINGS)?;
        (module.holds(strings) && symbols.is_aligned()).then_some(Self {
            bias: module.bias,
            strings: strings as *const u8,
            symbols,
            versions: match has_versions {
                true => versions,
                false => core::ptr::null(),
            },
            hashes,
        })
    }

    /// Where the function `name` is: the one that programs are linked to now, if there are several.
    fn address(&self, name: &Name) -> Option<usize> {
        match self.hashes {
            Hashes::Gnu(table) => self.by_hash(table, name),
            Hashes::All(table) => {
                // SAFETY: the second word of this table is the number of symbols.
                let count = unsafe { *table.add(1) };
                let first = |old: bool| {
                    let mut all = (1..count).filter(|index| self.is_old(*index) == old);
                    all.find_map(|index| self.function(index, name))
                };
                first(false).or_else(|| first(true))
            }
        }
    }

    fn by_hash(&self, table: *const u32, name: &Name) -> Option<usize> {
        let hash = name.hash;
        // Four words, a filter of `filter` double words, `buckets` buckets, and the chains, of which each ends with an
        // element that has its lowest bit set.
        // SAFETY: the loader uses this very table, with this layout, for each symbol that it binds.
        unsafe {
            let (buckets, first, filter) = (*table, *table.add(1), *table.add(2));
            let start = table.add(4 + 2 * filter as usize);
            if buckets == 0 {
                return None;
            }
            let mut index = *start.add((hash % buckets) as usize);
            let chains = start.add(buckets as usize);
            let mut old = None;
            while index >= first {
                let here = *chains.add((index - first) as usize);
                if (here ^ hash) >> 1 == 0
                    && let Some(address) = self.function(index, name)
                {
                    if !self.is_old(index) {
                        return Some(address);
                    }
                    old = old.or(Some(address));
                }
                if here & 1 != 0 {
                    return old;
                }
                index += 1;
            }
        }
        None
    }

    /// Whether new programs are not linked to symbol `index`.
    fn is_old(&self, index: u32) -> bool {
        const OLD: u16 = 1 << 15;
        // SAFETY: there is a version for each symbol.
        !self.versions.is_null() && unsafe { *self.versions.add(index as usize) } & OLD != 0
    }

    /// The address of symbol `index` if it is a function of this name that the module defines.
    fn function(&self, index: u32, name: &Name) -> Option<usize> {
        // SAFETY: the index is of a symbol of the module, as its tables say, and the name of each lies
        // in its table of strings, and ends with a zero byte.
        let (symbol, called) = unsafe {
            let symbol = &*self.symbols.add(index as usize);
            let called = self.strings.add(symbol.name as usize).cast();
            (symbol, CStr::from_ptr(called))
        };
        let defined = symbol.section != 0 && symbol.kind & 15 == FUNCTION;
        let wanted = defined && called == name.text;
        wanted.then(|| self.bias.wrapping_add(symbol.value as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::is_c_librarys;
    use crate::loader::Module;

    #[test]
    fn the_c_librarys_parts_are_known_by_their_names() {
        let is_one = |path| is_c_librarys(&Module::of(0, path, &[]));
        assert!(is_one(c"/lib/x86_64-linux-gnu/libpthread.so.0"));
        assert!(is_one(c"/lib64/libpthread-2.31.so"));
        assert!(!is_one(c"/usr/lib/libtsan.so.2") && !is_one(c""));
    }
}
