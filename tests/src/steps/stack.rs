//! What a step was, told from where the instruction and stack pointers were before and after.
//!
//! A shadow of the call stack is kept: one entry for each call that has neither returned nor been
//! unwound. An instruction is at most fifteen bytes long, so that
//!
//! - a step that lowers the stack by one word, which now holds an address one to fifteen bytes
//!   behind where it came from, and goes elsewhere, was a **call**;
//! - a step that leaves the newest entry's slot and goes to the address in it was a **return**, and
//!   so is any number of steps, seen as one, after which the stack ends just above that slot;
//! - everything else was a jump or no transfer at all. Whenever the stack pointer rises over
//!   entries, these calls are gone: the last of them is the one that the frame which stays had
//!   under way, which is what tells from which call an unwinder came to a landing pad.
//!
//! A call to the very next instruction is a push where that one takes the address away again (`pop`): code that asks where
//! it is. Else it is a call, of a function that stands behind its caller. What goes on in front of the address that it has
//! left on the stack was a push, of the address of a function that happens to stand there: no call goes into itself.

/// The two registers that say where a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointers {
    /// Where the next instruction is (RIP), as loaded.
    pub instruction: u64,
    /// Where the newest word of the stack is (RSP).
    pub stack: u64,
}

/// What a step was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// A call that is to come back to `back`.
    Call {
        /// The address behind it.
        back: u64,
    },
    /// A return to behind `call`; a signal handler's return has none.
    Return {
        /// The call instruction.
        call: Option<u64>,
    },
    /// Anything else.
    Other,
}

/// A call under way.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Where on the stack its return address is.
    slot: u64,
    /// The call instruction; none where the kernel entered a signal handler.
    call: Option<u64>,
    /// Where it is to return to.
    back: u64,
}

/// The calls under way, the newest last, and what was unwound last.
#[derive(Clone, Debug, Default)]
pub struct Shadow {
    entries: Vec<Entry>,
    unwound: Option<u64>,
}

/// Longest instruction (Intel SDM vol. 2, 2.3.11).
const LONGEST: u64 = 15;

impl Shadow {
    /// Takes one step into account; `word` reads the program's memory.
    pub fn pass(
        &mut self,
        at: Pointers,
        next: Pointers,
        word: impl Fn(u64) -> Option<u64>,
    ) -> Passage {
        if next.stack.wrapping_add(8) == at.stack && next.instruction != at.instruction {
            return self.pass_call(at, next, word);
        }
        if next.stack <= at.stack {
            return Passage::Other;
        }
        let left = |e: &Entry| e.slot == at.stack || e.slot.wrapping_add(8) == next.stack;
        match self.drop_below(next.stack) {
            Some(e) if left(&e) && e.back == next.instruction => Passage::Return { call: e.call },
            _ => Passage::Other,
        }
    }

    fn pass_call(
        &mut self,
        at: Pointers,
        next: Pointers,
        word: impl Fn(u64) -> Option<u64>,
    ) -> Passage {
        let behind = |back: &u64| (1..=LONGEST).contains(&back.wrapping_sub(at.instruction));
        let is_inside = |back: &u64| (at.instruction..*back).contains(&next.instruction);
        let is_taken_away = || word(next.instruction).is_none_or(is_pop);
        match word(next.stack).filter(|back| behind(back) && !is_inside(back)) {
            Some(back) if back != next.instruction || !is_taken_away() => {
                self.push(next.stack, Some(at.instruction), back);
                Passage::Call { back }
            }
            _ => Passage::Other,
        }
    }

    /// Notes a call whose return address lies in `slot`.
    pub fn push(&mut self, slot: u64, call: Option<u64>, back: u64) {
        self.entries.push(Entry { slot, call, back });
    }

    /// Forgets the calls whose return addresses lie below `stack`.
    pub fn resume_above(&mut self, stack: u64) {
        self.drop_below(stack);
    }

    fn drop_below(&mut self, stack: u64) -> Option<Entry> {
        let mut last = None;
        while let Some(entry) = self.entries.pop_if(|e| e.slot < stack) {
            self.unwound = entry.call;
            last = Some(entry);
        }
        last
    }

