//! Crashes: what the agent keeps of a thread that gets a fatal signal, so that nobody needs core files or debuggers.
//!
//! A header page, then [`SLOTS`] slots, each for one process: a [`Head`] with the registers, the modules that were
//! loaded, and a bounded part of the stack from the stack pointer up. Nothing of the heap is in it. The agent maps the
//! file shared, so a slot outlives its process; it says last that it is whole. What stands in it a broken program may
//! have written, so nothing is believed that was not checked.

use core::mem::{offset_of, size_of};

use zerocopy::little_endian::{I32, I64, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::PAGE;
use crate::door::{Header, Preamble, Refusal, part};

/// The signals that are kept: those that a program's own fault raises. SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV.
pub const SIGNALS: [i32; 5] = [4, 6, 7, 8, 11];
/// Processes of a run of which a crash is kept.
pub const SLOTS: u32 = 4;
/// Modules of a slot at most.
pub const MOST_MODULES: usize = 64;
/// Bytes of a stack at most.
pub const MOST_STACK: usize = 32 << 10;
/// Where in a slot its modules start.
pub const MODULES: u64 = 512;
/// Where in a slot its part of the stack starts.
pub const STACK: u64 = MODULES + (MOST_MODULES * size_of::<Loaded>()) as u64;
/// Bytes of a slot.
pub const SLOT: u64 = (STACK + MOST_STACK as u64).next_multiple_of(PAGE);
/// Where the number of slots is that processes have asked for.
pub const TAKEN: u64 = 512;
/// Bytes of the file.
pub const LENGTH: u64 = PAGE + SLOTS as u64 * SLOT;

const _: () = assert!(size_of::<Head>() as u64 <= MODULES);
const _: () = assert!(size_of::<Crashes>() as u64 <= TAKEN);

/// The header of the file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Crashes {
    preamble: Preamble,
    /// Which run it belongs to.
    pub run: [u8; 16],
}

impl Header for Crashes {
    const MAGIC: [u8; 8] = *b"TOMOCRS\n";
    /// Before 3, registers were those of code that is executed elsewhere.
    const VERSION: u32 = 3;

    fn preamble(&mut self) -> &mut Preamble {
        &mut self.preamble
    }
}

impl Crashes {
    /// The header of a run's file as it is written.
    #[must_use]
    pub fn sealed(run: [u8; 16]) -> [u8; size_of::<Self>()] {
        let mut header = Self {
            run,
            ..Self::new_zeroed()
        };
        header.seal();
        zerocopy::transmute!(header)
    }

    /// The header of a file that has `length` bytes and starts with `bytes`.
    ///
    /// # Errors
    /// Where it is no such file, of another version, cut short or damaged.
    pub fn read(bytes: &[u8], length: u64) -> Result<Self, Refusal> {
        let header = <Self as Header>::open(bytes)?;
        match length < LENGTH {
            true => Err(Refusal::CutShort {
                length,
                promised: LENGTH,
            }),
            false => Ok(header),
        }
    }
}

/// How far the agent came with a slot.
pub mod state {
    /// Nothing is in it.
    pub const EMPTY: u32 = 0;
    /// It is being written.
    pub const BEGUN: u32 = 1;
    /// It is whole.
    pub const WHOLE: u32 = 2;
}

/// Which register is which of [`Head::registers`], in the order of the kernel's `gregset_t`.
pub mod register {
    /// Registers that are kept.
    pub const COUNT: usize = 17;
    /// Where the first is in a `ucontext_t`, in bytes; each has eight.
    pub const IN_CONTEXT: usize = 40;
    /// `rdi`.
    pub const RDI: usize = 8;
    /// `rsi`.
    pub const RSI: usize = 9;
    /// `rdx`.
    pub const RDX: usize = 12;
    /// `rbp`.
    pub const RBP: usize = 10;
    /// `rsp`.
    pub const RSP: usize = 15;
    /// `rip`.
    pub const RIP: usize = 16;
}

/// What is known of a crash beside modules and stack.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Head {
    /// One of [`state`].
    pub state: U32,
    /// The process.
    pub process: U32,
    /// The thread.
    pub thread: U32,
    /// The signal.
    pub signal: U32,
    /// What the kernel says of its cause: `si_code`.
    pub code: I32,
    /// 1 where the program has a handler of its own, and so may have gone on.
    pub handled: U32,
    /// Signals of the process that were kept, this the last of them.
    pub count: U64,
    /// The address that goes with the signal: `si_addr`.
    pub address: U64,
    /// The registers, those of an instruction of a module though it was executed elsewhere; see [`register`].
    pub registers: [U64; register::COUNT],
    /// Where in memory the part of the stack starts.
    pub stack_start: U64,
    /// Bytes of it.
    pub stack_length: U32,
    /// Modules.
    pub modules: U32,
}

