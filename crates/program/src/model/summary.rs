//! What can be said of a whole program in numbers, so that a summary needs no walk.

use zerocopy::little_endian::{F64, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::format::{ModelError, Section};
use crate::elf::FileKind;
use crate::{Callee, EdgeKind, Facts, Function, Patchability, Reason, Resolution, Status};

/// Numbers of reasons, edge kinds and resolutions that the summary has room for.
const ROOM: usize = 32;

/// Declares the summary twice: as numbers, and as the bytes of the file.
macro_rules! summary {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// Counts and facts about a whole program.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Summary {
            $($(#[$doc])* pub $field: u64,)*
            /// Seconds that the analysis took.
            pub analysis_seconds: f64,
            edges_by_kind: [u64; ROOM],
            functions_by_reason: [u64; ROOM],
            jumps_by_resolution: [u64; ROOM],
        }

        #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
        #[repr(C)]
        struct SummaryRecord {
            $($field: U64,)*
            analysis_seconds: F64,
            edges_by_kind: [U64; ROOM],
            functions_by_reason: [U64; ROOM],
            jumps_by_resolution: [U64; ROOM],
        }

        impl From<&Summary> for SummaryRecord {
            fn from(summary: &Summary) -> Self {
                Self {
                    $($field: summary.$field.into(),)*
                    analysis_seconds: summary.analysis_seconds.into(),
                    edges_by_kind: summary.edges_by_kind.map(U64::new),
                    functions_by_reason: summary.functions_by_reason.map(U64::new),
                    jumps_by_resolution: summary.jumps_by_resolution.map(U64::new),
                }
            }
        }

        impl From<&SummaryRecord> for Summary {
            fn from(record: &SummaryRecord) -> Self {
                Self {
                    $($field: record.$field.get(),)*
                    analysis_seconds: record.analysis_seconds.get(),
                    edges_by_kind: record.edges_by_kind.map(U64::get),
                    functions_by_reason: record.functions_by_reason.map(U64::get),
                    jumps_by_resolution: record.jumps_by_resolution.map(U64::get),
                }
            }
        }
    };
}

summary! {
    /// [`FileKind`] as a number; see [`Summary::kind`].
    kind_code,
    /// Bytes of the program's file.
    file_size,
    /// Bytes of code: those in executable sections, without filler and without the linker's stubs.
    text_bytes,
    /// Those of them in blocks of exact functions.
    text_bytes_exact,
    /// Bytes beside them that are filler.
    padding_bytes,
    /// Functions.
    functions,
    /// Functions of which everything is known.
    exact,
    /// Functions of which something may be missing.
    partial,
    /// Functions of which only the entry is known.
    opaque,
    /// Functions with a name.
    named,
    /// Blocks.
    blocks,
    /// Instructions in all blocks.
    instructions,
    /// Edges.
    edges,
    /// Jumps through a register or memory.
    indirect_jumps,
    /// Those of them whose targets are known.
    indirect_jumps_resolved,
    /// Calls.
    call_sites,
    /// Those of them through a register or memory.
    calls_indirect,
    /// Those of them to imported functions.
    calls_imported,
    /// Conditional branches.
    branch_sites,
    /// Calls that can return and whose result is not known to be void (ABI §2.1).
    return_sites,
    /// Blocks that can carry a detour.
    blocks_detour,
    /// Blocks that can carry a trap probe only.
    blocks_trap,
    /// Blocks that can carry no probe.
    blocks_unpatchable,
    /// 1 if there was debug information, in the program's file or in one that it was moved to; else 0.
    described,
    /// Blocks with a known source position.
    blocks_with_lines,
    /// Source files.
    files,
    /// Imported symbols.
    imports,
    /// Memory that the analysing process had at most.
    analysis_peak_memory_bytes,
}

impl Summary {
    /// What sort of file the program is.
    #[must_use]
    pub fn kind(&self) -> FileKind {
        match self.kind_code {
            0 => FileKind::Executable,
            1 => FileKind::PositionIndependentExecutable,
            _ => FileKind::SharedObject,
        }
    }

    /// Why functions are not exact, with how many there are for each reason, most frequent first.
    #[must_use]
    pub fn reasons(&self) -> Vec<(Reason, u64)> {
        frequencies(&self.functions_by_reason, Reason::from_code)
    }

    /// How many edges there are of each kind, most frequent first.
    #[must_use]
    pub fn edge_kinds(&self) -> Vec<(EdgeKind, u64)> {
        frequencies(&self.edges_by_kind, EdgeKind::from_code)
    }

    /// How many indirect jumps have been resolved in each way, most frequent first.
    #[must_use]
    pub fn resolutions(&self) -> Vec<(Resolution, u64)> {
        frequencies(&self.jumps_by_resolution, Resolution::from_code)
    }

    /// What can be told before any function is counted.
    pub(super) fn of_facts(facts: &Facts) -> Self {
        Self {
            kind_code: match facts.kind {
                FileKind::Executable => 0,
                FileKind::PositionIndependentExecutable => 1,
                FileKind::SharedObject => 2,
            },
            file_size: facts.file_size,
            text_bytes: facts.text_bytes,
            text_bytes_exact: facts.text_bytes_exact,
            padding_bytes: facts.padding_bytes,
            described: facts.described.into(),
            files: facts.lines.files.len() as u64,
            imports: facts.imports.len() as u64,
            blocks_with_lines: facts.lines.at.iter().flatten().count() as u64,
            analysis_seconds: facts.seconds,
            analysis_peak_memory_bytes: facts.peak_memory_bytes,
            ..Self::default()
        }
    }

    /// Counts one more function.
    pub(super) fn count(&mut self, function: &Function) {
        self.functions += 1;
        match function.status {
            Status::Exact => self.exact += 1,
            Status::Partial(_) => self.partial += 1,
            Status::Opaque(_) => self.opaque += 1,
        }
        if let Some(reason) = function.status.reason() {
            self.functions_by_reason[reason as usize % ROOM] += 1;
        }
        self.named += u64::from(function.name.is_some());
        self.blocks += function.blocks.len() as u64;
        self.instructions += function
            .blocks
            .iter()
            .map(|b| u64::from(b.instructions))
            .sum::<u64>();
        self.edges += function.edges.len() as u64;
        for edge in &function.edges {
            self.edges_by_kind[edge.kind as usize % ROOM] += 1;
        }
        self.branch_sites += u64::from(function.branches);
        self.count_sites(function);
    }

    fn count_sites(&mut self, function: &Function) {
        for jump in &function.indirect_jumps {
            self.indirect_jumps += 1;
            self.indirect_jumps_resolved += u64::from(jump.resolution != Resolution::Unresolved);
            self.jumps_by_resolution[jump.resolution as usize % ROOM] += 1;
        }
        for call in &function.calls {
            self.call_sites += 1;
            self.calls_indirect += u64::from(call.callee == Callee::Indirect);
            self.calls_imported += u64::from(matches!(call.callee, Callee::Import(_)));
            self.return_sites += u64::from(call.returns && !call.void);
        }
    }

    /// Counts what one more block can carry.
    pub(super) fn count_patchability(&mut self, patchability: Patchability) {
        match patchability {
            Patchability::Detour => self.blocks_detour += 1,
            Patchability::Trap => self.blocks_trap += 1,
            Patchability::None => self.blocks_unpatchable += 1,
        }
    }

    pub(super) fn to_section(&self) -> Vec<u8> {
        SummaryRecord::from(self).as_bytes().to_vec()
    }

    pub(super) fn from_section(bytes: &[u8]) -> Result<Self, ModelError> {
        let what = "it has another size";
        SummaryRecord::ref_from_bytes(bytes)
            .map(Self::from)
            .map_err(|_| ModelError::Malformed {
                section: Section::Summary.name(),
                what,
            })
    }
}

/// What `counts` counts, most frequent first, in the order of the codes where equal.
fn frequencies<T>(counts: &[u64; ROOM], decode: impl Fn(u8) -> Option<T>) -> Vec<(T, u64)> {
    let mut found: Vec<_> = (0_u8..)
        .zip(counts)
        .filter(|(_, count)| **count > 0)
        .filter_map(|(code, count)| Some((decode(code)?, *count)))
        .collect();
    found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    found
}
