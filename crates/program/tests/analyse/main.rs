//! The analysis against small programs whose exact graphs are written down beside their code.
//!
//! Each file in `tests/fixtures/analyse` is compiled here and says in its comments what must be
//! found ([`expect`]). Most are assembly: they pin one way in which compilers, or people who
//! write assembly, make a graph hard to see. Those whose names start with `trap_` try to have a
//! function called exact that is not.

mod build;
mod check;
mod debug_file;
mod expect;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/analyse")
}

/// A test for each fixture, and one that no file is left out.
macro_rules! fixtures {
    ($($name:ident.$extension:ident)*) => {
        $(#[test]
        fn $name() {
            let file = concat!(stringify!($name), ".", stringify!($extension));
            check::check(&directory().join(file));
        })*

        #[test]
        fn every_fixture_has_a_test() {
            let listed = [$(concat!(stringify!($name), ".", stringify!($extension))),*];
            let listed: BTreeSet<String> = listed.map(str::to_owned).into();
            let files = fs::read_dir(directory()).expect("the fixtures are there");
            let files = files.map(|file| file.expect("a file"));
            let files = files.filter(|file| file.path().is_file());
            let files: BTreeSet<String> = files
                .map(|file| file.file_name().into_string().expect("a name in UTF-8"))
                .collect();
            assert_eq!(listed, files);
        }
    };
}

fixtures! {
    broken_exceptions.s
    call_is_last.s
    cold_part.s
    cold_part_shared.s
    computed_goto.s
    computed_goto_labels.s
    falls_into_next.s
    foreign.s
    foreign_go.s
    foreign_old_go.s
    jump_into_function.s
    jump_into_instruction.s
    landing_pads_clang.cpp
    landing_pads_gcc.cpp
    main_alone.c
    maybe_data.s
    nonlocal_goto.c
    noreturn.s
    noreturn_by_status.s
    noreturn_code_behind.s
    overlap_and_jump_outside.s
    overlap_lock_prefix.s
    parts_of_blocks.s
    restartable.s
    retpoline.s
    setjmp.c
    split_stack.c
    switch_clang.c
    switch_fixed_address.c
    switch_large_model.c
    switch_offsets_from_start.c
    switch_optimized.c
    symbol_too_large.s
    symbols_overlap.s
    symbols_without_size.s
    table_abs_jbe.s
    table_base_kept.s
    table_base_spilled.s
    table_behind_mixing.s
    table_behind_moves.s
    table_behind_usage.s
    table_biased.s
    table_byte_256.s
    table_compare_memory.s
    table_first_excluded.s
    table_folded_low.s
    table_impossible_entries.s
    table_index_kept.s
    table_in_text.s
    table_later_entries.s
    table_mask.s
    table_masked.s
    table_nested.s
    table_next_own.s
    table_next_same.s
    table_next_table.s
    table_pic_ja.s
    table_signed_pair.s
    tail_call_chosen.s
    tail_call_indexed.s
    tail_call_own_entry.s
    tail_call_vtable.s
    tail_calls_conditional.s
    template.s
    trap_base_from_argument.s
    trap_base_in_pieces.s
    trap_base_overwritten.s
    trap_biased_relative.s
    trap_callee_pushes_target.s
    trap_callee_writes_base.s
    trap_callee_writes_frame.s
    trap_first_entry_foreign.s
    trap_flags_over_call.s
    trap_folded_low.s
    trap_folded_low_of_labels.s
    trap_foreign_entry.s
    trap_foreign_entry_covered.s
    trap_goto_beside_argument.s
    trap_goto_beside_table.s
    trap_goto_by_offsets.c
    trap_goto_through_a_switch.s
    trap_label_and_table.s
    trap_label_is_read.s
    trap_large_save.s
    trap_loop_index.s
    trap_negative_index.s
    trap_nested_beside.s
    trap_nested_in_open_end.s
    trap_one_path_guarded.s
    trap_orphan.s
    trap_orphan_with_a_jump.s
    trap_other_register.s
    trap_pop_return_address.s
    trap_push_ret.s
    trap_retpoline_caller.s
    trap_second_use.s
    trap_signed_compare.s
    trap_store_between.s
    trap_store_by_frame_pointer.s
    trap_switch_negative.c
    trap_switch_two.c
    trap_table_through_slot.s
    trap_table_undone.s
    trap_target_in_frame.s
    trap_two_tables_cmov.s
    trap_unguarded_stops_early.s
    trap_wide_index.s
    trap_writable_addresses.s
    trap_writable_table.s
    traps_in_the_middle.s
}