impl Head {
    /// A head that says nothing.
    #[must_use]
    pub fn empty() -> Self {
        Self::new_zeroed()
    }
}

/// Where in a slot its state is.
pub const STATE: usize = offset_of!(Head, state);

/// Bytes of a build id that are kept.
pub const LONGEST_ID: usize = 32;
/// Bytes of a path that are kept.
pub const LONGEST_PATH: usize = 192;

/// A module that was loaded.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Loaded {
    /// From stated to loaded addresses.
    pub bias: I64,
    /// Where its code starts in memory.
    pub start: U64,
    /// Where it ends.
    pub end: U64,
    id_length: U32,
    path_length: U32,
    id: [u8; LONGEST_ID],
    path: [u8; LONGEST_PATH],
}

impl Loaded {
    /// Code of a module between these addresses, without a name so far.
    #[must_use]
    pub fn of(bias: u64, start: u64, end: u64) -> Self {
        Self {
            bias: (bias as i64).into(),
            start: start.into(),
            end: end.into(),
            ..Self::new_zeroed()
        }
    }

    /// Lets it have this build id, as far as it is kept.
    pub fn set_id(&mut self, id: &[u8]) {
        let length = copy(&mut self.id, id);
        self.id_length = length.into();
    }

    /// Lets it have this path, as far as it is kept.
    pub fn set_path(&mut self, path: &[u8]) {
        let length = copy(&mut self.path, path);
        self.path_length = length.into();
    }

    /// Its build id; empty where it has none.
    #[must_use]
    pub fn id(&self) -> &[u8] {
        self.id
            .get(..self.id_length.get() as usize)
            .unwrap_or_default()
    }

    /// Its path; empty for the program itself.
    #[must_use]
    pub fn path(&self) -> &[u8] {
        self.path
            .get(..self.path_length.get() as usize)
            .unwrap_or_default()
    }

    /// Whether the loaded `address` is code of it.
    #[must_use]
    pub fn holds(&self, address: u64) -> bool {
        (self.start.get()..self.end.get()).contains(&address)
    }
}

fn copy(to: &mut [u8], from: &[u8]) -> u32 {
    let mut length = 0;
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
        length += 1;
    }
    length
}

/// A crash.
#[derive(Clone, Copy, Debug)]
pub struct Crash<'f> {
    /// What is known beside modules and stack.
    pub head: Head,
    /// The modules that were loaded.
    pub modules: &'f [Loaded],
    /// The stack from [`Head::stack_start`] up.
    pub stack: &'f [u8],
}

impl<'f> Crash<'f> {
    /// The crashes in `file`, and how many processes crashed of which nothing could be kept.
    ///
    /// # Errors
    /// As for [`Crashes::read`].
    pub fn all(file: &'f [u8]) -> Result<(impl Iterator<Item = Self>, u32), Refusal> {
        Crashes::read(file, file.len() as u64)?;
        let taken = part(file, TAKEN, size_of::<U32>() as u64)?;
        let taken = U32::read_from_bytes(taken).map_or(0, U32::get);
        let slots = (0..u64::from(SLOTS)).filter_map(move |number| {
            let slot = part(file, PAGE + number * SLOT, SLOT).ok()?;
            Self::read(slot)
        });
        Ok((slots, taken.saturating_sub(SLOTS)))
    }

    fn read(slot: &'f [u8]) -> Option<Self> {
        let (head, _) = Head::read_from_prefix(slot).ok()?;
        (head.state.get() == state::WHOLE).then_some(())?;
        let count = (head.modules.get() as usize).min(MOST_MODULES);
        let modules = part(slot, MODULES, (count * size_of::<Loaded>()) as u64).ok()?;
        let length = (head.stack_length.get() as usize).min(MOST_STACK);
        Some(Self {
            head,
            modules: <[Loaded]>::ref_from_bytes(modules).ok()?,
            stack: part(slot, STACK, length as u64).ok()?,
        })
    }

    /// A register.
    #[must_use]
    pub fn register(&self, number: usize) -> u64 {
        self.head.registers.get(number).map_or(0, |word| word.get())
    }

    /// The eight bytes at `address` of the stack, as far as they were kept.
    #[must_use]
    pub fn word(&self, address: u64) -> Option<u64> {
        let at = address.checked_sub(self.head.stack_start.get())?;
        let at = usize::try_from(at).ok()?;
        let bytes = self.stack.get(at..at.checked_add(8)?)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}
