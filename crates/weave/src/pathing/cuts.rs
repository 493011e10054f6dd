//! Which edges paths are not followed along, because at run time it is not known that control comes along them.
//!
//! What arrives at a block otherwise than by a direct branch of a moved block comes by the module's text, and only
//! *that* something arrived is known there. One such edge of a block can be told from its others; where there are more,
//! paths end in front of all of them.

use std::collections::HashSet;

use tomo_program::{BlockId, EdgeId, EdgeKind, EdgeView, FunctionView, Severed};
use tomo_wire::paths::MarkKind;

/// The edges of a function that paths are not followed along.
pub(super) struct Cuts {
    /// Per block, whether paths are followed through it.
    pub(super) followed: Vec<bool>,
    /// Per block, whether paths end in front of all that follows it.
    ends: Vec<bool>,
    /// Edges in front of which paths end, or along which they are cut.
    severed: HashSet<EdgeId>,
    /// Whether behind a jump in front of which a path ends another is certain to start.
    goes_on: bool,
}

fn is_indirect(edge: &EdgeView) -> bool {
    matches!(edge.kind, EdgeKind::JumpTable | EdgeKind::ComputedGoto)
}

fn is_direct(edge: &EdgeView) -> bool {
    matches!(
        edge.kind,
        EdgeKind::Fallthrough | EdgeKind::Taken | EdgeKind::NotTaken | EdgeKind::Jump
    )
}

impl Cuts {
    /// Those of `function`, in which these blocks are `followed`.
    pub(super) fn of(function: &FunctionView<'_>, followed: &[bool]) -> Self {
        let arrivals = Arrivals::of(function, followed);
        let severed = arrivals.severed();
        Self {
            followed: followed.to_vec(),
            ends: arrivals.ends(&severed),
            goes_on: arrivals.are_told_apart(&severed),
            severed,
        }
    }

    /// What happens to paths at an edge, if they are not followed along it.
    pub(super) fn kind(&self, edge: &EdgeView) -> Option<MarkKind> {
        if !self.severed.contains(&edge.id) {
            return None;
        }
        Some(match edge.kind {
            EdgeKind::LandingPad => MarkKind::Cuts,
            _ if is_indirect(edge) && self.goes_on => MarkKind::GoesOn,
            _ => MarkKind::Ends,
        })
    }

    pub(super) fn severed(&self, edge: &EdgeView) -> Option<Severed> {
        self.kind(edge).map(|kind| match kind {
            MarkKind::Cuts => Severed::Cuts,
            _ => Severed::Ends,
        })
    }

    pub(super) fn ends_at(&self, block: usize) -> bool {
        self.ends.get(block).is_some_and(|ends| *ends)
    }
}

/// What arrives at the blocks of a function by the module's text.
struct Arrivals<'f> {
    function: &'f FunctionView<'f>,
    followed: &'f [bool],
    /// From blocks that are followed.
    edges: Vec<EdgeView>,
    /// Per block, whether the function is entered there, or what is not followed leads there.
    visited: Vec<bool>,
    /// Blocks that end in calls which may come back again.
    again: HashSet<BlockId>,
}

impl<'f> Arrivals<'f> {
    fn of(function: &'f FunctionView<'f>, followed: &'f [bool]) -> Self {
        let entry = function.entry_block();
        let entry = entry.and_then(|block| function.position_of(block.id()));
        let again = function.calls();
        let again = again.filter(|call| call.returns_again().is_some());
        let mut arrivals = Self {
            function,
            followed,
            edges: Vec::new(),
            visited: vec![false; function.block_count()],
            again: again.map(|call| call.block()).collect(),
        };
        for edge in function.edges().filter(|edge| edge.block().is_some()) {
            match arrivals.is_followed(arrivals.from(&edge)) {
                true if is_direct(&edge) => {}
                true => arrivals.edges.push(edge),
                false => arrivals.visit(arrivals.to(&edge)),
            }
        }
        arrivals.visit(entry);
        arrivals
    }

