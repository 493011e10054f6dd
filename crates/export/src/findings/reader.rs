//! What is known of one function, read from the marks of its units.

use tomo_profile::coverage::Mark;
use tomo_profile::merge::Finding;
use tomo_profile::records::Kind;
use tomo_profile::units::{Findings as OfFunction, Marked, believe, infer};
use tomo_program::{BlockId, BlockView, EdgeView, FunctionView, Status};

use super::marks::Marks;

/// What is known of one function.
pub(super) struct Found {
    pub(super) blocks: Vec<Finding>,
    pub(super) edges: Vec<Finding>,
    pub(super) entered: Finding,
    pub(super) fits: bool,
}

impl Found {
    /// What was looked at, was silent, and does not follow from hits: not seen to run; nor was an edge of
    /// which one end was not.
    pub(super) fn silenced(mut self, reader: &Reader<'_, '_>) -> Self {
        let quiet = |finding: &mut Finding, mark: &Mark| {
            if *finding == Finding::Unknown && *mark == Mark::Silent {
                *finding = Finding::NotRun;
            }
        };
        let blocks = self.blocks.iter_mut().zip(reader.blocks);
        blocks.for_each(|(finding, mark)| quiet(finding, mark));
        let edges = self.edges.iter_mut().zip(&reader.edge_marks);
        edges.for_each(|(finding, mark)| quiet(finding, mark));
        let missed = |block: BlockId| {
            let finding = self.blocks.get(block.index().wrapping_sub(reader.first));
            finding.is_some_and(|it| it.ran() == Some(false))
        };
        for (finding, edge) in self.edges.iter_mut().zip(&reader.edges) {
            let target = edge.block().filter(|_| reader.is_inner(edge));
            if *finding == Finding::Unknown && (missed(edge.from) || target.is_some_and(missed)) {
                *finding = Finding::NotRunInferred;
            }
        }
        let entry = reader.function.entry_block();
        let entry = entry.and_then(|entry| self.blocks.get(reader.position(entry)));
        if let (Finding::Unknown, Some(Finding::NotRun)) = (self.entered, entry) {
            self.entered = Finding::NotRun;
        }
        self
    }
}

pub(super) struct Reader<'g, 'm> {
    function: FunctionView<'g>,
    kind: Kind,
    /// Number of the first block.
    first: usize,
    blocks: &'m [Mark],
    edges: Vec<EdgeView>,
    edge_marks: Vec<Mark>,
}

impl<'g, 'm> Reader<'g, 'm> {
    pub(super) fn of(function: FunctionView<'g>, marks: &'m Marks, kind: Kind) -> Self {
        let first = first(function);
        let blocks = marks.blocks.get(first..first + function.block_count());
        let mark = |edge: EdgeView| marks.edges.get(edge.id.index()).copied();
        let edges = function
            .edges()
            .map(|edge| mark(edge).unwrap_or(Mark::None));
        Self::with(function, blocks.unwrap_or_default(), edges.collect(), kind)
    }

    /// Of a function by the marks of its blocks and of its edges.
    pub(super) fn with(
        function: FunctionView<'g>,
        blocks: &'m [Mark],
        edge_marks: Vec<Mark>,
        kind: Kind,
    ) -> Self {
        Self {
            function,
            kind,
            first: first(function),
            blocks,
            edges: function.edges().collect(),
            edge_marks,
        }
    }

    pub(super) fn read(&self, entered_within: bool) -> Found {
        let entered_within = entered_within || self.kind.loose;
        let is_exact = self.function.status() == Status::Exact && !entered_within;
        let entry = self.function.entry_block().map(|it| self.position(it));
        if self
            .edge_marks
            .iter()
            .chain(self.blocks)
            .all(|mark| *mark == Mark::None)
        {
            return self.all(Finding::Unknown, Finding::Unknown);
        }
        // Most functions of most programs: the entry did not run, so nothing did.
        let silent = entry.is_some_and(|entry| self.blocks.get(entry) == Some(&Mark::Silent));
        let hit = self
            .edge_marks
            .iter()
            .chain(self.blocks)
            .any(|mark| *mark == Mark::Hit);
        if is_exact && silent && !hit {
            return self.all(Finding::NotRunInferred, Finding::NotRun);
        }
        let found = match is_exact {
            true => self.infer(),
            false => self.believe(),
        };
        self.with_all_edges(found, entry, entered_within)
    }

