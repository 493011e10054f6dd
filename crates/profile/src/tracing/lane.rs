//! The events of one thread in one run, in order, and those of each function among them.

use std::collections::{HashMap, VecDeque};

use tomo_wire::tracing::{
    BEGIN, BEGIN_WORDS, FORKED, FORKED_WORDS, Origin, SIGNAL, Value, signal_at, value_of,
};

use super::{Atlas, Witness};

/// Words of a thread that begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its process.
    pub process: u32,
    /// Its number in the run, by when it was made.
    pub serial: u32,
    /// Of which other one it is the copy.
    pub origin: Option<Origin>,
    /// How many words of the track came before.
    pub before: usize,
    /// What it recorded.
    pub words: Vec<u32>,
}

impl Atlas<'_> {
    /// The threads in a track: who goes on in the slab of a thread that is gone records behind it.
    #[must_use]
    pub fn threads(&self, words: &[u32]) -> Vec<Thread> {
        let mut threads: Vec<Thread> = Vec::new();
        let (mut at, mut unwritten) = (0, 0);
        while let Some(&word) = words.get(at) {
            if let Some(&[BEGIN, process, _, serial]) = words.get(at..at + BEGIN_WORDS) {
                at += BEGIN_WORDS;
                let forked = words[at..].first_chunk::<FORKED_WORDS>();
                let forked = forked.filter(|words| words[0] == FORKED);
                at += forked.map_or(0, |words| words.len());
                threads.push(Thread {
                    process,
                    serial: serial.wrapping_sub(1),
                    origin: forked.copied().map(Origin::read),
                    before: at,
                    words: Vec::new(),
                });
                unwritten = 0;
                continue;
            }
            // What follows a number may look like anything.
            let next = (at + 1 + self.following(word)).min(words.len());
            if let Some(thread) = threads.last_mut() {
                // Places that nobody came to write count where something follows.
                if word == 0 {
                    unwritten += 1;
                } else {
                    let length = thread.words.len() + std::mem::take(&mut unwritten);
                    thread.words.resize(length, 0);
                    thread.words.extend(&words[at..next]);
                }
            }
            at = next;
        }
        threads
    }
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A witness of a function.
    Own(u32),
    /// A witness of a function, with what was in a register.
    Value { witness: u32, value: u64 },
    /// Control arrives at a block; with the low half of the stack pointer if that is recorded there.
    Arrival { block: u32, stack: u32 },
    /// A signal came, in this block if it is traced, before or behind its first instruction; the arrival at its
    /// handler follows.
    Signal { came: Option<(u32, bool)> },
}

/// No event.
pub(super) const NONE: u32 = u32::MAX;
/// Set in what stands for another event than a witness of a function.
const OTHER: u32 = 1 << 31;

/// Among how many values of a function the one is looked for with which control leaves a loop.
const MOST_WITHIN: usize = 64;

/// The events of one thread in one run.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    /// In order: a witness, or a position among the others.
    events: Vec<u32>,
    others: Vec<Event>,
    /// How many were passed.
    pub(super) position: usize,
    /// How many of them are those of the threads of which this one is the copy, from before it was.
    pub(super) inherited: usize,
    /// By function, in order: positions among events.
    of_function: Vec<u32>,
    /// Per function, where its next one is in that, and where its last one is.
    next: Vec<u32>,
    ends: Vec<u32>,
    /// By function, in order: values that were not passed, and whether control leaves a loop with them.
    values: HashMap<u32, VecDeque<(u32, u64, bool)>>,
    /// Whether there is a word that nobody came to write, or that means nothing, behind the last event.
    pub is_broken: bool,
}

impl Lane {
    /// The events that `words` are, behind those that the thread has from others of which it is the copy.
    #[must_use]
    pub fn of(atlas: &Atlas<'_>, inherited: &[u32], words: &[u32]) -> Self {
        let mut lane = Self::default();
        let mut owners = Vec::new();
        // What is not whole leads nowhere.
        lane.inherited = match lane.read(atlas, inherited, &mut owners) {
            Some(()) => lane.events.len(),
            None => usize::MAX,
        };
        lane.is_broken = lane.read(atlas, words, &mut owners).is_none();
        lane.sort(atlas.chart.functions.len(), &owners);
        lane
    }

