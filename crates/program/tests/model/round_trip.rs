//! Random programs are packed, read back and held against themselves.

use proptest::prelude::*;
use tomo_program::dwarf::{Lines, Position};
use tomo_program::{
    Address, Block, Facts, Function, Model, Patchability, Resolution, Status, patchability,
};

use crate::arbitrary::program;

/// All blocks with the function they belong to, by address.
fn blocks_by_address(functions: &[Function]) -> Vec<(usize, Block)> {
    let numbered = functions.iter().enumerate();
    let mut all: Vec<_> = numbered
        .flat_map(|(f, function)| function.blocks.iter().map(move |b| (f, *b)))
        .collect();
    all.sort_by_key(|(_, block)| block.range.start());
    all
}

/// Facts with a source position for most blocks and first instructions for all.
fn facts_for(functions: &[Function]) -> Facts {
    let blocks = blocks_by_address(functions);
    let position = |index: u32| {
        (index % 7 != 3).then_some(Position {
            file: index % 2,
            line: index + 1,
        })
    };
    Facts {
        build_id: Some(vec![7; 20]),
        imports: (0..9).map(|import| format!("import{import}")).collect(),
        warnings: vec!["one".into(), String::new()],
        lines: Lines {
            files: vec!["a.c".into(), "/b/ü.rs".into()],
            at: (0..)
                .zip(&blocks)
                .map(|(index, _)| position(index))
                .collect(),
            ..Lines::default()
        },
        first_instructions: (0..)
            .zip(&blocks)
            .map(|(index, _): (u8, _)| index % 15 + 1)
            .collect::<Vec<_>>(),
        ..Facts::default()
    }
}

/// The model, once through its bytes.
fn through_bytes(functions: &[Function], facts: Facts) -> Model {
    let built = Model::build(functions.to_vec(), facts);
    let read = Model::from_bytes(built.as_bytes().to_vec()).expect("what was built is sound");
    assert_eq!(read.summary(), built.summary());
    read.verify().expect("what was built is sound");
    read
}

