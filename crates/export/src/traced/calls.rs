//! The activations that a trace passes, one inside the other.

use tomo_profile::tracing::{Atlas, Sink};

/// An activation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activation {
    /// The function, by its number in the chart.
    pub function: u32,
    /// How deep it is called.
    pub depth: u32,
    /// The block in which it is.
    pub block: u32,
}

/// Takes activations and blocks as they come.
pub trait Visitor {
    /// An activation begins; it is the last of `stack`.
    fn begins(&mut self, _stack: &[Activation]) {}
    /// The last activation of `stack` ends.
    fn ends(&mut self, _stack: &[Activation]) {}
    /// A block of the last activation begins, as the `step`th of the thread.
    fn block(&mut self, _stack: &[Activation], _step: u64) {}
}

/// Of whom nothing is to be known but how a thread ended.
impl Visitor for () {}

/// Tells a visitor of activations.
pub struct Calls<'c, 'a, V> {
    atlas: &'c Atlas<'a>,
    stack: Vec<Activation>,
    steps: u64,
    /// Who is told.
    pub visitor: V,
}

impl<'c, 'a, V: Visitor> Calls<'c, 'a, V> {
    /// Nothing has begun.
    pub fn new(atlas: &'c Atlas<'a>, visitor: V) -> Self {
        Self {
            atlas,
            stack: Vec::new(),
            steps: 0,
            visitor,
        }
    }

    /// The activations that have begun and not ended.
    pub fn stack(&self) -> &[Activation] {
        &self.stack
    }

    /// Ends all that are left.
    pub fn finish(mut self) -> V {
        self.end_deeper_than(None);
        self.visitor
    }

    fn end_deeper_than(&mut self, depth: Option<u32>) {
        let deeper = |last: &Activation| depth.is_none_or(|depth| last.depth > depth);
        while self.stack.last().is_some_and(deeper) {
            self.visitor.ends(&self.stack);
            self.stack.pop();
        }
    }

    fn begin(&mut self, block: u32, depth: u32) {
        self.stack.push(Activation {
            function: self.atlas.function_of(block),
            depth,
            block,
        });
        self.visitor.begins(&self.stack);
    }
}

impl<V: Visitor> Sink for Calls<'_, '_, V> {
    fn enter(&mut self, block: u32, depth: u32) {
        self.end_deeper_than(depth.checked_sub(1));
        self.begin(block, depth);
    }

    fn block(&mut self, block: u32, depth: u32) {
        self.end_deeper_than(Some(depth));
        // An activation that was met in its midst: it began before the trace did.
        let known = self.stack.last().is_some_and(|last| {
            last.depth == depth && last.function == self.atlas.function_of(block)
        });
        if !known {
            self.enter(block, depth);
        }
        if let Some(last) = self.stack.last_mut() {
            last.block = block;
        }
        self.visitor.block(&self.stack, self.steps);
        self.steps += 1;
    }
}
