//! The choice of probes: the theorem of the module above, and what to do where blocks cannot be
//! patched or are not asked for.
//!
//! Prices: a super block becomes known by a probe in it, or by all super blocks behind one of its
//! closed gaps being known (those are its children in the dominator tree, so nothing is paid twice),
//! or by all from which one comes to it. The first pass goes bottom up over the dominator tree, the second over the
//! post-dominator tree for those that are closed above. With everything patchable and asked for
//! neither buys anything, and the placement is minimal; else it is a good one: [`check`] proves what
//! it promises, nothing proves that it is the cheapest.
//!
//! Where only an unpatchable block stands between a super block and probes further down, a search
//! for a walk that escapes decides by the definition, within a budget linear in the graph.
//!
//! [`check`]: super::check()

use tomo_graph::{Graph, NodeId};

use super::{Flow, SuperBlocks};

/// What a probe at a block costs in some unit (a short block needs a trap, which is dear), or
/// nothing if it cannot carry one.
pub type Cost = Option<u32>;

/// What will be known of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It has a probe.
    Probed,
    /// Whether it ran follows from probes, in every run that ends as promised.
    Inferred,
    /// Nobody asked; what can be told will be.
    Unasked,
    /// It has no probe, and some runs with it look like some without. Others tell: ask the reading
    /// of each run.
    Unobservable,
}

/// Which blocks carry a probe, and what becomes known of every block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Blocks with a probe, ascending.
    pub probes: Vec<NodeId>,
    /// By block.
    pub fates: Vec<Fate>,
}

impl Placement {
    fn of_fates(fates: Vec<Fate>) -> Self {
        let probes = (0..)
            .map(NodeId)
            .zip(&fates)
            .filter(|(_, fate)| **fate == Fate::Probed)
            .map(|(node, _)| node)
            .collect();
        Self { probes, fates }
    }

    /// The blocks of which it may remain unknown whether they ran.
    pub fn unobservable(&self) -> impl Iterator<Item = NodeId> {
        (0..)
            .map(NodeId)
            .zip(&self.fates)
            .filter(|(_, fate)| **fate == Fate::Unobservable)
            .map(|(node, _)| node)
    }
}

/// A probe in every block that can carry one. Infers nothing, so it needs no knowledge of edges.
pub fn all_blocks<G: Graph>(graph: &G, cost: impl Fn(NodeId) -> Cost) -> Placement {
    let fate = |node| match cost(node) {
        Some(_) => Fate::Probed,
        None => Fate::Unobservable,
    };
    Placement::of_fates(graph.nodes().map(fate).collect())
}

/// Probes from which it follows of every block whether it ran: of least cost if all can be patched.
pub fn reduced(flow: &Flow<'_>, cost: impl Fn(NodeId) -> Cost) -> Placement {
    place(flow, cost, |_| true)
}

/// Probes from which it follows whether the function ran: one at the entry, or cheaper ones that
/// share its fate.
pub fn functions(flow: &Flow<'_>, cost: impl Fn(NodeId) -> Cost) -> Placement {
    place(flow, cost, |node| node == flow.entry())
}

/// Probes from which it follows of every block that is asked for whether it ran. O(m log n).
pub fn place(
    flow: &Flow<'_>,
    cost: impl Fn(NodeId) -> Cost,
    asked: impl Fn(NodeId) -> bool,
) -> Placement {
    let classes = SuperBlocks::of(flow);
    let mut choice = Choice::new(flow, &classes, &cost, &asked);
    choice.probe_what_must_be();
    choice.settle_downwards();
    choice.settle_upwards();
    choice.finish(cost, asked)
}

/// Total of several costs; nothing if one is impossible.
type Price = Option<u64>;

struct Choice<'a, 'g> {
    flow: &'a Flow<'g>,
    classes: &'a SuperBlocks,
    /// Per super block: its cheapest member, the last one of those; and what it costs, at least 1,
    /// so that only what is known has no price.
    seat: Vec<Option<(u32, NodeId)>>,
    asked: Vec<bool>,
    probed: Vec<bool>,
    known: Vec<bool>,
    /// Per super block, what making it known from below costs, itself included.
    price: Vec<Price>,
    /// How many more edges the searches may walk.
    budget: usize,
}

