//! A program that is linked statically is armed from outside.
//!
//! No loader brings an agent into it. So the launcher stops it before its first instruction, has it make the few system calls
//! by which an agent maps an image, and lets go of it: from then on nobody attends to it, and it runs at its own speed.
//!
//! What follows from there being no agent:
//!
//! - Nobody handles traps, so images of such programs have none ([`Observed::bears_no_traps`](crate::Observed::bears_no_traps)), and blocks that would need one are
//!   not observed but where they follow from others.
//! - A process that it forks shares its text and its record. What it executes, be it itself, is another program, which is not observed.
//! - Nobody gives it its text back where it would change that. So it cannot be made writable: what it shares with those that it forks, or
//!   with all that use a pool or an installation of a fleet, nobody changes but probes that vanish.
//!
//! **Why the program does not notice.** When it is let go its registers and the signals that it blocks are what they were, the files by
//! which the image was mapped are closed, and all that is new in its memory lies where nothing was. If anything fails before its text is mapped,
//! it runs as it is, and the record says why. Should this process be killed in the midst of that, so is the program, which has done nothing yet.
//!
//! | part | file |
//! |---|---|
//! | what is mapped | this |
//! | the program makes system calls for us | `outside/stopped.rs` |
//! | the record says what became of it | `outside/noted.rs` |

mod noted;
mod stopped;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use nix::libc;
use nix::sys::ptrace::Options;
use tomo_wire::image::{Image, Region};
use tomo_wire::record::{MARKS, Reason};
use tomo_wire::{FileStamp, PAGE};

use crate::attended::held::{self, Hold};
use crate::folder::path_of;
use crate::modules::stamp_of;
use crate::{auxiliary, private, start};
use stopped::Stopped;

/// What arms a static program: an image with its text, and a record.
#[derive(Debug)]
pub struct Outside {
    /// The program's file, as it was when it was observed.
    stamp: FileStamp,
    image: Image,
    image_file: File,
    text: File,
    /// The same, to be read only: what is mapped of it the program cannot make writable.
    executed: File,
    record: File,
    /// Whether nothing else is observed, so that no agent is of use to what it starts.
    pub(crate) is_alone: bool,
}

/// Why nothing can arm a static program.
#[derive(Debug, thiserror::Error)]
pub enum OutsideError {
    /// A file cannot be read, or is not what it should be.
    #[error("{path}: {1}", path = .0.display())]
    Io(PathBuf, io::Error),
    /// What was asked for is done by the agent.
    #[error("it is statically linked, so no agent can be loaded into it, which {0} takes")]
    NeedsAgent(&'static str),
}

/// Why a program is not armed.
#[derive(Debug)]
struct Refused {
    reason: Reason,
    errno: i32,
}

impl From<Reason> for Refused {
    fn from(reason: Reason) -> Self {
        Self { reason, errno: 0 }
    }
}

/// What the system refused, as a reason.
fn failed(reason: Reason) -> impl Fn(io::Error) -> Refused {
    move |error| Refused {
        reason,
        errno: error.raw_os_error().unwrap_or(0),
    }
}

/// What is mapped, in a program whose image goes there.
struct Mapping<'f> {
    to: u64,
    length: u64,
    access: i32,
    file: &'f File,
    from: u64,
}

const EXECUTED: i32 = libc::PROT_READ | libc::PROT_EXEC;
const WRITTEN: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// Where the header of an ELF file states where the program begins.
const ENTRY_AT: u64 = 24;

