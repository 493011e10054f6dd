//! Debug information that the compiler left beside the program: `.dwo` files, and packages of them (`.dwp`).
//!
//! DWARF 5 §3.1.2 and §3.1.3 (skeletons, split units), §7.3.2 and §7.3.5 (their files, and packages of these), and
//! GCC's extension of version 4. What the linker has to change stays in the program: line tables, addresses, and a
//! *skeleton* of each unit that names the file with the rest. Of that rest it is read where calls were inlined.
//!
//! The package of a program is beside it and has its name with `.dwp` behind; the files are where the skeleton says,
//! which is where they were made, or beside the program. A unit is taken only if it has the number that the skeleton states.
//!
//! A large program has thousands of such files. So each is read twice, to see that it is the one and when its unit is read,
//! and kept in memory at neither time.

use super::sections::{Sections, Slice, named};
use super::troubles::Troubles;
use super::unit::{Context, OpenUnit};
use gimli::{DwarfPackage, DwoId, LittleEndian, SectionId};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The sections that are read: also those that only the index of a package refers to, which is sound only with them.
const WANTED: [SectionId; 13] = [
    SectionId::DebugInfo,
    SectionId::DebugAbbrev,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugRngLists,
    SectionId::DebugCuIndex,
    SectionId::DebugTuIndex,
    SectionId::DebugLine,
    SectionId::DebugLoc,
    SectionId::DebugLocLists,
    SectionId::DebugMacinfo,
    SectionId::DebugMacro,
    SectionId::DebugTypes,
];

/// What belongs to a program and is in other files.
#[derive(Debug, Default)]
pub struct Apart {
    package: Option<File>,
    /// By the number of the unit that each was found for.
    files: FxHashMap<u64, PathBuf>,
    units: usize,
    missing: Vec<PathBuf>,
}

/// The sections of a file.
#[derive(Debug)]
struct File([Cow<'static, [u8]>; WANTED.len()]);

/// What a skeleton says of its unit.
struct Skeleton {
    number: DwoId,
    /// Where it was made.
    stated: PathBuf,
    /// What it is called, without folders.
    name: OsString,
}

impl Apart {
    /// Finds the files of what these sections have skeletons of. `beside` are the program and, if its debug
    /// information was moved, the file that has it.
    #[must_use]
    pub fn find(sections: &Sections<'_>, beside: &[&Path]) -> Self {
        let context = Context::new(sections, &mut Troubles::default());
        let skeletons = skeletons(&context);
        if skeletons.is_empty() {
            return Self::default();
        }
        let mut found = Self {
            package: beside.iter().find_map(|file| File::read(&packaged(file))),
            units: skeletons.len(),
            ..Self::default()
        };
        let of_no_program = gimli::Dwarf::default();
        let alone = |it: &&Skeleton| found.packaged(&of_no_program, it.number).is_none();
        let alone: Vec<&Skeleton> = skeletons.iter().filter(alone).collect();
        let read = |it: &&Skeleton| {
            let mut places = vec![it.stated.clone()];
            places.extend(beside.iter().map(|file| file.with_file_name(&it.name)));
            let has_it =
                |place: &PathBuf| File::read(place).is_some_and(|file| file.has(it.number));
            places.into_iter().find(has_it)
        };
        let read: Vec<Option<PathBuf>> = alone.par_iter().map(read).collect();
        for (file, skeleton) in read.into_iter().zip(alone) {
            match file {
                Some(file) => drop(found.files.insert(skeleton.number.0, file)),
                None => found.missing.push(skeleton.stated.clone()),
            }
        }
        found
    }

    /// How many units' files are missing, of how many units that are in files of their own; and the first one.
    #[must_use]
    pub fn missing(&self) -> Option<(usize, usize, &Path)> {
        let first = self.missing.first()?;
        Some((self.missing.len(), self.units, first))
    }

    /// What `read` makes of what is in other files of a unit of `context`, if it was found.
    pub(super) fn read_unit<T>(
        &self,
        context: &Context<'_>,
        skeleton: &OpenUnit<'_>,
        read: impl for<'u> FnOnce(&Context<'u>, &OpenUnit<'u>) -> T,
    ) -> Option<T> {
        let number = skeleton.unit.dwo_id.filter(|_| skeleton.is_split)?;
        let file = self.files.get(&number.0).and_then(|path| File::read(path));
        let dwarf = match &file {
            Some(file) => file.dwarf(&context.dwarf),
            None => self.packaged(&context.dwarf, number)?,
        };
        let context = Context::of(dwarf, &mut Troubles::default());
        let mut open = numbered(&context, number)?;
        open.unit.copy_relocated_attributes(&skeleton.unit);
        Some(read(&context, &open))
    }

    /// What the package has of a unit.
    fn packaged<'a>(
        &'a self,
        program: &gimli::Dwarf<Slice<'a>>,
        number: DwoId,
    ) -> Option<gimli::Dwarf<Slice<'a>>> {
        let package = self.package.as_ref()?;
        let load = |id| Ok::<_, gimli::Error>(package.get(id));
        let package = DwarfPackage::load(load, Slice::new(&[], LittleEndian)).ok()?;
        package.find_cu(number, program).ok()?
    }
}