    /// Adds the events that `words` are, and to `owners` the functions of those that are theirs; `None` if they do not mean
    /// anything from somewhere on.
    fn read(
        &mut self,
        atlas: &Atlas<'_>,
        words: &[u32],
        owners: &mut Vec<(u32, u32)>,
    ) -> Option<()> {
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            if word == SIGNAL {
                let at = signal_at([word, words.next()?, words.next()?]);
                let came = atlas.block_at(at);
                self.add(Event::Signal { came });
                continue;
            }
            let witness = word.wrapping_sub(1);
            match *atlas.witnesses.get(witness as usize)? {
                Witness::Own { function } => {
                    owners.push((function, self.events.len() as u32));
                    self.events.push(witness);
                }
                Witness::Arrival { block, with_stack } => {
                    let stack = match with_stack {
                        true => words.next().unwrap_or(0),
                        false => 0,
                    };
                    self.add(Event::Arrival { block, stack });
                }
                Witness::Value { function } => {
                    let value = value_of([words.next()?, words.next()?]);
                    let leaves = atlas.chart.value(witness).is_some_and(Value::leaves);
                    let values = self.values.entry(function).or_default();
                    values.push_back((witness, value, leaves));
                    self.add(Event::Value { witness, value });
                }
                Witness::Unknown => return None,
            }
        }
        Some(())
    }

    /// Adds another event than a witness of a function.
    fn add(&mut self, event: Event) {
        self.events.push(OTHER | self.others.len() as u32);
        self.others.push(event);
    }

    /// Sorts positions by function, keeping their order: by counting.
    fn sort(&mut self, functions: usize, owners: &[(u32, u32)]) {
        let mut starts = vec![0u32; functions + 1];
        for (function, _) in owners {
            starts[*function as usize + 1] += 1;
        }
        for at in 0..functions {
            starts[at + 1] += starts[at];
        }
        self.next = starts[..functions].to_vec();
        self.ends = starts[1..].to_vec();
        self.of_function = vec![0; owners.len()];
        let mut at = starts;
        for (function, event) in owners {
            let slot = &mut at[*function as usize];
            self.of_function[*slot as usize] = *event;
            *slot += 1;
        }
    }

    /// How many events there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Whether all that was inherited was passed, and nothing else.
    pub(super) fn is_at_own(&self) -> bool {
        self.position == self.inherited
    }

    /// The next witness of a function, or [`NONE`].
    pub(super) fn head(&self, function: u32) -> u32 {
        let (next, end) = (self.next[function as usize], self.ends[function as usize]);
        match next < end {
            true => self.events[self.of_function[next as usize] as usize],
            false => NONE,
        }
    }

    /// The next event.
    pub(super) fn peek(&self) -> Option<Event> {
        let event = *self.events.get(self.position)?;
        Some(match event & OTHER {
            0 => Event::Own(event),
            _ => self.others[(event & !OTHER) as usize],
        })
    }

    /// Passes the next event, which is a witness of this function.
    pub(super) fn pass_own(&mut self, function: u32) {
        self.position += 1;
        self.next[function as usize] += 1;
    }

    /// Passes the next event, which is a value of this function; with which value control leaves the loop, if it came into one
    /// with this and that is not far. A handler that came meanwhile may have called the function too: what it has come into it has
    /// left.
    pub(super) fn pass_value(&mut self, function: u32) -> Option<(u32, u64)> {
        self.position += 1;
        let values = self.values.get_mut(&function)?;
        values.pop_front();
        let mut within = 0;
        for &(witness, value, leaves) in values.iter().take(MOST_WITHIN) {
            match (leaves, within) {
                (true, 0) => return Some((witness, value)),
                (true, _) => within -= 1,
                (false, _) => within += 1,
            }
        }
        None
    }

    /// Passes the next event, which is another one.
    pub(super) fn pass_other(&mut self) {
        self.position += 1;
    }
}
