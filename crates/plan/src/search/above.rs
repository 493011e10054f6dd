//! Which blocks have something new among their ancestors: what [`Vicinity::ancestors`] answers of one
//! block, asked of all at once.
//!
//! Source: ABI §4.2 (searching backward), turned round: from the branches that are not known down to
//! what they decide about, and on to the routines that are called there. A search that has run into
//! ancestors that are all known asks once, not candidate by candidate. O(sites, blocks, calls, and what
//! depends on the sites that are not known).

use super::SiteId;
use super::icdg::{Block, Icdg, Path};
use super::vicinity::{Vicinity, path};

/// For every block, whether one of its ancestors is not known.
pub(super) struct Above {
    news: Vec<bool>,
    open: Vec<Block>,
    entered: Vec<bool>,
}

impl Above {
    /// With routines into which the vicinities of roots do not spread.
    pub(super) fn of(icdg: &Icdg, known: &[bool], surveyed: &[u32]) -> Self {
        let mut above = Self {
            news: vec![false; icdg.parent.len()],
            open: Vec::new(),
            entered: vec![false; icdg.routine_count() as usize],
        };
        for site in (0..known.len() as u32).filter(|&site| !known[site as usize]) {
            for predicate in icdg.predicates(SiteId(site)) {
                above.add_path(icdg, icdg.decides[predicate.0 as usize]);
            }
        }
        let mut first = Vicinity::default();
        first.entered.extend(surveyed);
        first.roots(icdg);
        if first.sites.iter().any(|site| !known[site.0 as usize]) {
            for &root in &icdg.roots {
                above.enter(icdg, root);
            }
        }
        above.spread(icdg);
        above
    }

    /// Whether there is something new above `block`.
    pub(super) fn has_news(&self, block: Block) -> bool {
        self.news[block as usize]
    }

    /// What is new above a block is new above what follows it without alternative, and above what
    /// the routines that it calls always run.
    fn spread(&mut self, icdg: &Icdg) {
        while let Some(block) = self.open.pop() {
            if !icdg.leads_on[block as usize] {
                continue;
            }
            if let Some(&endless) = icdg.endless.get(&block) {
                self.add_path(icdg, endless);
            }
            for &callee in icdg.callees.of(block) {
                self.enter(icdg, callee);
            }
        }
    }

    fn enter(&mut self, icdg: &Icdg, routine: u32) {
        if !std::mem::replace(&mut self.entered[routine as usize], true) {
            for block in icdg.always_of(routine) {
                self.add(block);
            }
        }
    }

    fn add_path(&mut self, icdg: &Icdg, ends: Path) {
        for block in path(icdg, ends) {
            self.add(block);
        }
    }

    fn add(&mut self, block: Block) {
        if !std::mem::replace(&mut self.news[block as usize], true) {
            self.open.push(block);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::random::Random;
    use crate::search::Routine;
    use tomo_graph::check::{Entropy, generate};
    use tomo_graph::{Graph, NodeId};

    fn program(random: &mut Random) -> Vec<Routine> {
        let count = 1 + random.below(5);
        let routine = |_| {
            let bytes: Vec<u8> = (0..random.below(60))
                .map(|_| random.below(256) as u8)
                .collect();
            let graph = generate(&mut Entropy::new(&bytes), 9);
            let nodes = graph.node_count();
            let calls = (0..random.below(4)).map(|_| {
                (
                    NodeId(random.below(nodes) as u32),
                    random.below(count) as u32,
                )
            });
            Routine {
                calls: calls.collect(),
                values: vec![(NodeId(random.below(nodes) as u32), 2)],
                root: random.below(3) == 0,
                ..Routine::new(graph)
            }
        };
        (0..count).map(routine).collect()
    }

    /// A random program, and which of its sites are known: of some rounds few, of others most.
    pub(in crate::search) fn partly_known(random: &mut Random, round: usize) -> (Icdg, Vec<bool>) {
        let icdg = Icdg::of(&program(random)).expect("a program");
        let most = 1 + round % 12;
        let known = (0..icdg.site_count()).map(|_| random.below(most) > 0);
        let known = known.collect();
        (icdg, known)
    }

    /// Random programs, and random sites known: of each block the same as its ancestors say.
    #[test]
    fn news_above_is_what_the_ancestors_say() {
        let mut random = Random::new(7);
        let mut found = [0, 0];
        for round in 0..3000 {
            let (icdg, known) = partly_known(&mut random, round);
            let surveyed: Vec<u32> = (0..icdg.routine_count())
                .filter(|_| random.below(4) == 0)
                .collect();
            let above = Above::of(&icdg, &known, &surveyed);
            for block in 0..icdg.parent.len() as u32 {
                let mut vicinity = Vicinity::default();
                vicinity.entered.extend(&surveyed);
                vicinity.ancestors(&icdg, block);
                let news = vicinity.sites.iter().any(|site| !known[site.0 as usize]);
                assert_eq!(above.has_news(block), news, "round {round}, block {block}");
                found[usize::from(news)] += 1;
            }
        }
        assert!(found.iter().all(|&count| count > 5000), "{found:?}");
    }
}
