//! The folder of a run: what its probes saw, in records; what they observe, in plans; how it went.
//!
//! The text of a run is in a memory file that vanishes with `tomo`: nothing that others could change, or that stays behind, is code.
//! Programs that are started later, by what goes on when `tomo` has ended, make their own from the image that the roster names.

mod predicates;

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::statvfs::{FsFlags, fstatvfs};
use serde_json::json;
use tomo_program::{Progress, hexadecimal, text_of};
use tomo_wire::counting::{Contents, Slabs};
use tomo_wire::crash::{self, Crashes};
use tomo_wire::image::Image;
use tomo_wire::record::{Live, MARKS, Record};
use tomo_wire::roster::{self, Roster};
use tomo_wire::{ModuleId, checksum};
use zerocopy::IntoBytes as _;
use zerocopy::little_endian::U32;

use crate::images::Baked;
use crate::outside::{Outside, OutsideError};
use crate::private;
use crate::room::Room;
use crate::seen::read_live;
use crate::{ChosenPaths, Ended, Forks, How, ImageError, Images, Observed, Target, Weighed};

/// Why a run has no folder.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file of it cannot be read or written.
    #[error("{path}: {1}", path = .0.display())]
    Io(PathBuf, io::Error),
    /// A module has no image.
    #[error(transparent)]
    Image(#[from] ImageError),
}

/// What is told about a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// Where it was started.
    pub started: SystemTime,
}

/// A module with all that arms it in this run.
#[derive(Debug)]
pub struct Armed {
    /// The module.
    pub module: Observed,
    /// Its record's file.
    pub record: PathBuf,
    /// How many probes with a mark it has.
    pub probes: u32,
    /// Its image, as the cache has it: who makes it anew meanwhile makes another file. None where nothing may be executed from there.
    image: Option<File>,
    /// Where the cache has it.
    cached: PathBuf,
    /// The run's own copy of the image's text, or of all of it.
    text: File,
}

/// The folder of one run.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    id: [u8; 16],
    modules: Vec<Armed>,
    room: Room,
    roster: Option<File>,
    /// The file of slabs, if modules are counted.
    slabs: Option<PathBuf>,
    /// The file of crashes, if they are kept.
    crashes: Option<PathBuf>,
    /// Bytes of a slab that modules have taken.
    slab: u32,
    /// What is in slabs.
    contents: Contents,
    forks: Forks,
    /// Where the program finds the open files of this process, if not where others do.
    window: Option<PathBuf>,
}