    /// Makes [`Self::last_unwound`] tell only of what comes.
    pub fn forget_unwound(&mut self) {
        self.unwound = None;
    }

    /// The call that was forgotten last, by a return or otherwise.
    #[must_use]
    pub fn last_unwound(&self) -> Option<u64> {
        self.unwound
    }
}

/// Whether code begins with `pop` into a register (Intel SDM vol. 2, POP: `58+rd`, behind a REX prefix or not).
fn is_pop(code: u64) -> bool {
    let [first, second, ..] = code.to_le_bytes();
    let opcode = if first & 0xf0 == 0x40 { second } else { first };
    opcode & 0xf8 == 0x58
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(instruction: u64, stack: u64) -> Pointers {
        Pointers { instruction, stack }
    }

    #[test]
    fn a_call_and_its_return() {
        let mut shadow = Shadow::default();
        let call = shadow.pass(at(100, 800), at(500, 792), |slot| {
            (slot == 792).then_some(105)
        });
        assert_eq!(call, Passage::Call { back: 105 });
        assert_eq!(
            shadow.pass(at(500, 792), at(501, 784), |_| Some(7)),
            Passage::Other,
            "a push"
        );
        assert_eq!(
            shadow.pass(at(501, 784), at(502, 792), |_| None),
            Passage::Other,
            "a pop"
        );
        let back = shadow.pass(at(502, 792), at(105, 800), |_| None);
        assert_eq!(back, Passage::Return { call: Some(100) });
    }

    #[test]
    fn a_call_to_the_next_instruction_is_a_push_if_that_pops() {
        let code = |bytes: [u8; 2]| {
            move |at: u64| match at {
                792 => Some(105),
                105 => Some(u64::from(u16::from_le_bytes(bytes))),
                _ => None,
            }
        };
        for push in [[0x53, 0x90], [0x41, 0x57], [0xf3, 0x0f]] {
            let called = Shadow::default().pass(at(100, 800), at(105, 792), code(push));
            assert_eq!(called, Passage::Call { back: 105 });
        }
        let mut shadow = Shadow::default();
        for pop in [[0x41, 0x5f], [0x5b, 0x90]] {
            assert_eq!(
                shadow.pass(at(100, 800), at(105, 792), code(pop)),
                Passage::Other
            );
        }
        assert_eq!(
            shadow.pass(at(105, 792), at(106, 800), |_| None),
            Passage::Other
        );
        assert_eq!(shadow.last_unwound(), None);
    }

    #[test]
    fn what_pushes_the_address_of_a_function_close_by_calls_nothing() {
        let pushed = |slot| (slot == 792).then_some(112);
        let mut shadow = Shadow::default();
        assert_eq!(
            shadow.pass(at(100, 800), at(101, 792), pushed),
            Passage::Other
        );
        let beyond = shadow.pass(at(100, 800), at(113, 792), pushed);
        assert_eq!(beyond, Passage::Call { back: 112 });
    }

    #[test]
    fn a_return_that_drops_arguments() {
        let mut shadow = Shadow::default();
        shadow.pass(at(100, 800), at(500, 792), |_| Some(105));
        let back = shadow.pass(at(500, 792), at(105, 816), |_| None);
        assert_eq!(back, Passage::Return { call: Some(100) });
    }

    #[test]
    fn a_changed_return_address_is_no_return() {
        let mut shadow = Shadow::default();
        shadow.pass(at(100, 800), at(500, 792), |_| Some(105));
        assert_eq!(
            shadow.pass(at(500, 792), at(300, 800), |_| None),
            Passage::Other
        );
    }

    #[test]
    fn unwinding_tells_the_call_of_the_frame_that_stays() {
        let mut shadow = Shadow::default();
        for (i, slot) in (1..=4).zip([792, 700, 650, 600]) {
            shadow.pass(at(100 * i, slot + 8), at(100 * i + 100, slot), |_| {
                Some(100 * i + 5)
            });
        }
        shadow.pass(at(480, 520), at(483, 708), |_| None);
        assert_eq!(shadow.last_unwound(), Some(200));
    }
}
