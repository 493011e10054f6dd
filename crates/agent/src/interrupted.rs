//! Where this thread goes on when the handlers of signals that it is in return.
//!
//! The kernel puts a frame on the stack before it calls a handler (`frame.rs`): the address to which the handler returns, which whoever set the handler named,
//! then the interrupted context. So the stack is searched, from here to its end, for the addresses that the
//! kernel was told. Where a frame says that another stack was interrupted, that one is searched, too. A
//! frame that a handler left behind by a jump may be found as well; that does no harm. Programs keep such addresses, too, as
//! what `sigaction` has told them; behind those there is no context of 64-bit code.

use tomo_wire::crash::register::RSP;

use crate::frame::Frame;
use crate::origins;
use crate::system::{self, Errno};

/// Signals there are.
const SIGNALS: usize = 64;
/// Different addresses to which handlers return, at most; all of a C library's have one.
const RESTORERS: usize = 8;
/// Frames on all stacks at most.
const FRAMES: usize = 64;
/// Stacks at most.
const STACKS: usize = 8;
/// Bytes of a stack that are searched at most.
const DEEPEST: usize = 64 << 20;
/// Where stack pointer, instruction pointer, flags and segments are in a frame, in bytes.
const POINTERS: usize = Frame::REGISTERS + 8 * RSP;
/// The segment of 64-bit code (Linux, `__USER_CS`).
const CODE: usize = 0x33;
/// The flag that is always set (Intel SDM vol. 1, §3.4.3), and all that may be.
const ALWAYS: usize = 1 << 1;
const FLAGS: usize = (1 << 22) - 1;
/// The kernel's word for "too much".
const TOO_MUCH: Errno = Errno(7);

/// A list of addresses, with room for `N`.
struct List<const N: usize> {
    items: [usize; N],
    length: usize,
}

impl<const N: usize> List<N> {
    fn new() -> Self {
        Self {
            items: [0; N],
            length: 0,
        }
    }

    fn all(&self) -> &[usize] {
        self.items.get(..self.length).unwrap_or(&[])
    }

    fn add(&mut self, item: usize) -> Result<(), Errno> {
        if self.all().contains(&item) {
            return Ok(());
        }
        *self.items.get_mut(self.length).ok_or(TOO_MUCH)? = item;
        self.length += 1;
        Ok(())
    }
}

/// The places in the program at which signals have interrupted this thread.
pub(crate) struct Interrupted(List<FRAMES>);

impl Interrupted {
    /// Their addresses.
    pub(crate) fn places(&self) -> &[usize] {
        self.0.all()
    }

    /// Looks for them.
    pub(crate) fn find() -> Result<Self, Errno> {
        let mut restorers = List::new();
        restorers.add(origins::way_back())?;
        for signal in 1..=SIGNALS {
            if let Some(restorer) = system::restorer_of(signal) {
                restorers.add(restorer)?;
            }
        }
        let mut search = Search {
            restorers,
            stacks: List::new(),
            places: List::new(),
        };
        let here = 0_usize;
        search.stacks.add((&raw const here) as usize / 8 * 8)?;
        let mut next = 0;
        while let Some(stack) = search.stacks.all().get(next).copied() {
            search.walk(stack)?;
            next += 1;
        }
        Ok(Self(search.places))
    }
}

/// How many bytes from `start` on may be stack. A C library has a thread's control block at the upper end of the stack that it
/// makes for it; what is mapped behind that is somebody else's.
fn size_above(start: usize) -> usize {
    match system::control_block().checked_sub(start) {
        Some(size) if size < DEEPEST => size,
        _ => DEEPEST,
    }
}

struct Search {
    restorers: List<RESTORERS>,
    stacks: List<STACKS>,
    places: List<FRAMES>,
}

impl Search {
    /// Searches the stack from `start` upwards.
    fn walk(&mut self, start: usize) -> Result<(), Errno> {
        let mut words = [0; 512];
        let mut at = start;
        let size = size_above(start);
        while at.wrapping_sub(start) < size {
            // To the end of a page: what is behind it may be no memory.
            let room = (4096 - at % 4096) / 8;
            let count = system::peek(at, words.get_mut(..room).unwrap_or(&mut []))?;
            if count == 0 {
                break;
            }
            for (number, word) in words.iter().take(count).enumerate() {
                if self.restorers.all().contains(word) {
                    self.look(start, at.wrapping_add(number * 8))?;
                }
            }
            at = at.wrapping_add(room * 8);
        }
        Ok(())
    }

    /// Reads what looks like a frame at `address`, on the stack that is searched from `start`.
    fn look(&mut self, start: usize, address: usize) -> Result<(), Errno> {
        let mut context = [0; 4];
        let count = system::peek(address.wrapping_add(POINTERS), &mut context)?;
        let [stack, place, flags, segments] = context;
        let mut link = [0];
        let _ = system::peek(address.wrapping_add(Frame::UNUSED), &mut link)?;
        let is_context = flags & !FLAGS == 0 && flags & ALWAYS != 0 && segments & 0xffff == CODE;
        if count < context.len() || !is_context {
            return Ok(());
        }
        self.places.add(origins::truly(place, link[0]))?;
        let is_here = stack > address && stack.wrapping_sub(start) < DEEPEST;
        if is_here {
            return Ok(());
        }
        self.stacks.add(stack / 8 * 8)
    }
}
