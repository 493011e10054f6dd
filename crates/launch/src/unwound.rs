//! Crashes read and unwound afterwards, with the unwind tables of the modules that were loaded.
//!
//! What the agent kept is registers, a part of the stack and a list of modules (`tomo_wire::crash`); a crashed
//! program may have written any of it, so files are looked for by path and held against their build ids, and
//! a frame is told only where a table of its module covers it: where none does, or the stack was not kept, the frames end
//! and that is said. Frames of signals lead to what they interrupted, by the registers that the kernel put there.
//! A thread that went where no code is is told from where it was called.
//!
//! Unwinding itself is done by `framehop` (the DWARF 5 standard §6.4, as the System V ABI has it).

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use framehop::x86_64::{CacheX86_64, Reg, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder as _};
use tomo_program::{Address, Binary, open_regular, read_regular, unwind};
use tomo_wire::Refusal;
use tomo_wire::crash::{self, Loaded, register};

/// Frames of a crash at most.
const MOST_FRAMES: usize = 256;

/// A module of a process that crashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrashedModule {
    /// Its file, as the loader called it.
    pub path: PathBuf,
    /// Its build id; empty where it has none.
    pub build_id: Vec<u8>,
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Which of the crash's modules its code is in, if any.
    pub module: Option<usize>,
    /// The instruction, as the module states it: the one at which the signal came, or one inside of the call that
    /// had not returned; the loaded address where there is no module.
    pub address: u64,
}

/// Why frames end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The thread begins there.
    Whole,
    /// No unwind table covers the last one, or it cannot be read.
    NoTable,
    /// The stack was not kept any further.
    NoStack,
    /// There are more than are told.
    TooMany,
}

/// A thread that got a fatal signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    /// The process, and the thread.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// The signal.
    pub signal: i32,
    /// Its cause, as the kernel numbers them.
    pub code: i32,
    /// The address that could not be used, where the signal has one.
    pub address: u64,
    /// Whether the program has a handler of its own, which may have gone on.
    pub handled: bool,
    /// The innermost first.
    pub frames: Vec<Frame>,
    /// Why they end.
    pub end: End,
    /// What frames refer to.
    pub modules: Vec<CrashedModule>,
}

/// Why crashes cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CrashError {
    /// The file cannot be read.
    #[error("{path}: {1}", path = .0.display())]
    Io(PathBuf, io::Error),
    /// It is damaged.
    #[error("{path}: {1}", path = .0.display())]
    Refused(PathBuf, Refusal),
}

/// The crashes of a run, and how many of its processes crashed besides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Crashes {
    /// A process each.
    pub kept: Vec<Crash>,
    /// Processes that crashed and were not kept.
    pub more: u32,
}

/// Reads the `file` of crashes of a run of `program`.
///
/// # Errors
/// Where the file cannot be read, or is none.
pub fn crashes(file: &Path, program: &Path) -> Result<Crashes, CrashError> {
    let bytes = kept(file).map_err(|error| CrashError::Io(file.into(), error))?;
    let refused = |refusal| CrashError::Refused(file.into(), refusal);
    let (slots, more) = crash::Crash::all(&bytes).map_err(refused)?;
    let kept = slots.map(|slot| Reading::of(&slot, program).crash());
    Ok(Crashes {
        kept: kept.collect(),
        more,
    })
}

/// The content of a file of crashes. It may have been made as long as somebody likes.
fn kept(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open_regular(file)?;
    file.take(crash::LENGTH).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The tables of a module.
struct Tables {
    /// What they cover, and whether that is where handlers of signals return to; as stated.
    covered: Vec<(Range<u64>, bool)>,
}

impl Tables {
    /// Whether a table covers the stated `address`, and whether handlers return there.
    fn cover(&self, address: u64) -> Option<bool> {
        let behind = self
            .covered
            .partition_point(|(range, _)| range.start <= address);
        let mut before = self.covered.get(..behind)?.iter().rev().take(4);
        let found = before.find(|(range, _)| range.contains(&address));
        found.map(|(_, signal)| *signal)
    }
}

/// A slot that is read.
struct Reading<'r> {
    slot: &'r crash::Crash<'r>,
    paths: Vec<PathBuf>,
    unwinder: UnwinderX86_64<Vec<u8>>,
    cache: CacheX86_64,
    tables: HashMap<usize, Tables>,
}

impl<'r> Reading<'r> {
    fn of(slot: &'r crash::Crash<'r>, program: &Path) -> Self {
        let path = |module: &Loaded| match module.path() {
            [] => program.to_path_buf(),
            path => PathBuf::from(std::ffi::OsStr::from_bytes(path)),
        };
        let mut reading = Self {
            slot,
            paths: slot.modules.iter().map(path).collect(),
            unwinder: UnwinderX86_64::new(),
            cache: CacheX86_64::new(),
            tables: HashMap::new(),
        };
        for number in 0..slot.modules.len() {
            if let Some(tables) = reading.read(number) {
                reading.tables.insert(number, tables);
            }
        }
        reading
    }

