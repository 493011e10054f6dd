//! What the analysis knows of a program besides its functions: everything that goes into the
//! model file's summary and is not counted from the functions themselves.

use crate::dwarf::Lines;
use crate::elf::FileKind;

/// Facts about a whole program.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Its build id, as the linker wrote it.
    pub build_id: Option<Vec<u8>>,
    /// What sort of file it is.
    pub kind: FileKind,
    /// Bytes of the file.
    pub file_size: u64,
    /// Hash of its ELF header, program headers and section headers (see [`crate::Identity`]).
    pub fingerprint: u64,
    /// Hash (xxh3, 128 bits) of the whole file.
    pub content: u128,
    /// Bytes of code: those in executable sections, without filler and without the linker's stubs.
    pub text_bytes: u64,
    /// Those of them that lie in blocks of exact functions.
    pub text_bytes_exact: u64,
    /// Bytes beside them that are filler between functions.
    pub padding_bytes: u64,
    /// Names of imported symbols; [`crate::Callee::Import`] is an index into them.
    pub imports: Vec<String>,
    /// What could not be read or was strange, one sentence each.
    pub warnings: Vec<String>,
    /// Whether there was debug information, in the program's file or in one that it was moved to.
    pub described: bool,
    /// Source positions of all blocks.
    pub lines: Lines,
    /// How long the first instruction of each block is, in the order of the blocks' addresses;
    /// empty where nobody looked (see [`crate::first_instruction_sizes`]).
    pub first_instructions: Vec<u8>,
    /// How long the analysis took.
    pub seconds: f64,
    /// How much memory the process had at most when the analysis was done.
    pub peak_memory_bytes: u64,
}

impl Default for Facts {
    fn default() -> Self {
        Self {
            build_id: None,
            kind: FileKind::Executable,
            file_size: 0,
            fingerprint: 0,
            content: 0,
            text_bytes: 0,
            text_bytes_exact: 0,
            padding_bytes: 0,
            imports: Vec::new(),
            warnings: Vec::new(),
            described: false,
            lines: Lines::default(),
            first_instructions: Vec::new(),
            seconds: 0.0,
            peak_memory_bytes: 0,
        }
    }
}
