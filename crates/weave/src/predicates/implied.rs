//! Which branch predicates are left out because other sites tell of them (ABI §3.1, `tomo_plan::predicates`).
//!
//! Only where it can be told for certain: the function is entered at its entry alone; control is taken to stop behind every
//! block in which something may fault, or that calls or enters the system, since a crash is what is looked for; and
//! the site that tells is observed itself, all of it.

use std::collections::HashMap;

use tomo_graph::{EdgeId, NodeId};
use tomo_plan::coverage::{Ending, Flow, Subdivision};
use tomo_plan::predicates::{Model, implied};
use tomo_program::{EdgeKind, FunctionView};
use tomo_wire::predicates::Kind;

use super::places::Places;
use super::sites::Site;
use crate::spots::Ways;

/// Which of the two ways of a branch it is: taken, not taken.
pub(crate) type Side = usize;

/// The ways of branches that need no probe, with the site that tells of each, by numbers of sites.
pub(crate) fn told(
    (ways, places): (&Ways, &Places<'_, '_>),
    function: &FunctionView<'_>,
    sites: &[Site],
    is_observed: impl Fn(usize) -> bool,
) -> HashMap<(usize, Side), usize> {
    let all = Telling::of(places, function, sites).filter(|_| {
        let mut blocks = function.blocks();
        !blocks.any(|block| ways.foreign.has(block.address()))
    });
    all.and_then(|telling| telling.told(places, function, is_observed))
        .unwrap_or_default()
}

/// Sites by what they are in the function's graph.
struct Telling {
    /// By block: the site that looks at a value whenever it runs.
    values: HashMap<NodeId, usize>,
    /// By block: the branch in which it ends.
    branches: HashMap<NodeId, usize>,
    /// By edge of the graph.
    sides: HashMap<EdgeId, (usize, Side)>,
}

impl Telling {
    fn of(places: &Places<'_, '_>, function: &FunctionView<'_>, sites: &[Site]) -> Option<Self> {
        let node = |block: usize| NodeId(block as u32);
        let mut telling = Self {
            values: HashMap::new(),
            branches: HashMap::new(),
            sides: HashMap::new(),
        };
        for (number, site) in sites.iter().enumerate() {
            match site.kind {
                Kind::Branch => telling.branches.insert(node(site.block), number),
                Kind::Result => places
                    .is_value_site(site)
                    .and_then(|block| telling.values.insert(node(block), number)),
            };
        }
        let inside = |block| function.node(block);
        let inner = function
            .edges()
            .filter(|edge| inside(edge.from).is_some() && edge.block().and_then(inside).is_some());
        for (number, edge) in (0..).zip(inner) {
            let side = match edge.kind {
                EdgeKind::Taken => 0,
                EdgeKind::NotTaken => 1,
                _ => continue,
            };
            if let Some(&site) = telling.branches.get(&inside(edge.from)?) {
                telling.sides.insert(EdgeId(number), (site, side));
            }
        }
        Some(telling)
    }

    fn told(
        &self,
        places: &Places<'_, '_>,
        function: &FunctionView<'_>,
        is_observed: impl Fn(usize) -> bool,
    ) -> Option<HashMap<(usize, Side), usize>> {
        let graph = function.flow_graph()?;
        let stops = |node: NodeId| {
            places
                .codes
                .get(node.index())
                .is_none_or(|code| code.may_stop())
        };
        let flow = Flow::new(&graph, Ending::AtStops, stops);
        let divided = Subdivision::of(&flow).ok()?;
        let value = |node: NodeId| {
            let site = self.values.get(&node);
            site.is_some_and(|&site| is_observed(site))
        };
        let removal = implied(&divided, Model::Binary, value);
        let mut told = HashMap::new();
        for edge in &removal.order {
            let by = removal.told_by.get(edge.index()).copied().flatten();
            let (Some(by), Some(&side)) = (by, self.sides.get(edge)) else {
                continue;
            };
            let branch = || self.branches.get(&by).copied();
            let site = self.values.get(&by).copied().filter(|_| value(by));
            let site = site.or_else(branch).filter(|&site| is_observed(site));
            // Whoever tells has other sites than the one that is told.
            if let Some(site) = site.filter(|&site| site != side.0) {
                told.insert(side, site);
            }
        }
        Some(told)
    }
}
