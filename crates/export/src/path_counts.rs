//! What the counters of paths say: which paths ran, how often, and how many were cut.
//!
//! The path graph of each function is made anew, from the model and the marks of the file (`tomo_wire::paths`); if it
//! has other numbers than were counted, the file is of another program, and nothing is said of the function.
//!
//! Where only some paths were asked for, only of these is said how often they ran; by-products of what tells them apart
//! are not mentioned.
//!
//! A path that starts where another ended is started by that; others are counted as they start. What started
//! and did not end was cut: by an exception, a `longjmp`, or the end of its thread.

mod merging;
mod names;
mod table;

pub use merging::{NotAlike, merge};
pub use names::{PathName, numbers_counted, path_names};

use std::collections::{BTreeMap, HashMap, HashSet};

use rayon::prelude::*;
use tomo_graph::{EdgeId, NodeId};
use tomo_plan::paths::{ArcId, Numbering, PathDag, Way};
use tomo_program::{
    BlockId, BlockView, EdgeView, FunctionId, FunctionView, Graphs, PathEdge, PathGraph, Severed,
};
use tomo_wire::paths::{Asked, Function, Mark, MarkKind, Reason, Rows};

use crate::Extent;
use table::Table;

/// How a path ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PathEnd {
    /// It left the function, or ended in front of an edge.
    Exit,
    /// With the edge to this block.
    Edge(BlockId),
}

/// A path that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RanPath {
    /// The blocks along it.
    pub blocks: Vec<BlockId>,
    /// How it ended.
    pub end: PathEnd,
    /// How often it ran.
    pub count: u64,
}

/// What an edge does to paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PathBreak {
    /// A path ends with it.
    Edge,
    /// A path ends in front of it.
    Before,
    /// A path that comes along it is cut.
    Cut,
}

/// The paths of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionPaths {
    /// The function.
    pub function: FunctionId,
    /// How many paths it has that can come to an end; `None` beyond 64 bits.
    pub possible: Option<u64>,
    /// Which were asked for; `None` where several runs are put together that did not ask for the same.
    pub asked: Option<Asked>,
    /// How many were started; `None` where not all are asked for.
    pub started: Option<u64>,
    /// Of those asked for, the ones that ran to their end, the most frequent first.
    pub ran: Vec<RanPath>,
    /// Those asked for by name that did not run, counted 0 times.
    pub idle: Vec<RanPath>,
    /// Edges at which paths end.
    pub breaks: Vec<(EdgeView, PathBreak)>,
    /// Blocks that no path is followed through.
    pub unfollowed: Vec<BlockId>,
}

impl FunctionPaths {
    /// How many paths ran to their end.
    #[must_use]
    pub fn completed(&self) -> u64 {
        self.ran
            .iter()
            .fold(0, |sum, path| sum.wrapping_add(path.count))
    }

    /// How many were cut; `None` where it is not known what started, or more ended, since a `fork` copied them.
    #[must_use]
    pub fn cut(&self) -> Option<u64> {
        self.started?.checked_sub(self.completed())
    }
}

/// The paths of a module.
#[derive(Debug, Default)]
pub struct PathCounts {
    /// Functions whose paths were counted, in the order of the model.
    pub functions: Vec<FunctionPaths>,
    /// Others, with the reason.
    pub left: Vec<(FunctionId, Reason)>,
    /// Functions whose counters are not those of their paths.
    pub contradictory: Vec<u64>,
}

/// The paths of the module with these graphs, given what the file says and the value of each counter.
#[must_use]
pub fn path_counts(
    graphs: &Graphs<'_>,
    rows: &Rows<'_>,
    values: &[u64],
    extent: Extent,
) -> PathCounts {
    let read = |row: &Function| read(graphs, rows, row, values).ok_or(row.entry.get());
    let ran = |row: &&Function| {
        let ran = |values: &[u64]| values.iter().any(|value| *value > 0);
        extent == Extent::All || values_of(row, values).is_none_or(ran)
    };
    let all: Vec<_> = rows.functions.par_iter().filter(ran).map(read).collect();
    let mut counts = PathCounts::default();
    for one in all {
        match one {
            Ok(function) => counts.functions.push(function),
            Err(entry) => counts.contradictory.push(entry),
        }
    }
    let left = rows.left.iter().filter_map(|left| {
        let entry = tomo_program::Address(left.entry.get());
        Some((graphs.function_starting_at(entry)?.id(), left.reason()?))
    });
    counts.left = left.collect();
    counts
}

/// What the paths of a function are.
struct Followed<'g> {
    function: FunctionView<'g>,
    marks: HashMap<(u64, u64), MarkKind>,
    paths: PathGraph,
    dag: PathDag,
    numbering: Numbering,
}

