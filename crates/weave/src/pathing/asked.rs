//! Only some paths of a function (SPP): those that are named, or all but those.
//!
//! A path is named by its blocks and how it ends, which means something only where it is settled where paths end: so who
//! names paths may say that, too, as it was when they were seen. By that the function's paths are drawn, and numbered as
//! if all were counted; a name may stand for several numbers, where edges lead side by side from block to block.
//!
//! What tells the paths asked for from all others is woven if it can be done, takes no more counters than all paths would, and
//! sums fit; where that is not so all are counted, and told apart afterwards.

use std::collections::{BTreeSet, HashSet};

use tomo_graph::EdgeId;
use tomo_plan::paths::selective::Sums;
use tomo_plan::paths::{ArcId, DagNode, Interest, PathDag, Way};
use tomo_program::{EdgeView, PathEdge, PathGraph};
use tomo_wire::paths::{Asked, Mark, MarkKind, Reason};

use super::{Counters, Drawn, Planned, Planner};

/// What is asked for of a function.
#[derive(Clone, Copy, Debug)]
pub enum Ask<'a> {
    /// Nothing.
    Nothing,
    /// All its paths.
    All,
    /// All its paths, which end as they ended elsewhere.
    Whole(&'a PathEnds),
    /// Some of them.
    Some(&'a PathsOf),
}

/// Some paths of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathsOf {
    /// Whether all others are meant.
    pub others: bool,
    /// The paths that are named.
    pub paths: BTreeSet<NamedPath>,
    /// Where paths end; if it is not said, where they would if all were counted.
    pub ends: Option<PathEnds>,
}

/// A path, by addresses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamedPath {
    /// Where the blocks along it start.
    pub blocks: Vec<u64>,
    /// The block to which it ends, unless it leaves the function, or ends in front of an edge.
    pub end: Option<u64>,
}

/// Where the paths of a function end besides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathEnds {
    /// Edges that are the last of paths, by the starts of their blocks.
    pub broken: BTreeSet<(u64, u64)>,
    /// Blocks that paths are not followed through.
    pub unfollowed: BTreeSet<u64>,
}

impl PathEnds {
    /// Where paths end by these marks of their function: drawn so, it has the same marks, and its paths the same numbers.
    #[must_use]
    pub fn of(marks: &[Mark]) -> Self {
        let of_kind = |kind: MarkKind| marks.iter().filter(move |mark| mark.kind() == Some(kind));
        let edge = |mark: &Mark| (mark.from.get(), EdgeView::address_of(mark.to.get()).0);
        Self {
            broken: of_kind(MarkKind::Broken).map(edge).collect(),
            unfollowed: of_kind(MarkKind::Unfollowed)
                .map(|mark| mark.from.get())
                .collect(),
        }
    }
}

impl<'a> Ask<'a> {
    pub(super) fn ends(self) -> Option<&'a PathEnds> {
        match self {
            Self::Some(paths) => paths.ends.as_ref(),
            Self::Whole(ends) => Some(ends),
            Self::Nothing | Self::All => None,
        }
    }
}

/// So that no path's sum is taken for another's in a register of 32 bits, nor what was left in it for any.
const MOST_SUM: u64 = 1 << 30;