impl<'a, 'g> Choice<'a, 'g> {
    fn new(
        flow: &'a Flow<'g>,
        classes: &'a SuperBlocks,
        cost: impl Fn(NodeId) -> Cost,
        asked: impl Fn(NodeId) -> bool,
    ) -> Self {
        let count = classes.count();
        let cheapest = |class| {
            let members = classes.members(class).iter().rev();
            members
                .filter_map(|&node| Some((cost(node)?, node)))
                .min_by_key(|&(cost, _)| cost)
                .map(|(cost, node)| (cost.max(1), node))
        };
        Self {
            flow,
            classes,
            seat: (0..count).map(cheapest).collect(),
            asked: (0..count)
                .map(|class| classes.members(class).iter().any(|&node| asked(node)))
                .collect(),
            probed: vec![false; count],
            known: vec![false; count],
            price: vec![None; count],
            budget: 64 * (flow.node_count() + flow.edge_count()),
        }
    }

    fn probe(&mut self, class: usize) {
        self.probed[class] = true;
        self.known[class] = true;
    }

    /// No placement does without these.
    fn probe_what_must_be(&mut self) {
        for class in 0..self.classes.count() {
            if self.asked[class]
                && self.seat[class].is_some()
                && self.classes.below(self.flow, class).is_empty()
                && self.classes.above(self.flow, class).is_none()
            {
                self.probe(class);
            }
        }
    }

    /// Bottom up over the dominator tree. What is also closed above waits for the second pass if
    /// it would cost something.
    fn settle_downwards(&mut self) {
        for class in (0..self.classes.count()).rev() {
            let below = self.classes.below(self.flow, class);
            let through = self.cheapest(&self.price, below).map(|(price, _)| price);
            self.known[class] |= through == Some(0);
            self.price[class] = self.cheaper(class, through);
            if self.asked[class] && !self.known[class] && self.must_pay(class) {
                self.buy_downwards(class);
            }
        }
    }

    /// Whether there is no other way to know `class` than to pay for it now.
    fn must_pay(&mut self, class: usize) -> bool {
        if self.classes.above(self.flow, class).is_some() {
            return false;
        }
        self.known[class] = self.search(class);
        if self.known[class] {
            self.price[class] = Some(0);
        }
        !self.known[class]
    }

    /// Bottom up over the post-dominator tree.
    fn settle_upwards(&mut self) {
        let depth = |class: usize| self.classes.post.tree().depth(self.classes.head(class));
        let mut order: Vec<usize> = (0..self.classes.count()).collect();
        order.sort_by_key(|&class| std::cmp::Reverse(depth(class)));
        let mut price: Vec<Price> = vec![None; order.len()];
        for class in order {
            let above = self.classes.above(self.flow, class);
            let closed = above.is_some();
            let through = self.cheapest(&price, above).map(|(price, _)| price);
            self.known[class] |= through == Some(0);
            price[class] = self.cheaper(class, through);
            if !self.asked[class] || self.known[class] || !closed {
                continue;
            }
            self.known[class] = self.search(class);
            if !self.known[class] {
                match (self.price[class], price[class]) {
                    (Some(down), up) if up.is_none_or(|up| down <= up) => {
                        self.buy_downwards(class);
                    }
                    (_, Some(_)) => self.buy_upwards(class, &price),
                    _ => {}
                }
            }
            if self.known[class] {
                price[class] = Some(0);
            }
        }
    }

    /// What `classes` cost together by the given prices; those that are known cost nothing.
    fn sum(&self, price: &[Price], classes: &[usize]) -> Price {
        classes
            .iter()
            .map(|&class| match self.known[class] {
                true => Some(0),
                false => price[class],
            })
            .sum()
    }

    /// The cheapest of several ways to know something, with its price.
    fn cheapest(
        &self,
        price: &[Price],
        ways: impl IntoIterator<Item = Vec<usize>>,
    ) -> Option<(u64, Vec<usize>)> {
        ways.into_iter()
            .filter_map(|way| Some((self.sum(price, &way)?, way)))
            .min_by_key(|&(price, _)| price)
    }