proptest! {
    #[test]
    fn functions_come_back_as_they_were(functions in program()) {
        let model = through_bytes(&functions, facts_for(&functions));
        let graphs = model.graphs().expect("sound");
        let back: Vec<_> = graphs.functions().map(|function| function.to_function()).collect();
        prop_assert_eq!(&back, &functions);
        prop_assert_eq!(graphs.functions().len(), functions.len());
    }

    #[test]
    fn addresses_are_found_where_they_are(functions in program()) {
        let model = through_bytes(&functions, facts_for(&functions));
        let graphs = model.graphs().expect("sound");
        let all = functions.iter().flat_map(|f| &f.ranges).flat_map(|r| r.start().0.saturating_sub(2)..r.end().0 + 2);
        for address in all.map(Address) {
            let block = functions.iter().flat_map(|f| &f.blocks).find(|b| b.range.contains(address));
            let found = graphs.block_at(address);
            prop_assert_eq!(found.map(|block| block.range()), block.map(|block| block.range));
            let owner = functions.iter().find(|f| f.entry == address || f.ranges.iter().any(|r| r.contains(address)));
            let found = graphs.function_at(address);
            prop_assert_eq!(found.map(|function| function.entry()), owner.map(|function| function.entry));
            let of_block = graphs.block_at(address).and_then(|block| block.function());
            prop_assert_eq!(of_block.map(|f| f.entry()), block.and(owner).map(|function| function.entry));
        }
    }

    #[test]
    fn facts_of_blocks_are_those_of_their_addresses(functions in program()) {
        let facts = facts_for(&functions);
        let model = through_bytes(&functions, facts.clone());
        let graphs = model.graphs().expect("sound");
        for (index, (owner, block)) in blocks_by_address(&functions).into_iter().enumerate() {
            let view = graphs.block_at(block.range.start()).expect("a known block");
            let source = view.source().map(|source| (source.file.to_owned(), source.line));
            let expected = facts.lines.at[index].map(|p| (facts.lines.files[p.file as usize].clone(), p.line));
            prop_assert_eq!(source, expected);
            prop_assert_eq!(view.first_instruction(), Some(facts.first_instructions[index]));
            let status = functions[owner].status;
            let size = u32::try_from(block.range.size()).expect("small");
            let carried = patchability(status, block.range.start(), size, facts.first_instructions[index]);
            prop_assert_eq!(view.patchability(status), carried);
        }
    }

    #[test]
    fn predecessors_are_successors_turned_round(functions in program()) {
        let model = through_bytes(&functions, Facts::default());
        let graphs = model.graphs().expect("sound");
        for function in graphs.functions() {
            let predecessors = function.predecessors();
            for block in function.blocks() {
                let expected: Vec<_> = function.edges().filter(|edge| edge.block() == Some(block.id())).collect();
                prop_assert_eq!(predecessors.of_block(block.id()), expected);
            }
        }
    }

    #[test]
    fn the_summary_counts_what_there_is(functions in program()) {
        let facts = facts_for(&functions);
        let model = through_bytes(&functions, facts.clone());
        let summary = model.summary();
        let blocks = blocks_by_address(&functions);
        let count = |test: fn(&Function) -> bool| functions.iter().filter(|f| test(f)).count() as u64;
        prop_assert_eq!(summary.functions, functions.len() as u64);
        prop_assert_eq!(summary.exact, count(|f| f.status == Status::Exact));
        prop_assert_eq!(summary.partial, count(|f| matches!(f.status, Status::Partial(_))));
        prop_assert_eq!(summary.opaque, count(|f| matches!(f.status, Status::Opaque(_))));
        prop_assert_eq!(summary.reasons().iter().map(|(_, n)| n).sum::<u64>(), summary.partial + summary.opaque);
        prop_assert_eq!(summary.blocks, blocks.len() as u64);
        prop_assert_eq!(summary.edges, functions.iter().map(|f| f.edges.len() as u64).sum::<u64>());
        prop_assert_eq!(summary.edge_kinds().iter().map(|(_, n)| n).sum::<u64>(), summary.edges);
        let calls = || functions.iter().flat_map(|f| &f.calls);
        prop_assert_eq!(summary.call_sites, calls().count() as u64);
        prop_assert_eq!(summary.return_sites, calls().filter(|c| c.returns && !c.void).count() as u64);
        let jumps = || functions.iter().flat_map(|f| &f.indirect_jumps);
        prop_assert_eq!(summary.indirect_jumps, jumps().count() as u64);
        let resolved = jumps().filter(|jump| jump.resolution != Resolution::Unresolved).count() as u64;
        prop_assert_eq!(summary.indirect_jumps_resolved, resolved);
        prop_assert_eq!(summary.branch_sites, functions.iter().map(|f| u64::from(f.branches)).sum::<u64>());
        prop_assert_eq!(summary.blocks_with_lines, facts.lines.at.iter().flatten().count() as u64);
        prop_assert_eq!(summary.blocks_detour + summary.blocks_trap + summary.blocks_unpatchable, summary.blocks);
        let detours = blocks.iter().zip(&facts.first_instructions).filter(|((owner, block), first)| {
            let size = block.range.size() as u32;
            patchability(functions[*owner].status, block.range.start(), size, **first) == Patchability::Detour
        });
        prop_assert_eq!(summary.blocks_detour, detours.count() as u64);
    }

    #[test]
    fn names_lead_to_their_functions(functions in program()) {
        let model = through_bytes(&functions, Facts::default());
        let graphs = model.graphs().expect("sound");
        for function in functions.iter().filter(|f| f.name.as_ref().is_some_and(|name| !name.is_empty())) {
            let name = function.name.as_deref().expect("named");
            let named = graphs.functions_named(name);
            prop_assert!(!named.by_part);
            let expected: Vec<_> = functions.iter().filter(|f| f.name.as_deref() == Some(name)).map(|f| f.entry).collect();
            prop_assert_eq!(named.functions.iter().map(|f| f.entry()).collect::<Vec<_>>(), expected);
        }
    }
}

/// Addresses at both ends of the address space are kept.
#[test]
fn far_apart_and_at_the_end() {
    let at = |start: u64, size| Function {
        entry: Address(start),
        ranges: vec![tomo_program::Range::sized(Address(start), size).expect("fits")],
        name: None,
        status: Status::Exact,
        returns: true,
        returns_again: false,
        blocks: vec![Block {
            range: tomo_program::Range::sized(Address(start), size).expect("fits"),
            instructions: 1,
            forks_or_ends: false,
        }],
        edges: vec![],
        calls: vec![],
        indirect_jumps: vec![],
        branches: 0,
    };
    let functions = vec![at(0, 1), at(0x7fff_ffff_0000, 4), at(u64::MAX - 3, 3)];
    let model = through_bytes(&functions, Facts::default());
    let graphs = model.graphs().expect("sound");
    assert_eq!(
        graphs
            .functions()
            .map(|f| f.to_function())
            .collect::<Vec<_>>(),
        functions
    );
    assert_eq!(
        graphs.function_at(Address(u64::MAX - 1)).map(|f| f.entry()),
        Some(Address(u64::MAX - 3))
    );
    assert!(graphs.function_at(Address(u64::MAX)).is_none());
    assert!(graphs.function_at(Address(1)).is_none());
}

/// No function at all is a program too.
#[test]
fn nothing() {
    let model = through_bytes(&[], Facts::default());
    assert_eq!(model.graphs().expect("sound").functions().len(), 0);
    assert_eq!(model.build_id(), None);
    assert!(
        model
            .graphs()
            .expect("sound")
            .block_at(Address(0))
            .is_none()
    );
}
