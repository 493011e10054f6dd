//! Some of the chains: from a function on, to a function, through one.

use std::collections::HashMap;

use tomo_program::is_called;

use super::{Frame, Stacks};

/// Which chains are shown. Functions are named by their whole names, or without what C++ and Rust add to them.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Only from the outermost of these functions on.
    pub roots: Vec<String>,
    /// Only those that end in one of these.
    pub leaves: Vec<String>,
    /// Only those that have each of these.
    pub through: Vec<String>,
}

impl Choice {
    /// Whether nothing is left out.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.roots.is_empty() && self.leaves.is_empty() && self.through.is_empty()
    }

    /// Those of `stacks` that are chosen. Where several are alike then, they are put together.
    #[must_use]
    pub fn of(&self, stacks: Stacks) -> Stacks {
        if self.is_all() {
            return stacks;
        }
        let names = &stacks.names;
        let any = |wanted: &[String], frame: &Frame| {
            let name = names.get(frame.name as usize);
            name.is_some_and(|name| wanted.iter().any(|wanted| is_called(name, wanted)))
        };
        let mut chosen = Stacks::default();
        let mut known: HashMap<usize, usize> = HashMap::new();
        for stack in &stacks.stacks {
            let mut frames: Vec<Frame> = stacks.frames(stack).collect();
            frames.reverse();
            let mut frames = frames.as_slice();
            if !self.roots.is_empty() {
                let root = frames.iter().position(|frame| any(&self.roots, frame));
                let Some(root) = root else { continue };
                frames = &frames[root..];
            }
            let ends = |frame: &Frame| self.leaves.is_empty() || any(&self.leaves, frame);
            let passes = |wanted: &String| {
                let wanted = std::slice::from_ref(wanted);
                frames.iter().any(|frame| any(wanted, frame))
            };
            if !frames.last().is_some_and(ends) || !self.through.iter().all(passes) {
                continue;
            }
            let steps = frames.iter();
            let last = steps.fold(0, |before, frame| chosen.step(before, *frame));
            let next = chosen.stacks.len();
            let at = *known.entry(last).or_insert(next);
            if at == next {
                chosen.add(last, 0);
            }
            chosen.stacks[at].calls += stack.calls;
        }
        (chosen.names, chosen.symbols) = (stacks.names, stacks.symbols);
        chosen
    }
}