impl Outside {
    /// The image of the program whose file has this `stamp`, and which `is_alone` if no other module is observed, in `image_file`, what
    /// of it is changed in `text`, and the record at `record`.
    ///
    /// # Errors
    /// Where a file cannot be read, or is not what it should be.
    pub(crate) fn of(
        (stamp, is_alone): (FileStamp, bool),
        (image_file, text): (File, File),
        record: &Path,
    ) -> io::Result<Self> {
        let mut head = [0; size_of::<Image>()];
        image_file.read_exact_at(&mut head, 0)?;
        let length = image_file.metadata()?.len();
        let image = Image::read(&head, length);
        let image = image.map_err(|refusal| io::Error::other(refusal.to_string()))?;
        if image.window_count.get() > 0 {
            return Err(io::Error::other("has probes that trap"));
        }
        Ok(Self {
            stamp,
            image,
            image_file,
            executed: File::open(path_of(&text))?,
            text,
            record: private::open(record, true)?,
            is_alone,
        })
    }

    /// The files by which it is mapped.
    fn files(&self) -> [RawFd; 4] {
        let files = [&self.image_file, &self.text, &self.executed, &self.record];
        files.map(|file| file.as_raw_fd())
    }

    /// Starts the program of `command`, called as `name`, armed if that is possible; else the record says why not.
    pub(crate) fn spawn(&self, command: Command, name: &OsStr) -> io::Result<Child> {
        if !stopped::is_possible() {
            let _ = noted::refused(&self.record, Reason::Unattended, libc::ENOSYS);
            return start::spawn(command, name);
        }
        let options = Options::PTRACE_O_TRACEEXEC
            | Options::PTRACE_O_TRACESYSGOOD
            | Options::PTRACE_O_EXITKILL;
        let hold = Hold::of(options, &self.files());
        let (child, armed) =
            held::begin((command, name), hold, |process, refused| match refused {
                Some(error) => Err(failed(Reason::Unattended)(error)),
                None => self.arm(process),
            })?;
        if let Err(refused) = armed {
            let _ = noted::refused(&self.record, refused.reason, refused.errno);
        }
        Ok(child)
    }

    /// Arms a process that is about to become the program, and lets go of it.
    fn arm(&self, process: i32) -> Result<(), Refused> {
        let stopped = Stopped::at_start(process).map_err(failed(Reason::Unattended))?;
        let mapped = self.map(&stopped, process);
        if mapped.is_ok() {
            // What cannot be noted is missing in the report, which says that of no process is anything known.
            let _ = noted::armed(&self.record, process);
        }
        // Whatever has become of that, the program finds no file of ours.
        for file in self.files() {
            let _ = stopped.call(libc::SYS_close, [file as u64, 0, 0, 0, 0, 0]);
        }
        mapped
    }

    fn map(&self, stopped: &Stopped, process: i32) -> Result<(), Refused> {
        let origin = self.origin(process)?;
        let texts = self
            .texts(process, origin)
            .map_err(failed(Reason::OtherLayout))?;
        let start = origin.wrapping_add_signed(self.image.distance.get());
        let length = self.image.companion_length();
        reserve(stopped, start, length).map_err(failed(Reason::NoRoom))?;
        let companions = self.companions(origin);
        let mut each = companions.iter().chain(texts.first());
        if let Err(error) = each.try_for_each(|one| map(stopped, one)) {
            // Nothing leads there.
            let _ = stopped.call(libc::SYS_munmap, [start, length, 0, 0, 0, 0]);
            return Err(failed(Reason::NotMapped)(error));
        }
        // What is not mapped after the first was stays as it is.
        let rest = texts.iter().skip(1);
        rest.for_each(|one| _ = map(stopped, one));
        Ok(())
    }

    /// Where the first region of the program's text is in this process, if it is that program.
    fn origin(&self, process: i32) -> Result<u64, Refused> {
        let executed = File::open(format!("/proc/{process}/exe"));
        let executed = executed.map_err(failed(Reason::ModuleChanged))?;
        let found = executed.metadata().map_err(failed(Reason::ModuleChanged))?;
        if stamp_of(&found) != self.stamp {
            return Err(Reason::ModuleChanged.into());
        }
        let mut stated = [0; 8];
        let read = executed.read_exact_at(&mut stated, ENTRY_AT);
        read.map_err(failed(Reason::ModuleChanged))?;
        let loaded = auxiliary::value(process, auxiliary::ENTRY);
        let loaded = loaded.map_err(failed(Reason::OtherLayout))?;
        let bias = loaded.wrapping_sub(u64::from_le_bytes(stated));
        match self.image.regions() {
            [first, ..] => Ok(first.address.get().wrapping_add(bias)),
            [] => Err(Reason::ImageRefused.into()),
        }
    }