    fn position(&self, block: BlockView<'_>) -> usize {
        block.id().index().wrapping_sub(self.first)
    }

    /// Units without a probe are `inferred`, those with one that was not hit are `silent`.
    fn all(&self, inferred: Finding, silent: Finding) -> Found {
        let finding = |mark: &Mark| match mark {
            Mark::Silent => silent,
            _ => inferred,
        };
        let blocks: Vec<_> = self.blocks.iter().map(finding).collect();
        let entry = self.function.entry_block().map(|it| self.position(it));
        Found {
            entered: entry
                .and_then(|entry| blocks.get(entry).copied())
                .unwrap_or(Finding::Unknown),
            edges: self.edge_marks.iter().map(finding).collect(),
            blocks,
            fits: true,
        }
    }

    /// The marks of the edges that stay inside.
    fn inner_marks(&self) -> Vec<Mark> {
        let all = self.edges.iter().zip(&self.edge_marks);
        all.filter(|(edge, _)| self.is_inner(edge))
            .map(|(_, mark)| *mark)
            .collect()
    }

    /// Whether an edge is one of the function's graph; the same rule as
    /// [`FunctionView::flow_graph`] has.
    fn is_inner(&self, edge: &EdgeView) -> bool {
        edge.block()
            .is_some_and(|block| self.function.position_of(block).is_some())
    }

    fn infer(&self) -> OfFunction {
        let Some(graph) = self.function.flow_graph() else {
            return self.believe();
        };
        let mut stops = vec![false; self.blocks.len()];
        for block in self.function.may_stop_behind() {
            let block = block.index().wrapping_sub(self.first);
            if let Some(stop) = stops.get_mut(block) {
                *stop = true;
            }
        }
        let edges = self.inner_marks();
        let marked = Marked {
            blocks: self.blocks,
            edges: &edges,
        };
        infer(&graph, |block| stops[block], self.kind.cut, marked)
    }

    fn believe(&self) -> OfFunction {
        let edges = self.inner_marks();
        let inner = self.edges.iter().filter(|edge| self.is_inner(edge));
        let node = |block| self.function.node(block);
        // Who was forked in a block leaves it without having begun it.
        let from = |edge: &EdgeView| match self.kind.loose {
            true => node(edge.block()?),
            false => node(edge.from),
        };
        let ends = inner.filter_map(|edge| Some((from(edge)?, node(edge.block()?)?)));
        let marked = Marked {
            blocks: self.blocks,
            edges: &edges,
        };
        believe(ends, marked)
    }

    /// Puts the edges that leave the function among the others.
    fn with_all_edges(
        &self,
        found: OfFunction,
        entry: Option<usize>,
        entered_within: bool,
    ) -> Found {
        let mut inner = found.edges.into_iter();
        let outer = |edge: &EdgeView, mark: Mark| match mark {
            Mark::Hit => Finding::Ran,
            Mark::Silent => Finding::NotRun,
            Mark::None => {
                let from = edge.from.index().wrapping_sub(self.first);
                match found.blocks.get(from).copied() {
                    Some(Finding::NotRun) => Finding::NotRunInferred,
                    Some(finding) if finding.ran() == Some(false) => finding,
                    _ => Finding::Unknown,
                }
            }
        };
        let all = self.edges.iter().zip(&self.edge_marks);
        let edges = all.map(|(edge, &mark)| match self.is_inner(edge) {
            true => inner.next().unwrap_or(Finding::Unknown),
            false => outer(edge, mark),
        });
        let edges = edges.collect();
        let entered = entry.and_then(|entry| found.blocks.get(entry).copied());
        let some_ran = found.blocks.iter().any(|block| block.ran() == Some(true));
        Found {
            entered: match entered.unwrap_or(Finding::Unknown) {
                // Its code ran, so somebody entered it, unless others jump into its middle.
                Finding::Unknown if some_ran && !entered_within => Finding::RanInferred,
                known => known,
            },
            edges,
            fits: found.fits,
            blocks: found.blocks,
        }
    }
}

/// The number of a function's first block.
fn first(function: FunctionView<'_>) -> usize {
    function
        .blocks()
        .next()
        .map_or(0, |block| block.id().index())
}