impl RunFolder {
    /// Makes a folder for one run in `out`, which is made if need be.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn create(out: &Path) -> Result<Self, FolderError> {
        let failed = |error| FolderError::Io(out.into(), error);
        fs::create_dir_all(out).map_err(failed)?;
        let real = fs::canonicalize(out).map_err(failed)?;
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|error| failed(io::Error::other(error.to_string())))?;
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = seconds.map_or(0, |since| since.as_secs());
        let path = real.join(format!("run-{seconds}-{}", hexadecimal(&id[..4])));
        let made = DirBuilder::new().mode(0o755).create(&path);
        let made = made.and_then(|()| File::open(&path));
        let made = made.map_err(|error| FolderError::Io(path.clone(), error))?;
        // The agent makes files there, too.
        private::keep_in_place(&made);
        Ok(Self {
            path,
            id,
            modules: Vec::new(),
            room: Room::default(),
            roster: None,
            slabs: None,
            crashes: None,
            slab: 0,
            contents: Contents::Counters,
            forks: Forks::default(),
            window: None,
        })
    }

    /// The same, with processes kept together or apart.
    #[must_use]
    pub fn with(self, forks: Forks) -> Self {
        Self { forks, ..self }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The modules that are armed.
    #[must_use]
    pub fn modules(&self) -> &[Armed] {
        &self.modules
    }

    /// Sees to it that `module` is armed in this run; bakes its image if need be.
    ///
    /// # Errors
    /// Where it has no image, or the folder cannot be written.
    pub fn arm(
        &mut self,
        module: &Observed,
        images: &Images,
        how: How,
        progress: &dyn Progress,
    ) -> Result<(), FolderError> {
        let baked = images.get(module, how, &mut self.room, progress)?;
        self.add(module, &baked, "plan")
    }

    /// Sees to it that `module` is counted in this run; bakes its image if need be.
    ///
    /// # Errors
    /// As for [`Self::arm`].
    pub fn count(
        &mut self,
        module: &Observed,
        images: &Images,
        weighed: &Weighed,
        progress: &dyn Progress,
    ) -> Result<(), FolderError> {
        let baked = images.counters(module, self.slab, weighed, progress)?;
        self.slab = baked.header.slab_end.get().max(self.slab);
        self.add(module, &baked, "counters")
    }

    /// Sees to it that the paths of `module` are counted in this run; bakes its image if need be.
    ///
    /// # Errors
    /// As for [`Self::arm`].
    pub fn follow(
        &mut self,
        module: &Observed,
        images: &Images,
        chosen: &ChosenPaths,
        progress: &dyn Progress,
    ) -> Result<(), FolderError> {
        let baked = images.paths(module, self.slab, chosen, progress)?;
        self.slab = baked.header.slab_end.get().max(self.slab);
        self.contents = Contents::Paths;
        self.add(module, &baked, "paths")
    }

    /// Sees to it that the chains of calls of `module` are noted in this run, in slabs of `memory` bytes; bakes its
    /// image if need be.
    ///
    /// # Errors
    /// As for [`Self::arm`].
    pub fn note_chains(
        &mut self,
        module: &Observed,
        images: &Images,
        memory: u32,
        progress: &dyn Progress,
    ) -> Result<(), FolderError> {
        let baked = images.chains(module, None, progress)?;
        self.contents = Contents::Chains;
        self.slab = baked.header.slab_end.get().max(memory);
        self.add(module, &baked, "functions")
    }

    /// Makes the file of slabs, once all modules are there that are counted.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn make_slabs(&mut self) -> Result<(), FolderError> {
        let path = self.path.join(SLABS);
        let written = write_slabs(&path, self.slab, self.contents);
        written.map_err(|error| FolderError::Io(path.clone(), error))?;
        self.slabs = Some(path);
        Ok(())
    }

    /// From now on it is kept where the run crashes.
    ///
    /// # Errors
    /// Where the folder cannot be written.
    pub fn keep_crashes(&mut self) -> Result<(), FolderError> {
        let path = self.path.join(CRASHES);
        let written = write_crashes(&path, self.id);
        written.map_err(|error| FolderError::Io(path.clone(), error))?;
        self.crashes = Some(path);
        Ok(())
    }

    /// Its threads record into the file at `path`.
    pub(crate) fn set_slabs(&mut self, path: PathBuf) {
        self.slabs = Some(path);
    }

    pub(crate) fn add(
        &mut self,
        module: &Observed,
        baked: &Baked,
        kind: &str,
    ) -> Result<(), FolderError> {
        let file = |kind: &str| self.path.join(format!("{}.{kind}", module.stem));
        let (record, plan) = (file("record"), file(kind));
        let at = |path: &Path| {
            let path = path.to_path_buf();
            move |error| FolderError::Io(path, error)
        };
        link_or_copy(&baked.plan, &plan).map_err(at(&plan))?;
        let header = &baked.header;
        write_record(
            &record,
            header.module,
            header.plan.get(),
            header.probes.get(),
            self.id,
        )
        .map_err(at(&record))?;
        let (image, text) = own_text(baked).map_err(at(&baked.image))?;
        self.modules.push(Armed {
            module: module.clone(),
            record,
            probes: header.probes.get(),
            image,
            cached: baked.image.clone(),
            text,
        });
        Ok(())
    }

    /// The path of the run's roster. It lies in the run's folder, for programs that are started after this process has ended,
    /// unless there is no room, the agent would not believe what lies there or the program finds files elsewhere.
    ///
    /// # Errors
    /// Where there is no memory for it.
    pub fn roster(&mut self) -> Result<PathBuf, FolderError> {
        let failed = |error| FolderError::Io(self.path.clone(), error);
        if self.window.is_none() && private::folder(&self.path).is_ok() {
            let path = self.path.join(ROSTER);
            match self.write_roster(&path) {
                Ok(true) => return Ok(path),
                // What else lies there would be half of one, or believed by nobody.
                Ok(false) | Err(_) => {
                    let _ = fs::remove_file(&path);
                }
            }
        }
        let mut file = memory_file(c"tomo:roster").map_err(failed)?;
        let bytes = self.roster_in(false).map_err(failed)?;
        file.write_all(&bytes).map_err(failed)?;
        let path = self.seen(&file);
        self.roster = Some(file);
        Ok(path)
    }

    /// Writes the roster that is to last longer than this process to `path`; whether the agent will believe it there.
    fn write_roster(&self, path: &Path) -> io::Result<bool> {
        let mut file = private::create(path)?;
        file.write_all(&self.roster_in(true)?)?;
        Ok(private::is_private(&file.metadata()?))
    }

    /// The roster, which is to last longer than this process or not.
    fn roster_in(&self, lasts: bool) -> io::Result<Vec<u8>> {
        let listed = |armed: &Armed| {
            let image = match &armed.image {
                Some(_) if lasts => armed.cached.clone(),
                image => self.seen(image.as_ref().unwrap_or(&armed.text)),
            };
            let text = match self.forks {
                Forks::Shared => Some((self.seen(&armed.text), armed.text.metadata()?.ino())),
                Forks::Separate => None,
            };
            Ok(Listed {
                module: armed.module.id,
                image: image.into_os_string(),
                text: text.map(|(path, inode)| (path.into_os_string(), inode)),
                record: armed.record.as_os_str().to_os_string(),
                late: armed.module.late,
                forks: self.forks,
            })
        };
        let entries: io::Result<Vec<Listed>> = self.modules.iter().map(listed).collect();
        let files = Files {
            slabs: self.slabs.as_deref().map(Path::as_os_str),
            crashes: self.crashes.as_deref().map(Path::as_os_str),
        };
        Ok(roster_bytes(entries?.into_iter(), files))
    }

    /// The program finds the open files of this process in the folder `window`.
    pub fn see_through(&mut self, window: PathBuf) {
        self.window = Some(window);
    }

    /// Where the program finds an open file of this process.
    fn seen(&self, file: &File) -> PathBuf {
        match &self.window {
            Some(window) => window.join(file.as_raw_fd().to_string()),
            None => path_of(file),
        }
    }

    /// What arms `target` in this run, if that is a static program and one of the modules.
    ///
    /// # Errors
    /// Where a file cannot be read, or something is asked for that takes an agent.
    pub fn outside(&self, target: &Target) -> Result<Option<Outside>, OutsideError> {
        let executable = |armed: &&Armed| armed.module.is_program(target);
        let Some(armed) = self.modules.iter().find(executable) else {
            return Ok(None);
        };
        if self.crashes.is_some() {
            return Err(OutsideError::NeedsAgent("--crashes"));
        }
        if self.forks == Forks::Separate {
            return Err(OutsideError::NeedsAgent("--fork separate"));
        }
        let image = armed.image.as_ref().unwrap_or(&armed.text);
        let outside = image.try_clone().and_then(|image| {
            let text = armed.text.try_clone()?;
            let is_alone = self.modules.len() == 1;
            Outside::of((armed.module.stamp, is_alone), (image, text), &armed.record)
        });
        let failed = |error| OutsideError::Io(armed.record.clone(), error);
        outside.map(Some).map_err(failed)
    }

    /// Writes what is known about the run; once when it begins, and once when it has ended.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn describe(
        &self,
        target: &Target,
        run: &Run,
        ended: Option<Ended>,
    ) -> Result<(), FolderError> {
        let path = self.path.join("run.json");
        let text = |text: &OsStr| text.to_string_lossy().into_owned();
        let modules = self.modules.iter().map(|armed| {
            json!({
                "path": text_of(&armed.module.path),
                "build_id": armed.module.id.build_id().map(hexadecimal),
                "stem": armed.module.stem,
            })
        });
        let document = json!({
            "schema": "tomo.run/1",
            "id": hexadecimal(&self.id),
            "command": run.command.iter().map(|word| text(word)).collect::<Vec<_>>(),
            "program": text_of(&target.executable),
            "modules": modules.collect::<Vec<_>>(),
            "started": humantime::format_rfc3339_millis(run.started).to_string(),
            "outcome": ended.map(|ended| match ended {
                Ended::Exited(code) => json!({ "exit": code }),
                Ended::Killed(signal) => json!({ "signal": signal }),
            }),
        });
        let document = format!("{document:#}\n");
        let written = match ended {
            None => begin(&path, &document),
            Some(_) => conclude(&path, &document),
        };
        written.map_err(|error| FolderError::Io(path, error))
    }

    /// What the agent said about each module.
    pub fn lives(&self) -> impl Iterator<Item = (&Armed, Option<Live>)> {
        self.modules
            .iter()
            .map(|armed| (armed, read_live(&armed.record).ok()))
    }
}

