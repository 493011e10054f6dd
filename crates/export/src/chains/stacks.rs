//! Chains as they are shown, in one tree: what they have in common from the outside on is there once, so that they take memory
//! as there are chains, however long these are.

use std::collections::{BTreeMap, HashMap};

use super::Frame;

/// A chain as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// The step of its innermost frame.
    last: usize,
    /// How often it was called.
    pub calls: u64,
}

/// A frame behind others.
#[derive(Clone, Copy, Debug)]
struct Step {
    frame: Frame,
    /// What it is behind; 0 is in front of all.
    before: usize,
    /// Frames up to this one.
    depth: usize,
}

/// Chains as they are shown.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    /// Names, by number.
    pub names: Vec<String>,
    /// The linker's names for what has these, by number; of several functions with one name, that of one of them.
    pub symbols: HashMap<u32, String>,
    /// The chains.
    pub stacks: Vec<Stack>,
    /// Step `n` stands at `n - 1`.
    steps: Vec<Step>,
    known: HashMap<(usize, Frame), usize>,
}

/// Chains put together by the names of their frames.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// Calls of chains that end here.
    pub(super) own: u64,
    /// Of all that go on from here, too.
    pub(super) all: u64,
    /// What is called from here, by name.
    pub(super) callees: BTreeMap<u32, usize>,
}

impl Stacks {
    /// The step of `frame` behind the step `before`, of which there is one; 0 is in front of all.
    pub(super) fn step(&mut self, before: usize, frame: Frame) -> usize {
        let depth = before.checked_sub(1).map_or(0, |at| self.steps[at].depth) + 1;
        *self.known.entry((before, frame)).or_insert_with(|| {
            self.steps.push(Step {
                frame,
                before,
                depth,
            });
            self.steps.len()
        })
    }

    /// Adds the chain that ends with this step.
    pub(super) fn add(&mut self, last: usize, calls: u64) {
        self.stacks.push(Stack { last, calls });
    }

    /// The frames of a chain, the innermost first.
    pub fn frames(&self, stack: &Stack) -> impl Iterator<Item = Frame> + '_ {
        let step = |at: usize| at.checked_sub(1).and_then(|at| self.steps.get(at));
        let steps = std::iter::successors(step(stack.last), move |one| step(one.before));
        steps.map(|step| step.frame)
    }

    /// How many frames a chain has.
    #[must_use]
    pub fn depth(&self, stack: &Stack) -> usize {
        let last = stack.last.checked_sub(1).and_then(|at| self.steps.get(at));
        last.map_or(0, |step| step.depth)
    }

    /// All chains by the names of their frames alone, callers before callees; the first is in front of all.
    pub(super) fn by_names(&self) -> Vec<Named> {
        let mut all = vec![Named::default()];
        let mut callers = vec![0];
        let mut named = vec![0];
        for step in &self.steps {
            let (caller, next) = (named[step.before], all.len());
            let at = *all[caller].callees.entry(step.frame.name).or_insert(next);
            if at == next {
                all.push(Named::default());
                callers.push(caller);
            }
            named.push(at);
        }
        for stack in &self.stacks {
            all[named[stack.last]].own += stack.calls;
        }
        for at in (0..all.len()).rev() {
            all[at].all += all[at].own;
            let sum = all[at].all;
            if at != 0 {
                all[callers[at]].all += sum;
            }
        }
        all
    }

    /// These chains, of which each is given from the outside on.
    #[cfg(test)]
    pub(super) fn of(names: &[&str], chains: &[(&[Frame], u64)]) -> Self {
        let mut stacks = Self {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Self::default()
        };
        for (frames, calls) in chains {
            let steps = frames.iter();
            let last = steps.fold(0, |before, frame| stacks.step(before, *frame));
            stacks.add(last, *calls);
        }
        stacks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many frames as the square of this would be no memory's.
    const DEEP: usize = 100_000;

    #[test]
    fn a_deep_recursion_takes_memory_as_it_has_chains() {
        let mut stacks = Stacks {
            names: vec!["again".into()],
            ..Stacks::default()
        };
        let frame = Frame {
            name: 0,
            function: 1,
            at: 2,
        };
        let mut last = 0;
        for _ in 0..DEEP {
            last = stacks.step(last, frame);
            stacks.add(last, 1);
        }
        assert_eq!(stacks.steps.len(), DEEP);
        let deepest = stacks.stacks[DEEP - 1];
        assert_eq!(stacks.depth(&deepest), DEEP);
        assert_eq!(stacks.frames(&deepest).count(), DEEP);
        let named = stacks.by_names();
        assert_eq!((named.len(), named[0].all), (DEEP + 1, DEEP as u64));
        assert_eq!((named[DEEP].own, named[DEEP].all), (1, 1));
        let mut svg = Vec::new();
        super::super::write_flame_graph(&mut svg, &stacks, "deep").expect("written");
        assert!(svg.ends_with(b"</svg>\n"));
    }

    #[test]
    fn chains_are_told_from_the_inside_on_and_put_together_by_names() {
        let frame = |name, at| Frame {
            name,
            function: 1,
            at,
        };
        let chains: [&[Frame]; 3] = [
            &[frame(0, 1), frame(1, 0)],
            &[frame(0, 2), frame(1, 0)],
            &[frame(0, 0)],
        ];
        let stacks = Stacks::of(
            &["main", "one"],
            &[(chains[0], 3), (chains[1], 4), (chains[2], 5)],
        );
        for (stack, chain) in stacks.stacks.iter().zip(chains) {
            let frames: Vec<Frame> = stacks.frames(stack).collect();
            assert!(frames.iter().rev().eq(chain), "{frames:?}");
            assert_eq!(stacks.depth(stack), chain.len());
        }
        let named = stacks.by_names();
        let told: Vec<(u64, u64)> = named.iter().map(|one| (one.own, one.all)).collect();
        assert_eq!(told, [(0, 12), (5, 12), (7, 7)]);
    }
}
