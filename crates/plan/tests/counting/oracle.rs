//! What is known, by linear algebra: the flow equations and the recorded arcs as rows of a matrix;
//! a count is known if its row is a combination of them. Modulo a prime, which changes no rank here
//! because matrices of flows are totally unimodular.

use tomo_graph::NodeId;
use tomo_plan::counting::{CountingPlan, Role};

const PRIME: i64 = 1_000_000_007;

/// The span of what is known, as rows in echelon form.
pub(crate) struct Known {
    rows: Vec<Vec<i64>>,
    arcs: usize,
}

impl Known {
    pub(crate) fn of(plan: &CountingPlan, recorded: impl Fn(Role) -> bool) -> Self {
        Self::of_set(plan, |at| recorded(plan.arcs()[at].role))
    }

    pub(crate) fn of_set(plan: &CountingPlan, recorded: impl Fn(usize) -> bool) -> Self {
        let arcs = plan.arcs().len();
        let mut known = Self {
            rows: Vec::new(),
            arcs,
        };
        for node in (0..=plan.node_count() as u32).map(NodeId) {
            let mut row = inflow(plan, node);
            for (slot, each) in row.iter_mut().zip(plan.arcs()) {
                *slot -= i64::from(each.ends.from == node);
            }
            known.add(row);
        }
        for at in (0..arcs).filter(|&at| recorded(at)) {
            let row = known.unit(at);
            known.add(row);
        }
        known
    }

    fn unit(&self, at: usize) -> Vec<i64> {
        (0..self.arcs).map(|other| i64::from(other == at)).collect()
    }

    fn add(&mut self, row: Vec<i64>) {
        let mut row = self.reduce(row);
        if let Some(pivot) = row.iter().position(|&value| value != 0) {
            let inverse = power(row[pivot], PRIME - 2);
            row.iter_mut()
                .for_each(|value| *value = *value * inverse % PRIME);
            self.rows.push(row);
        }
    }

    /// What is left of a row without what is known.
    fn reduce(&self, mut row: Vec<i64>) -> Vec<i64> {
        row.iter_mut()
            .for_each(|value| *value = value.rem_euclid(PRIME));
        for known in &self.rows {
            let pivot = known
                .iter()
                .position(|&value| value != 0)
                .expect("no zero rows");
            let factor = row[pivot];
            for (value, other) in row.iter_mut().zip(known) {
                *value = (*value - factor * other).rem_euclid(PRIME);
            }
        }
        row
    }

    fn has(&self, row: Vec<i64>) -> bool {
        self.reduce(row).iter().all(|&value| value == 0)
    }

    pub(crate) fn has_arc(&self, at: usize) -> bool {
        self.has(self.unit(at))
    }

    pub(crate) fn has_node(&self, plan: &CountingPlan, node: NodeId) -> bool {
        self.has(inflow(plan, node))
    }
}

fn inflow(plan: &CountingPlan, node: NodeId) -> Vec<i64> {
    let enters = plan.arcs().iter().map(|each| each.ends.to == node);
    enters.map(i64::from).collect()
}

fn power(base: i64, mut exponent: i64) -> i64 {
    let (mut result, mut square) = (1, base);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * square % PRIME;
        }
        square = square * square % PRIME;
        exponent >>= 1;
    }
    result
}