    /// All but the text: trampolines, marks, and the text once more to be written.
    fn companions(&self, origin: u64) -> Vec<Mapping<'_>> {
        let image = &self.image;
        let at = |distance: i64| origin.wrapping_add_signed(distance);
        let code = Mapping {
            to: at(image.distance.get()),
            length: image.trampolines_length.get(),
            access: EXECUTED,
            file: &self.image_file,
            from: image.trampolines.get(),
        };
        let marks = Mapping {
            to: at(image.marks_distance()),
            length: image.marks_length(),
            access: WRITTEN,
            file: &self.record,
            from: MARKS,
        };
        let alias = |(index, region): (usize, &Region)| Mapping {
            to: at(image.alias_distance(index)),
            length: region.length.get(),
            access: WRITTEN,
            file: &self.text,
            from: region.offset.get(),
        };
        let aliases = image.regions().iter().enumerate().map(alias);
        let all = [code, marks].into_iter().chain(aliases);
        all.filter(|mapping| mapping.length > 0).collect()
    }

    /// The patched text, over the program's own; but for its first page, if that has the header of the program's file and is not
    /// changed: others look for the file by what is mapped there.
    fn texts(&self, process: i32, origin: u64) -> io::Result<Vec<Mapping<'_>>> {
        let memory = File::open(format!("/proc/{process}/mem"))?;
        let stated = |region: &Region| region.address.get();
        let first = self.image.regions().first().map_or(0, stated);
        let each = self.image.regions().iter().map(|region| {
            let to = origin.wrapping_add(stated(region).wrapping_sub(first));
            let [mut own, mut patched] = [[0; PAGE as usize]; 2];
            memory.read_exact_at(&mut own, to)?;
            self.text.read_exact_at(&mut patched, region.offset.get())?;
            let kept = match own.starts_with(b"\x7fELF") && own == patched {
                true => PAGE,
                false => 0,
            };
            Ok(Mapping {
                to: to + kept,
                length: region.length.get() - kept,
                access: EXECUTED,
                file: &self.executed,
                from: region.offset.get() + kept,
            })
        });
        let all: io::Result<Vec<_>> = each.collect();
        Ok(all?
            .into_iter()
            .filter(|mapping| mapping.length > 0)
            .collect())
    }
}

/// Sees to it that nobody else gets this memory, where nothing may be.
fn reserve(stopped: &Stopped, start: u64, length: u64) -> io::Result<()> {
    let flags =
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    let nothing = [
        start,
        length,
        libc::PROT_NONE as u64,
        flags as u64,
        u64::MAX,
        0,
    ];
    let got = stopped.call(libc::SYS_mmap, nothing)?;
    if got == start {
        return Ok(());
    }
    // Kernels before 4.17 take the address for a wish.
    stopped.call(libc::SYS_munmap, [got, length, 0, 0, 0, 0])?;
    Err(io::Error::from_raw_os_error(libc::EEXIST))
}

fn map(stopped: &Stopped, mapping: &Mapping<'_>) -> io::Result<()> {
    let flags = (libc::MAP_SHARED | libc::MAP_FIXED) as u64;
    let file = mapping.file.as_raw_fd() as u64;
    let Mapping {
        to,
        length,
        access,
        from,
        ..
    } = *mapping;
    stopped.call(
        libc::SYS_mmap,
        [to, length, access as u64, flags, file, from],
    )?;
    Ok(())
}
