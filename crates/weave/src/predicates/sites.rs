//! The sites of a program (ABI §2.1): its conditional branches, and its calls whose result somebody looks at.

use iced_x86::{Decoder, DecoderOptions, Instruction};
use tomo_program::{Address, BlockView, CallView, EdgeKind, EdgeView, FunctionView};
use tomo_wire::predicates::Kind;

use super::looks::{Widths, behind};
use crate::text::Text;

/// A site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    pub(crate) kind: Kind,
    /// The branch, or what is behind the call.
    pub(crate) address: Address,
    /// The block that ends in it, by its number in the function.
    pub(crate) block: usize,
    /// Where that block starts.
    pub(crate) start: Address,
    /// The result's width, as in a row.
    pub(crate) width: u8,
}

/// The sites of a function, by block.
pub(crate) fn of(text: &Text, function: &FunctionView<'_>, widths: &Widths) -> Vec<Site> {
    let branches = function
        .blocks()
        .enumerate()
        .filter_map(|(number, block)| branch(text, number, &block));
    let calls = function.calls().filter(CallView::is_return_site);
    let results = calls.filter_map(|call| {
        let address = behind(function, &call)?.address();
        Some(Site {
            kind: Kind::Result,
            address,
            block: function.position_of(call.block())?,
            start: function.block(call.block())?.address(),
            width: widths.at(address)?,
        })
    });
    let mut sites: Vec<Site> = branches.chain(results).collect();
    sites.sort_by_key(|site| (site.block, site.kind));
    sites
}

/// The branch at the end of a block, if its two ways are known and lead to two places.
fn branch(text: &Text, number: usize, block: &BlockView<'_>) -> Option<Site> {
    let way = |kind: EdgeKind| {
        let mut ways = block.successors();
        ways.find(|edge: &EdgeView| edge.kind == kind)
    };
    let (taken, not_taken) = (way(EdgeKind::Taken), way(EdgeKind::NotTaken)?);
    // One that leaves the function is of another kind.
    let leaves = |edge: &EdgeView| matches!(edge.kind, EdgeKind::TailCall | EdgeKind::JumpInto);
    let taken = taken.or_else(|| block.successors().find(leaves))?;
    if taken.address == not_taken.address {
        return None;
    }
    let bytes = text.from(block.address())?.get(..block.size() as usize)?;
    let start = block.address().0;
    let decoder = &mut Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    let last: Instruction = decoder.into_iter().last()?;
    Some(Site {
        kind: Kind::Branch,
        address: Address(last.ip()),
        block: number,
        start: block.address(),
        width: 0,
    })
}
