//! Which blocks of a function surely start where an instruction does.
//!
//! Nothing says where a *measured* table ends, so it may have been read too far, and that an address is held does not say that
//! a jump leads there. In an exact function that would show: all of its bytes are accounted for. In a partial one an entry too many
//! may lead between two instructions that nothing known reaches, and an address to data. So there only that is sure which control
//! reaches without such a table or label.

use crate::{EdgeKind, Function, Resolution, Status};

/// For each block of the function, whether it surely is one. Linear in its edges.
pub(crate) fn sure_blocks(function: &Function) -> Vec<bool> {
    let count = function.blocks.len();
    let jumps = function.indirect_jumps.iter();
    let inferred = [Resolution::MeasuredTable, Resolution::Labels];
    let doubtful = jumps.filter(|jump| inferred.contains(&jump.resolution));
    let doubtful: Vec<u32> = doubtful.map(|jump| jump.block).collect();
    if doubtful.is_empty() || !matches!(function.status, Status::Partial(_)) {
        return vec![true; count];
    }
    let position = |address| {
        let blocks = &function.blocks;
        blocks.binary_search_by_key(&address, |block| block.range.start())
    };
    let mut ways = vec![Vec::new(); count];
    for edge in &function.edges {
        let leads_by = matches!(edge.kind, EdgeKind::JumpTable | EdgeKind::ComputedGoto);
        let is_doubtful = leads_by && doubtful.contains(&edge.from);
        if let (Some(ways), Ok(to), false) = (
            ways.get_mut(edge.from as usize),
            position(edge.to),
            is_doubtful,
        ) {
            ways.push(to);
        }
    }
    let mut sure = vec![false; count];
    let mut open: Vec<usize> = position(function.entry).into_iter().collect();
    while let Some(block) = open.pop() {
        if !std::mem::replace(&mut sure[block], true) {
            open.extend(&ways[block]);
        }
    }
    sure
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Address, Block, Edge, IndirectJump, Range, Reason};

    /// A table at the first block leads to the second and third; the first also goes on to the fourth, and that to the
    /// third.
    fn function(status: Status, resolution: Resolution) -> Function {
        let range = |from, to| Range::new(Address(from), Address(to)).expect("a range");
        let block = |at: u64| Block {
            range: range(at, at + 4),
            instructions: 1,
            forks_or_ends: false,
        };
        let edge = |from, to, kind| Edge {
            from,
            to: Address(to),
            kind,
        };
        Function {
            entry: Address(0),
            ranges: vec![range(0, 16)],
            name: None,
            status,
            returns: true,
            returns_again: false,
            blocks: vec![block(0), block(4), block(8), block(12)],
            edges: vec![
                edge(0, 4, EdgeKind::JumpTable),
                edge(0, 8, EdgeKind::JumpTable),
                edge(0, 12, EdgeKind::Fallthrough),
                edge(3, 8, EdgeKind::Jump),
            ],
            calls: Vec::new(),
            indirect_jumps: vec![IndirectJump {
                block: 0,
                address: Address(2),
                resolution,
                import: None,
            }],
            branches: 0,
        }
    }

    #[test]
    fn what_only_a_measured_table_or_a_label_names_is_not_sure_where_bytes_are_missing() {
        let partial = Status::Partial(Reason::UnreachedBytes);
        for resolution in [Resolution::MeasuredTable, Resolution::Labels] {
            let found = sure_blocks(&function(partial, resolution));
            assert_eq!(found, [true, false, true, true]);
        }
        for (status, resolution) in [
            (Status::Exact, Resolution::MeasuredTable),
            (partial, Resolution::GuardedTable),
        ] {
            assert_eq!(sure_blocks(&function(status, resolution)), [true; 4]);
        }
    }
}