    /// The least of a probe in `class` and what its neighbours cost.
    fn cheaper(&self, class: usize, through: Price) -> Price {
        let own = self.seat[class].map(|(cost, _)| u64::from(cost));
        match self.known[class] {
            true => Some(0),
            false => own.into_iter().chain(through).min(),
        }
    }

    fn buy_downwards(&mut self, class: usize) {
        let price = std::mem::take(&mut self.price);
        self.buy(class, &price, |choice, class| {
            choice.classes.below(choice.flow, class)
        });
        self.price = price;
        if self.known[class] {
            self.price[class] = Some(0);
        }
    }

    fn buy_upwards(&mut self, class: usize, price: &[Price]) {
        self.buy(class, price, |choice, class| {
            choice
                .classes
                .above(choice.flow, class)
                .into_iter()
                .collect()
        });
    }

    /// Pays the price of `class`: by its own probe where that is the cheapest, else next to it.
    fn buy(
        &mut self,
        class: usize,
        price: &[Price],
        ways: impl Fn(&Self, usize) -> Vec<Vec<usize>>,
    ) {
        let mut open = vec![class];
        while let Some(class) = open.pop() {
            if self.known[class] || price[class].is_none() {
                continue;
            }
            let own = self.seat[class].map(|(cost, _)| u64::from(cost));
            match self.cheapest(price, ways(self, class)) {
                Some((through, way)) if own.is_none_or(|own| through < own) => {
                    self.known[class] = true;
                    open.extend(way);
                }
                _ => self.probe(class),
            }
        }
    }

    /// By the definition: whether some gap of `class` cannot be crossed without passing a probe that
    /// implies it. Says no when the budget is used up.
    fn search(&mut self, class: usize) -> bool {
        let (flow, classes) = (self.flow, self.classes);
        let head = classes.head(class);
        let up = |node| flow.predecessors(node).collect();
        let down = |node| flow.successors(node).collect();
        let members = classes.members(class);
        self.caught(head, up, |node| node == flow.entry())
            || (0..members.len()).any(|at| {
                let next = members.get(at + 1);
                self.caught(members[at], down, |node| {
                    flow.is_exit(node) || Some(&node) == next
                })
            })
    }

    /// Whether all that `next` reaches from `start` meets a probe that implies `start` before it
    /// meets an `end`.
    fn caught(
        &mut self,
        start: NodeId,
        next: impl Fn(NodeId) -> Vec<NodeId>,
        end: impl Fn(NodeId) -> bool,
    ) -> bool {
        let mut seen = std::collections::HashSet::from([start]);
        let mut open = vec![start];
        while let Some(node) = open.pop() {
            if end(node) || self.budget == 0 {
                return false;
            }
            for to in next(node) {
                self.budget = self.budget.saturating_sub(1);
                if !self.shows(to, start) && seen.insert(to) {
                    open.push(to);
                }
            }
        }
        true
    }

    /// Whether `node` carries a probe that implies `block`. Nodes out of reach end no walk, and
    /// start none.
    fn shows(&self, node: NodeId, block: NodeId) -> bool {
        let Some(class) = self.classes.of_node(node) else {
            return true;
        };
        let here = self.seat[class].is_some_and(|(_, seat)| seat == node);
        self.probed[class] && here && self.classes.implies(node, block)
    }

    fn finish(self, cost: impl Fn(NodeId) -> Cost, asked: impl Fn(NodeId) -> bool) -> Placement {
        let fate = |node: NodeId| match self.classes.of_node(node) {
            Some(class) if self.probed[class] && self.seat[class].map(|s| s.1) == Some(node) => {
                Fate::Probed
            }
            Some(class) if self.known[class] => Fate::Inferred,
            None if asked(node) && cost(node).is_some() => Fate::Probed,
            _ if asked(node) => Fate::Unobservable,
            _ => Fate::Unasked,
        };
        Placement::of_fates(self.flow.nodes().map(fate).collect())
    }
}