    /// Reads the tables of a module, unless its file is another one by now.
    fn read(&mut self, number: usize) -> Option<Tables> {
        let loaded = self.slot.modules.get(number)?;
        let bytes = read_regular(self.paths.get(number)?).ok()?;
        let binary = Binary::parse(&bytes).ok()?;
        (binary.build_id().unwrap_or_default() == loaded.id()).then_some(())?;
        let section = |name: &str| binary.section(name);
        let range = |name: &str| {
            let section = section(name)?;
            let start = section.address.0;
            Some(start..start + section.data.len() as u64)
        };
        let data = |name: &str| section(name).map(|section| section.data.to_vec());
        let bias = loaded.bias.get() as u64;
        let info = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: range(".text"),
            text: data(".text"),
            got_svma: range(".got"),
            eh_frame_svma: range(".eh_frame"),
            eh_frame: data(".eh_frame"),
            eh_frame_hdr_svma: range(".eh_frame_hdr"),
            eh_frame_hdr: data(".eh_frame_hdr"),
            ..ExplicitModuleSectionInfo::default()
        };
        let code = loaded.start.get()..loaded.end.get();
        let module = Module::new(number.to_string(), code, bias, info);
        self.unwinder.add_module(module);
        let functions = unwind::read(&binary).functions.into_iter();
        let covered = functions.map(|one| {
            let range = one.range.start().0..one.range.end().0;
            (range, one.signal_frame)
        });
        Some(Tables {
            covered: covered.collect(),
        })
    }

    /// The module that has the loaded `address`, and the address as it states it.
    fn module_of(&self, address: u64) -> Option<(usize, u64)> {
        let mut modules = self.slot.modules.iter().enumerate();
        let (number, module) = modules.find(|(_, module)| module.holds(address))?;
        Some((number, address.wrapping_sub(module.bias.get() as u64)))
    }

    fn crash(mut self) -> Crash {
        let head = &self.slot.head;
        let (frames, end) = self.frames();
        let modules = self.slot.modules.iter().zip(&self.paths);
        Crash {
            process: head.process.get(),
            thread: head.thread.get(),
            signal: head.signal.get() as i32,
            code: head.code.get(),
            address: head.address.get(),
            handled: head.handled.get() != 0,
            frames,
            end,
            modules: modules
                .map(|(loaded, path)| CrashedModule {
                    path: path.clone(),
                    build_id: loaded.id().to_vec(),
                })
                .collect(),
        }
    }

    /// Where the thread would have come back to that was about to execute what cannot be executed, as behind a null pointer
    /// to a function: nothing has happened there, so what called it left its address where the stack pointer leads.
    fn behind_wild_call(&self, registers: &UnwindRegsX86_64) -> Option<FrameAddress> {
        let pointer = registers.ip();
        let is_wild = self.slot.head.address.get() == pointer && self.module_of(pointer).is_none();
        let behind = self.slot.word(registers.sp()).filter(|_| is_wild)?;
        let (number, stated) = self.module_of(behind)?;
        let bytes = read_regular(self.paths.get(number)?).ok()?;
        let binary = Binary::parse(&bytes).ok()?;
        let before = |length: u64| {
            let code = binary.code_at(Address(stated.checked_sub(length)?))?;
            code.get(..length as usize)
        };
        /// Of indirect calls without prefixes, which may begin before: Intel SDM vol. 2, `CALL`, `FF /2`.
        const LENGTHS: [u64; 5] = [2, 3, 4, 6, 7];
        let mut calls = LENGTHS.into_iter().filter_map(before);
        let calls = calls.any(|code| code[0] == 0xff && code[1] >> 3 & 7 == 2)
            || before(5).is_some_and(|code| code[0] == 0xe8);
        FrameAddress::from_return_address(behind).filter(|_| calls)
    }

    fn frames(&mut self) -> (Vec<Frame>, End) {
        let mut registers = Registers::of(|number| Some(self.slot.register(number))).0;
        let mut at = FrameAddress::from_instruction_pointer(registers.ip());
        let mut frames = Vec::new();
        // Frames of signals are not told, and the stack may say that one leads to itself.
        for _ in 0..MOST_FRAMES {
            let looked_up = at.address_for_lookup();
            let found = self.module_of(looked_up);
            frames.push(match found {
                Some((module, address)) => Frame {
                    module: Some(module),
                    address,
                },
                None => Frame {
                    module: None,
                    address: looked_up,
                },
            });
            let tables = found.and_then(|(number, stated)| {
                let tables = self.tables.get(&number)?;
                tables.cover(stated)
            });
            let Some(signal) = tables else {
                let is_first = frames.len() == 1;
                let Some(behind) = self.behind_wild_call(&registers).filter(|_| is_first) else {
                    return (frames, End::NoTable);
                };
                registers.set_sp(registers.sp().wrapping_add(8));
                at = behind;
                continue;
            };
            if signal {
                // When a handler has returned the stack pointer is at the context of what was interrupted.
                frames.pop();
                let start = registers.sp().wrapping_add(register::IN_CONTEXT as u64);
                let word = |number: usize| self.slot.word(start.wrapping_add(8 * number as u64));
                let Some(Registers(interrupted)) = Registers::read(word) else {
                    return (frames, End::NoStack);
                };
                registers = interrupted;
                at = FrameAddress::from_instruction_pointer(registers.ip());
                continue;
            }
            let mut read = |address| self.slot.word(address).ok_or(());
            let next = self
                .unwinder
                .unwind_frame(at, &mut registers, &mut self.cache, &mut read);
            at = match next {
                Ok(None) => return (frames, End::Whole),
                Ok(Some(address)) => match FrameAddress::from_return_address(address) {
                    Some(next) => next,
                    None => return (frames, End::Whole),
                },
                Err(framehop::Error::CouldNotReadStack(_)) => return (frames, End::NoStack),
                Err(_) => return (frames, End::NoTable),
            };
        }
        (frames, End::TooMany)
    }
}