/// Room left behind a document for what its end adds: replacing a file costs a short program's time.
const ROOM: usize = 64;

/// Writes a new document, with room behind it.
fn begin(path: &Path, document: &str) -> io::Result<()> {
    let mut file = private::create(path)?;
    file.write_all(format!("{document}{:ROOM$}", "").as_bytes())
}

/// Writes a document over the one before, by one call, if it takes no more room than that has.
fn conclude(path: &Path, document: &str) -> io::Result<()> {
    let file = private::open(path, true)?;
    let room = usize::try_from(file.metadata()?.len()).unwrap_or(0);
    if document.len() > room {
        return private::replace(path, &[document.as_bytes()]);
    }
    let mut bytes = document.as_bytes().to_vec();
    bytes.resize(room, b' ');
    file.write_all_at(&bytes, 0)
}

/// A new record without marks, with room on the disk for all of them.
pub(crate) fn write_record(
    path: &Path,
    module: ModuleId,
    plan: u64,
    probes: u32,
    run: [u8; 16],
) -> io::Result<File> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |since| since.as_nanos() as i64);
    let record = Record::of(module, plan, probes, run, now);
    let file = private::create(path)?;
    private::allocate(&file, record.length().max(MARKS))?;
    file.write_all_at(&record.sealed(), 0)?;
    Ok(file)
}

