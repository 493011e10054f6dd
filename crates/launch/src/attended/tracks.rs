//! What attended threads record: the words that witnesses in the process itself would append.

use std::io;

use tomo_weave::Breakpoint;
use tomo_wire::tracing::{BEGIN, Origin, signal};

/// Takes what is recorded: the number of a track, how many bytes it had before, and what follows.
pub type Keep<'k> = &'k mut (dyn FnMut(u32, u64, &[u8]) -> io::Result<()> + Send);

/// Bytes that are kept back at most.
const MOST: usize = 1 << 16;

/// The tracks of a run.
pub(super) struct Tracks<'k> {
    keep: Keep<'k>,
    /// Of each track how many bytes were handed on, and those that were not yet.
    tracks: Vec<(u64, Vec<u8>)>,
    /// Why no more is recorded.
    pub(super) failed: Option<io::Error>,
}

impl<'k> Tracks<'k> {
    pub(super) fn new(keep: Keep<'k>) -> Self {
        Self {
            keep,
            tracks: Vec::new(),
            failed: None,
        }
    }

    /// The track of a thread that begins, as the copy of that of this other track, which forks just now, if it is one.
    pub(super) fn begin(&mut self, process: i32, thread: i32, parent: Option<usize>) -> usize {
        let track = self.tracks.len();
        self.tracks.push((0, Vec::new()));
        for word in [BEGIN, process as u32, thread as u32, track as u32 + 1] {
            self.add(track, word);
        }
        if let Some(parent) = parent {
            let (before, bytes) = &self.tracks[parent];
            let origin = Origin {
                serial: parent as u32,
                words: (before + bytes.len() as u64) / 4,
            };
            for word in origin.words() {
                self.add(track, word);
            }
        }
        track
    }

    fn add(&mut self, track: usize, word: u32) {
        self.tracks[track].1.extend(word.to_le_bytes());
        if self.tracks[track].1.len() >= MOST {
            self.hand_on(track);
        }
    }

    /// Control has come to a breakpoint, with this stack pointer, and its instruction was or will be executed.
    pub(super) fn arrive(&mut self, track: usize, point: &Breakpoint, stack: u64) {
        if let Some((witness, with_stack)) = point.arrival {
            self.add(track, witness + 1);
            if with_stack {
                self.add(track, stack as u32);
            }
        }
        if let Some(witness) = point.node {
            self.add(track, witness + 1);
        }
    }

    /// A signal came where the instruction at this address, as the module states it, was next; the arrival at its handler
    /// follows.
    pub(super) fn interrupted(&mut self, track: usize, address: u64) {
        for word in signal(address) {
            self.add(track, word);
        }
    }

    /// The instruction at a breakpoint was executed and led to this address, as the module states it.
    pub(super) fn lead(&mut self, track: usize, point: &Breakpoint, to: u64) {
        let way = point.ways.iter().find(|(leads_to, _)| *leads_to == to);
        if let Some((_, witness)) = way {
            self.add(track, witness + 1);
        }
    }

    /// Hands on what was kept back of a track.
    pub(super) fn hand_on(&mut self, track: usize) {
        let (before, bytes) = &mut self.tracks[track];
        if self.failed.is_none() && !bytes.is_empty() {
            self.failed = (self.keep)(track as u32, *before, bytes).err();
        }
        *before += bytes.len() as u64;
        bytes.clear();
    }

    /// Hands on all of them.
    pub(super) fn finish(&mut self) {
        (0..self.tracks.len()).for_each(|track| self.hand_on(track));
    }
}