/// Registers as the unwinder wants them.
struct Registers(UnwindRegsX86_64);

impl Registers {
    fn of(word: impl Fn(usize) -> Option<u64>) -> Self {
        Self::read(&word).unwrap_or(Self(UnwindRegsX86_64::new(0, 0, 0)))
    }

    /// Those that `word` gives by their numbers in a context.
    fn read(word: impl Fn(usize) -> Option<u64>) -> Option<Self> {
        const ORDER: [Reg; 16] = [
            Reg::R8,
            Reg::R9,
            Reg::R10,
            Reg::R11,
            Reg::R12,
            Reg::R13,
            Reg::R14,
            Reg::R15,
            Reg::RDI,
            Reg::RSI,
            Reg::RBP,
            Reg::RBX,
            Reg::RDX,
            Reg::RAX,
            Reg::RCX,
            Reg::RSP,
        ];
        let (pointer, base) = (word(register::RSP)?, word(register::RBP)?);
        let mut registers = UnwindRegsX86_64::new(word(register::RIP)?, pointer, base);
        for (number, register) in ORDER.into_iter().enumerate() {
            registers.set(register, word(number)?);
        }
        Some(Self(registers))
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use tomo_wire::PAGE;
    use tomo_wire::crash::{Head, MODULES, SLOT, STACK, STATE, state};
    use zerocopy::IntoBytes as _;

    use super::*;

    /// What a file of crashes has of a thread in the C library that handlers of signals return to, if the context on its
    /// stack says that a signal has come just there.
    fn interrupted_where_handlers_return(library: &Path) -> Vec<u8> {
        const START: u64 = 1 << 32;
        let bytes = std::fs::read(library).expect("a library");
        let binary = Binary::parse(&bytes).expect("an ELF file");
        let mut functions = unwind::read(&binary).functions.into_iter();
        let returned_to = functions.find(|one| one.signal_frame);
        let address = returned_to.expect("handlers return").range.start().0 + 1;
        let mut head = Head::empty();
        head.registers[register::RIP] = address.into();
        head.registers[register::RSP] = START.into();
        head.stack_start = START.into();
        head.stack_length = (PAGE as u32).into();
        head.modules = 1.into();
        let mut loaded = Loaded::of(0, 0, START);
        loaded.set_id(binary.build_id().unwrap_or_default());
        loaded.set_path(library.as_os_str().as_bytes());
        let mut file = vec![0; crash::LENGTH as usize];
        let mut put = |at: u64, bytes: &[u8]| {
            file[at as usize..][..bytes.len()].copy_from_slice(bytes);
        };
        put(0, &crash::Crashes::sealed([0; 16]));
        put(PAGE, head.as_bytes());
        put(PAGE + STATE as u64, &state::WHOLE.to_le_bytes());
        put(PAGE + MODULES, loaded.as_bytes());
        let context = PAGE + STACK + register::IN_CONTEXT as u64;
        put(context, head.registers.as_bytes());
        assert!(context + size_of_val(&head.registers) as u64 <= PAGE + SLOT);
        file
    }

    #[test]
    fn a_signal_that_came_where_its_handler_returns_ends_the_frames() {
        let maps = std::fs::read("/proc/self/maps").expect("this process");
        let mut paths = maps.split(|byte| [b' ', b'\n'].contains(byte));
        let library = paths.find(|path| path.ends_with(b"/libc.so.6"));
        let library = Path::new(OsStr::from_bytes(library.expect("the C library")));
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("crashes");
        std::fs::write(&file, interrupted_where_handlers_return(library)).expect("written");
        let told = crashes(&file, library).expect("crashes");
        assert_eq!(told.kept.len(), 1);
        assert_eq!(
            (&*told.kept[0].frames, told.kept[0].end),
            (&[][..], End::TooMany)
        );
    }
}
