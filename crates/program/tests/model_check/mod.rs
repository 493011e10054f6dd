//! What every sequence of bytes that is taken for a model must stand: shared by the tests and the
//! fuzz target.

use std::hint::black_box;
use std::ops::Range;

use tomo_program::{Address, BlockView, FunctionView, Graphs, Model, ModelError, Search};
use xxhash_rust::xxh3::xxh3_64;

/// Takes `bytes` for a model, as they are and with all checksums made right, and walks it.
pub(crate) fn check(bytes: &[u8]) {
    let _ = outcome(bytes.to_vec());
    let mut sealed = bytes.to_vec();
    if seal(&mut sealed) {
        let _ = outcome(sealed);
    }
}

/// Opens and walks; an error is one line.
pub(crate) fn outcome(bytes: Vec<u8>) -> Result<(), ModelError> {
    let length = bytes.len();
    let walked = Model::from_bytes(bytes).and_then(|model| {
        let graphs = model.graphs()?;
        walk(&graphs, length);
        model
            .warnings()?
            .iter()
            .for_each(|warning| assert!(warning.len() <= length));
        model.verify()
    });
    if let Err(error) = &walked {
        let line = error.to_string();
        assert!(!line.is_empty() && !line.contains('\n'), "{line:?}");
    }
    walked
}

/// Asks every view everything, and holds each list against what `length` bytes can hold.
fn walk(graphs: &Graphs<'_>, length: usize) {
    let (mut blocks, mut edges, mut calls) = (0, 0, 0);
    for function in graphs.functions() {
        for block in function.blocks() {
            blocks += 1;
            edges += walk_block(graphs, &function, &block);
        }
        calls += function.calls().len();
        walk_sites(&function);
        black_box((
            function.title(),
            function.flow_graph(),
            function.to_function(),
        ));
        black_box((
            graphs.function_at(function.entry()),
            function.ranges().collect::<Vec<_>>(),
        ));
    }
    assert!(
        blocks <= length && edges <= length && calls <= length,
        "lists share nothing"
    );
    for address in [0, 1, 0x1000, u64::MAX] {
        black_box((
            graphs.block_at(Address(address)),
            graphs.function_at(Address(address)),
        ));
    }
    black_box(matches!(graphs.search("a"), Search::Found(_)));
}

fn walk_block(graphs: &Graphs<'_>, function: &FunctionView<'_>, block: &BlockView<'_>) -> usize {
    assert!(block.function().is_some());
    black_box((
        block.range(),
        block.source(),
        block.patchability(function.status()),
    ));
    black_box(graphs.block_at(block.address()));
    for edge in block.successors() {
        black_box((
            graphs.block_at(edge.address),
            edge.block().and_then(|to| function.position_of(to)),
        ));
    }
    block.successors().len()
}

fn walk_sites(function: &FunctionView<'_>) {
    for call in function.calls() {
        black_box((
            call.address(),
            call.import(),
            call.function(),
            call.is_return_site(),
        ));
    }
    for jump in function.indirect_jumps() {
        black_box((jump.address(), jump.import(), jump.resolution()));
    }
    let predecessors = function.predecessors();
    for block in function.blocks() {
        black_box(predecessors.of_block(block.id()).len());
    }
}

/// Where the header's fields are, as its documentation lists them.
pub(crate) const TABLE: usize = 8 + 4 + 4 + 8 + 8 + 16 + 8 + 64;
pub(crate) const SECTIONS: usize = 15;
const HEADER: usize = TABLE + SECTIONS * 24 + 8;

fn number(bytes: &[u8], at: usize) -> usize {
    let word: [u8; 8] = bytes[at..at + 8].try_into().expect("eight bytes");
    usize::try_from(u64::from_le_bytes(word)).expect("64 bits")
}

/// Where a section lies, if it lies inside.
pub(crate) fn place(bytes: &[u8], section: usize) -> Option<Range<usize>> {
    let at = TABLE + section * 24;
    let (start, size) = (number(bytes, at), number(bytes, at + 8));
    let end = start.checked_add(size)?;
    (end <= bytes.len()).then_some(start..end)
}

/// Makes length and checksums right; false where there is no room for a header.
pub(crate) fn seal(bytes: &mut [u8]) -> bool {
    if bytes.len() < HEADER {
        return false;
    }
    let length = bytes.len() as u64;
    bytes[16..24].copy_from_slice(&length.to_le_bytes());
    for section in 0..SECTIONS {
        let sum = place(bytes, section).map_or(0, |place| xxh3_64(&bytes[place]));
        let at = TABLE + section * 24 + 16;
        bytes[at..at + 8].copy_from_slice(&sum.to_le_bytes());
    }
    let sum = xxh3_64(&bytes[..HEADER - 8]);
    bytes[HEADER - 8..HEADER].copy_from_slice(&sum.to_le_bytes());
    true
}