fn read(
    graphs: &Graphs<'_>,
    rows: &Rows<'_>,
    row: &Function,
    values: &[u64],
) -> Option<FunctionPaths> {
    let (entered, counts) = values_of(row, values)?.split_first()?;
    looked_up(graphs, rows, row, |followed, table| {
        followed.paths(table, *entered, counts)
    })
}

/// Its counters: of how often it was entered, and of its paths.
fn values_of<'v>(row: &Function, values: &'v [u64]) -> Option<&'v [u64]> {
    let first = row.first.get() as usize;
    values.get(first..first + 1 + row.numbers.get() as usize)
}

/// What is looked up in the paths of a function; nothing where its counters are not those of its paths.
fn looked_up<T>(
    graphs: &Graphs<'_>,
    rows: &Rows<'_>,
    row: &Function,
    look: impl FnOnce(&Followed<'_>, &Table<'_, '_>) -> Option<T>,
) -> Option<T> {
    let function = graphs.function_starting_at(tomo_program::Address(row.entry.get()))?;
    let followed = Followed::of(function, rows.marks_of(row))?;
    let named = rows.named_of(row).iter().map(|number| number.get().into());
    let named: Vec<u64> = named.collect();
    let table = Table::of(&followed, row, &named)?;
    let is_alike = table.numbers() == u64::from(row.numbers.get());
    is_alike.then(|| look(&followed, &table))?
}

fn listed(paths: BTreeMap<(Vec<BlockId>, PathEnd), u64>) -> Vec<RanPath> {
    let paths = paths.into_iter();
    let path = |((blocks, end), count)| RanPath { blocks, end, count };
    paths.map(path).collect()
}

impl<'g> Followed<'g> {
    fn of(function: FunctionView<'g>, marks: &[Mark]) -> Option<Self> {
        let marks: HashMap<_, _> = marks
            .iter()
            .filter_map(|mark| Some(((mark.from.get(), mark.to.get()), mark.kind()?)))
            .collect();
        let start = |block| function.block(block).map(|block| block.address().0);
        let kind = |edge: &EdgeView| marks.get(&(start(edge.from)?, edge.key())).copied();
        let severed = |edge: &EdgeView| match kind(edge)? {
            MarkKind::Cuts => Some(Severed::Cuts),
            MarkKind::Ends | MarkKind::GoesOn => Some(Severed::Ends),
            MarkKind::Broken | MarkKind::Dead | MarkKind::Unfollowed => None,
        };
        let is_followed = |block| is_followed(&marks, function.block(block));
        let paths = function.path_graph(severed, is_followed)?;
        let broken: HashSet<EdgeId> = (0..)
            .zip(&paths.edges)
            .filter_map(|(id, edge)| match edge {
                PathEdge::Own(edge) if kind(edge) == Some(MarkKind::Broken) => Some(EdgeId(id)),
                _ => None,
            })
            .collect();
        let dag = PathDag::broken(&paths.graph, |edge| broken.contains(&edge));
        let numbering = Numbering::of(&dag).ok()?;
        Some(Self {
            function,
            marks,
            paths,
            dag,
            numbering,
        })
    }

    fn block(&self, node: NodeId) -> Option<BlockId> {
        Some(self.function.blocks().nth(node.index())?.id())
    }

    /// What happens at the end of a block.
    fn at(&self, node: NodeId) -> Option<MarkKind> {
        let start = self.function.blocks().nth(node.index())?.address().0;
        let kinds = [MarkKind::GoesOn, MarkKind::Ends];
        let edges = self.marks.iter().filter(|((from, _), _)| *from == start);
        let mut edges = edges.filter(|(_, kind)| kinds.contains(kind));
        edges.next().map(|(_, kind)| *kind)
    }

    fn paths(&self, table: &Table<'_, '_>, entered: u64, counts: &[u64]) -> Option<FunctionPaths> {
        let mut started = entered;
        let mut ran: BTreeMap<(Vec<BlockId>, PathEnd), u64> = BTreeMap::new();
        for (arcs, count) in table.ran(counts)? {
            let goes_on = match self.dag.arc(*arcs.last()?).way {
                Way::Break(..) => true,
                Way::Exit(node) => self.at(node) == Some(MarkKind::GoesOn),
                _ => false,
            };
            started = started.checked_add(if goes_on { count } else { 0 })?;
            let sum = ran.entry(self.blocks_along(&arcs)?).or_default();
            *sum = sum.checked_add(count)?;
        }
        let mut idle = BTreeMap::new();
        if table.asked == Asked::Named {
            for number in &table.named {
                let name = self.blocks_along(&table.along(*number)?)?;
                if !ran.contains_key(&name) {
                    idle.insert(name, 0);
                }
            }
        }
        let mut ran = listed(ran);
        ran.sort_by_key(|path| std::cmp::Reverse(path.count));
        Some(FunctionPaths {
            function: self.function.id(),
            possible: self.possible(),
            asked: Some(table.asked),
            started: (table.asked == Asked::All).then_some(started),
            ran,
            idle: listed(idle),
            breaks: self.breaks(),
            unfollowed: self.unfollowed(),
        })
    }

    fn blocks_along(&self, arcs: &[ArcId]) -> Option<(Vec<BlockId>, PathEnd)> {
        let mut blocks = Vec::with_capacity(arcs.len());
        let mut end = PathEnd::Exit;
        for &id in arcs {
            match self.dag.arc(id).way {
                Way::Start(node) if node == self.paths.outside() => {}
                Way::Start(node) => blocks.push(self.block(node)?),
                Way::Edge(edge) => blocks.push(self.block(self.paths.graph.target(edge))?),
                Way::Break(_, next) => end = PathEnd::Edge(self.block(next)?),
                Way::Exit(_) => {}
            }
        }
        Some((blocks, end))
    }

    /// How many different paths come to an end.
    fn possible(&self) -> Option<u64> {
        let starts_twice = |node: NodeId| {
            let enters =
                |edge: &PathEdge| matches!(edge, PathEdge::Enter(block) if *block == node.index());
            self.paths.edges.iter().any(enters)
        };
        let mut counts = vec![Some(0u64); self.dag.node_count()];
        if let Some(sink) = counts.last_mut() {
            *sink = Some(1);
        }
        for node in self.dag.nodes().rev() {
            let mut ways = self.dag.out(node).map(|id| {
                let arc = self.dag.arc(id);
                match arc.way {
                    Way::Exit(node) if self.is_dead(node) => Some(0),
                    // The same paths start there from outside.
                    Way::Start(node) if node != self.paths.outside() && starts_twice(node) => {
                        Some(0)
                    }
                    _ => counts[arc.to.index()],
                }
            });
            counts[node.index()] = ways.try_fold(0u64, |sum, ways| sum.checked_add(ways?));
        }
        counts.first().copied().flatten()
    }

    fn is_dead(&self, node: NodeId) -> bool {
        let block = self.function.blocks().nth(node.index());
        let key = block.map(|block| (block.address().0, 0));
        key.is_some_and(|key| self.marks.get(&key) == Some(&MarkKind::Dead))
    }

    /// Edges at which paths end, retreating ones among them.
    fn breaks(&self) -> Vec<(EdgeView, PathBreak)> {
        let own = self.function.edges().filter_map(|edge| {
            let from = self.function.block(edge.from)?.address().0;
            let kind = match self.marks.get(&(from, edge.key()))? {
                MarkKind::Ends | MarkKind::GoesOn => PathBreak::Before,
                MarkKind::Cuts => PathBreak::Cut,
                MarkKind::Broken | MarkKind::Dead | MarkKind::Unfollowed => return None,
            };
            Some((edge, kind))
        });
        let into_unfollowed = self.function.edges().filter_map(|edge| {
            let followed = |block| is_followed(&self.marks, self.function.block(block));
            let from = self.function.block(edge.from)?.address().0;
            let is_marked = self.marks.contains_key(&(from, edge.key()));
            let ends = followed(edge.from) && !followed(edge.block()?) && !is_marked;
            ends.then_some((edge, PathBreak::Before))
        });
        let arcs = self.dag.arcs().iter().filter_map(|arc| match arc.way {
            Way::Break(edge, _) => match self.paths.edges.get(edge.index())? {
                PathEdge::Own(edge) => Some((*edge, PathBreak::Edge)),
                PathEdge::Enter(_) => None,
            },
            _ => None,
        });
        own.chain(into_unfollowed).chain(arcs).collect()
    }

    /// Blocks that are not followed.
    fn unfollowed(&self) -> Vec<BlockId> {
        let blocks = self.function.blocks();
        let unfollowed = blocks.filter(|block| !is_followed(&self.marks, Some(*block)));
        unfollowed.map(|block| block.id()).collect()
    }
}

fn is_followed(marks: &HashMap<(u64, u64), MarkKind>, block: Option<BlockView<'_>>) -> bool {
    let mark = block.and_then(|block| marks.get(&(block.address().0, 0)));
    mark != Some(&MarkKind::Unfollowed)
}