impl File {
    /// Reads a file, if it is one that has debug information.
    fn read(path: &Path) -> Option<Self> {
        path.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let data = std::fs::read(path).ok()?;
        let names = WANTED.map(|id| id.dwo_name().unwrap_or_else(|| id.name()));
        let (sections, _) = named(&data, names);
        let file = Self(sections.map(|section| Cow::Owned(section.into_owned())));
        (!file.get(SectionId::DebugInfo).is_empty()).then_some(file)
    }

    fn get(&self, id: SectionId) -> Slice<'_> {
        let found = WANTED
            .iter()
            .zip(&self.0)
            .find(|(wanted, _)| **wanted == id);
        Slice::new(found.map_or(&[], |(_, section)| section), LittleEndian)
    }

    /// Its sections, and those of the program that they refer to.
    fn dwarf<'a>(&'a self, program: &gimli::Dwarf<Slice<'a>>) -> gimli::Dwarf<Slice<'a>> {
        let load = |id| Ok::<_, gimli::Error>(self.get(id));
        let mut dwarf = gimli::Dwarf::load(load).unwrap_or_default();
        dwarf.make_dwo(program);
        dwarf
    }

    /// Whether it has the unit of this number.
    fn has(&self, number: DwoId) -> bool {
        let alone = self.dwarf(&gimli::Dwarf::default());
        let context = Context::of(alone, &mut Troubles::default());
        numbered(&context, number).is_some()
    }
}

/// The unit of this number.
fn numbered<'a>(context: &Context<'a>, number: DwoId) -> Option<OpenUnit<'a>> {
    let mut units = context.headers.iter();
    units.find_map(|header| {
        let open = context.open(*header).ok()?;
        (open.is_whole && open.unit.dwo_id == Some(number)).then_some(open)
    })
}

/// The name of a program's package.
fn packaged(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".dwp");
    name.into()
}

/// All skeletons that name a file, one for each unit.
fn skeletons(context: &Context<'_>) -> Vec<Skeleton> {
    let read = |header: &_| {
        let open = context.open(*header).ok()?;
        let name = Path::new(OsStr::from_bytes(open.apart?.slice()));
        let folder = open.unit.comp_dir.map_or(&[][..], |folder| folder.slice());
        Some(Skeleton {
            number: open.unit.dwo_id?,
            stated: Path::new(OsStr::from_bytes(folder)).join(name),
            name: name.file_name()?.to_owned(),
        })
    };
    let all: Vec<Skeleton> = context.headers.par_iter().filter_map(read).collect();
    let mut known = rustc_hash::FxHashSet::default();
    all.into_iter()
        .filter(|it| known.insert(it.number.0))
        .collect()
}