    fn visit(&mut self, block: Option<usize>) {
        if let Some(visited) = block.and_then(|block| self.visited.get_mut(block)) {
            *visited = true;
        }
    }

    fn from(&self, edge: &EdgeView) -> Option<usize> {
        self.function.position_of(edge.from)
    }

    fn to(&self, edge: &EdgeView) -> Option<usize> {
        self.function.position_of(edge.block()?)
    }

    fn is_followed(&self, block: Option<usize>) -> bool {
        block.is_some_and(|block| self.followed[block])
    }

    /// What must be severed, and all that shares a block with it, or a jump.
    fn severed(&self) -> HashSet<EdgeId> {
        let comes_again = |edge: &EdgeView| {
            edge.kind == EdgeKind::CallFallthrough && self.again.contains(&edge.from)
        };
        let first = self.edges.iter();
        let first = first.filter(|edge| edge.kind == EdgeKind::LandingPad || comes_again(edge));
        let mut severed: HashSet<EdgeId> = first.map(|edge| edge.id).collect();
        loop {
            let before = severed.len();
            self.sever_shared(&mut severed);
            let cut = |edge: &&EdgeView| is_indirect(edge) && severed.contains(&edge.id);
            let jumps: HashSet<_> = self
                .edges
                .iter()
                .filter(cut)
                .map(|edge| edge.from)
                .collect();
            let beside = self.edges.iter().filter(|edge| is_indirect(edge));
            let beside = beside.filter(|edge| jumps.contains(&edge.from));
            severed.extend(beside.map(|edge| edge.id));
            if severed.len() == before {
                return severed;
            }
        }
    }

    /// Adds what arrives where something else does, and jumps to what is not followed.
    fn sever_shared(&self, severed: &mut HashSet<EdgeId>) {
        let mut strangers = self.visited.clone();
        let mut others = vec![0; strangers.len()];
        for edge in &self.edges {
            let Some(to) = self.to(edge) else { continue };
            match severed.contains(&edge.id) {
                true => strangers[to] = true,
                false => others[to] += 1,
            }
        }
        let shared = self.edges.iter().filter(|edge| {
            let to = self.to(edge);
            let alone = to.is_some_and(|to| !strangers[to] && others[to] < 2);
            !alone || (is_indirect(edge) && !self.is_followed(to))
        });
        severed.extend(shared.map(|edge| edge.id));
    }

    /// Per block, whether paths end in front of all that follows it.
    fn ends(&self, severed: &HashSet<EdgeId>) -> Vec<bool> {
        let mut ends = vec![false; self.followed.len()];
        let ending = self.edges.iter().filter(|edge| severed.contains(&edge.id));
        let passed_over = self.function.edges().filter(|edge| {
            let branches = matches!(edge.kind, EdgeKind::Taken | EdgeKind::NotTaken);
            let leads_there = edge.block().is_some() && !self.is_followed(self.to(edge));
            leads_there && !branches && self.is_followed(self.from(edge))
        });
        let both = ending.copied().chain(passed_over);
        for edge in both.filter(|edge| edge.kind != EdgeKind::LandingPad) {
            if let Some(from) = self.from(&edge) {
                ends[from] = true;
            }
        }
        ends
    }

    /// Whether where jumps arrive nothing else does that is counted as a start.
    fn are_told_apart(&self, severed: &HashSet<EdgeId>) -> bool {
        let jumps = self.edges.iter().filter(|edge| is_indirect(edge));
        let jumped: HashSet<usize> = jumps.filter_map(|edge| self.to(edge)).collect();
        let called = self.edges.iter().any(|edge| {
            let is_called = !is_indirect(edge) && severed.contains(&edge.id);
            is_called && self.to(edge).is_some_and(|to| jumped.contains(&to))
        });
        let mut jumped = jumped.iter();
        !called && !jumped.any(|to| self.visited[*to] || !self.followed[*to])
    }
}