impl Planner<'_> {
    /// The edges that paths are said to end with.
    pub(super) fn given(&self, paths: &PathGraph, ends: &PathEnds) -> HashSet<EdgeId> {
        let all = (0..).zip(&paths.edges);
        let given = all.filter_map(|(id, edge)| match edge {
            PathEdge::Own(edge) => {
                let from = self.function.position_of(edge.from)?;
                let ends_path = (self.blocks[from].start().0, edge.address.0);
                ends.broken.contains(&ends_path).then_some(EdgeId(id))
            }
            PathEdge::Enter(_) => None,
        });
        given.collect()
    }

    /// The plan for some paths, where `all` counts all of them.
    pub(super) fn select(
        &self,
        drawn: &Drawn,
        paths: &PathsOf,
        all: Planned,
    ) -> Result<Planned, Reason> {
        let (mut named, mut stranger) = (BTreeSet::new(), None);
        let mut along: Vec<Vec<ArcId>> = Vec::new();
        for (at, path) in paths.paths.iter().enumerate() {
            let found = self.find(drawn, path);
            if found.is_empty() {
                stranger.get_or_insert(at);
            }
            for arcs in found {
                let number = u32::try_from(drawn.numbering.number(&arcs));
                if named.insert(number.map_err(|_| Reason::TooMany)?) {
                    along.push(arcs);
                }
            }
        }
        let interest = match paths.others {
            true => Interest::unseen(&drawn.dag, &along),
            false => Interest::of(&drawn.dag, &along),
        };
        let interest = interest.map_err(|_| Reason::TooMany)?;
        if interest.is_empty() && paths.others {
            return Err(Reason::AllSeen);
        }
        let told = self.told_apart(drawn, interest, &all);
        let selective = told.is_some();
        Ok(Planned {
            asked: match paths.others {
                true => Asked::Others,
                false => Asked::Named,
            },
            selective,
            named: named.into_iter().collect(),
            stranger,
            ..told.unwrap_or(all)
        })
    }

    /// The plan that tells the paths of `interest` from all others, if there is one.
    fn told_apart(&self, drawn: &Drawn, interest: Interest, all: &Planned) -> Option<Planned> {
        let sums = Sums::of(&drawn.dag, interest).ok()?;
        if sums.top() >= MOST_SUM || sums.numbers() > u64::from(all.numbers) {
            return None;
        }
        let ends = |id: ArcId| match drawn.dag.arc(id).way {
            Way::Exit(node) => !drawn.dead[node.index()],
            Way::Break(..) => true,
            Way::Start(_) | Way::Edge(_) => false,
        };
        let of_interest: BTreeSet<Way> = drawn
            .dag
            .ids()
            .filter(|id| ends(*id) && sums.interest().has(*id))
            .map(|id| drawn.dag.arc(id).way)
            .collect();
        // What never comes to an end is not worth an image without counters.
        if of_interest.is_empty() {
            return None;
        }
        let counters = Counters {
            increments: sums.increments(&drawn.dag, &drawn.weights),
            numbers: sums.numbers(),
            counts: &|arc| of_interest.contains(&arc.way),
            starts: false,
        };
        self.planned(drawn, &counters).ok()
    }

    /// All ways along a path of this name: no more than the function has numbers.
    fn find(&self, drawn: &Drawn, path: &NamedPath) -> Vec<Vec<ArcId>> {
        let dag = &drawn.dag;
        let starts = |node: DagNode| {
            let block = dag.block(node)?;
            Some(self.blocks.get(block.index())?.start().0)
        };
        let Some((first, rest)) = path.blocks.split_first() else {
            return Vec::new();
        };
        let mut found: Vec<Vec<ArcId>> = Vec::new();
        for start in dag.out(DagNode::SOURCE) {
            let to = dag.arc(start).to;
            if dag.block(to) == Some(drawn.paths.outside()) {
                let entering = dag
                    .out(to)
                    .filter(|id| starts(dag.arc(*id).to) == Some(*first));
                found.extend(entering.map(|id| vec![start, id]));
            } else if starts(to) == Some(*first) {
                found.push(vec![start]);
            }
        }
        for block in rest {
            found = longer(dag, &found, |id| starts(dag.arc(id).to) == Some(*block));
        }
        longer(dag, &found, |id| match (dag.arc(id).way, path.end) {
            (Way::Exit(_), None) => true,
            (Way::Break(_, next), Some(end)) => {
                let next = self.blocks.get(next.index());
                next.is_some_and(|next| next.start().0 == end)
            }
            _ => false,
        })
    }
}

/// These, each followed by every way on that pleases.
fn longer(dag: &PathDag, found: &[Vec<ArcId>], pleases: impl Fn(ArcId) -> bool) -> Vec<Vec<ArcId>> {
    let mut all = Vec::new();
    for arcs in found {
        let Some(last) = arcs.last() else { continue };
        let on = dag.out(dag.arc(*last).to).filter(|id| pleases(*id));
        all.extend(on.map(|id| [arcs.as_slice(), &[id]].concat()));
    }
    all
}