/// What the roster is called in the folder of a run.
pub(crate) const ROSTER: &str = "roster";

/// What the file of slabs is called in the folder of a run.
pub const SLABS: &str = "slabs";

/// A new file of slabs of so many bytes each, none of them handed out.
pub(crate) fn write_slabs(path: &Path, size: u32, contents: Contents) -> io::Result<()> {
    let header = Slabs::of(size.into(), contents);
    let header = header.ok_or_else(|| io::Error::other("too many counters"))?;
    let file = private::create(path)?;
    private::allocate(&file, Slabs::head())?;
    file.write_all_at(header.as_bytes(), 0)
}

/// What the file of crashes is called in the folder of a run.
pub const CRASHES: &str = "crashes";

/// A new file without crashes, with room on the disk for all of them.
pub(crate) fn write_crashes(path: &Path, run: [u8; 16]) -> io::Result<()> {
    let file = private::create(path)?;
    private::allocate(&file, crash::LENGTH)?;
    file.write_all_at(&Crashes::sealed(run), 0)
}

/// A module in a roster.
pub(crate) struct Listed {
    pub(crate) module: ModuleId,
    /// The paths of its image and of its record.
    pub(crate) image: OsString,
    pub(crate) record: OsString,
    /// The path of a copy of the image's text, and its inode, if that is not shared.
    pub(crate) text: Option<(OsString, u64)>,
    /// Whether it may be loaded after the start.
    pub(crate) late: bool,
    /// Whose records there are.
    pub(crate) forks: Forks,
}

/// The files of a run that all its modules have in common, by path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Files<'f> {
    /// Slabs of counters.
    pub(crate) slabs: Option<&'f OsStr>,
    /// Crashes.
    pub(crate) crashes: Option<&'f OsStr>,
}

/// A roster's bytes.
pub(crate) fn roster_bytes(modules: impl Iterator<Item = Listed>, files: Files<'_>) -> Vec<u8> {
    let mut entries = Vec::new();
    let mut paths = Vec::new();
    let mut put = |path: &OsStr| -> U32 {
        let start = paths.len() as u32;
        paths.extend_from_slice(path.as_bytes());
        paths.push(0);
        start.into()
    };
    for listed in modules {
        let image = put(&listed.image);
        entries.push(roster::Entry {
            module: listed.module,
            image,
            text: listed.text.as_ref().map_or(image, |(text, _)| put(text)),
            inode: listed.text.as_ref().map_or(0, |(_, inode)| *inode).into(),
            record: put(&listed.record),
            late: u32::from(listed.late).into(),
            separate: u32::from(listed.forks == Forks::Separate).into(),
        });
    }
    let slabs = files.slabs.map(|path| put(path).get());
    let crashes = files.crashes.map(|path| put(path).get());
    let body = [entries.as_bytes(), &paths].concat();
    let header = Roster::sealed(&entries, &paths, (slabs, crashes), checksum(&body));
    [&header[..], &body].concat()
}

/// A file that has no name and lives as long as somebody has it open or mapped.
pub(crate) fn memory_file(name: &std::ffi::CStr) -> io::Result<File> {
    let file = File::from(memfd_create(name, MFdFlags::MFD_CLOEXEC)?);
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Where other processes find an open file of this one.
pub(crate) fn path_of(file: &File) -> PathBuf {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into()
}

/// The image, and a file in memory with what a run changes of it, at the same places: the text. Copying all
/// of it takes longer than many a program runs. Where nothing may be executed from the cache, all of it
/// is copied nevertheless, and there is no other image.
fn own_text(baked: &Baked) -> io::Result<(Option<File>, File)> {
    let mut image = private::open(&baked.image, false)?;
    let mut text = memory_file(c"tomo:text")?;
    if fstatvfs(&image)?.flags().contains(FsFlags::ST_NOEXEC) {
        io::copy(&mut image, &mut text)?;
        return Ok((None, text));
    }
    copy_text(&mut image, &baked.header, &mut text)?;
    Ok((Some(image), text))
}

/// Copies what a run changes of an image, at the same places.
pub(crate) fn copy_text(image: &mut File, header: &Image, text: &mut File) -> io::Result<()> {
    text.set_len(header.length.get())?;
    for region in header.regions() {
        let start = SeekFrom::Start(region.offset.get());
        image.seek(start)?;
        text.seek(start)?;
        io::copy(&mut (&mut *image).take(region.length.get()), text)?;
    }
    Ok(())
}

fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to).or_else(|_| fs::copy(from, to).map(|_| ()))
}
