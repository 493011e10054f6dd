//! Why a file cannot be analysed: one clear line each, with the ELF specification's own names
//! and the offset of what is wrong.

use thiserror::Error;

/// Why a file is no program that can be analysed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ElfError {
    /// The file has no byte.
    #[error("the file is empty")]
    Empty,
    /// The file does not start with ELFMAG.
    #[error("not an ELF file: {found}")]
    NotElf {
        /// What it starts with instead.
        found: String,
    },
    /// The file ends before something that it says it has.
    #[error(
        "truncated: {what} at offset {offset:#x} needs {needed:#x} bytes, the file ends at {end:#x}"
    )]
    Truncated {
        /// What lies (in part) behind the end of the file.
        what: String,
        /// Where it starts.
        offset: u64,
        /// How many bytes it has.
        needed: u64,
        /// How many bytes the file has.
        end: u64,
    },
    /// EI_CLASS is not ELFCLASS64.
    #[error(
        "a 32-bit ELF file (EI_CLASS at offset 0x4 is ELFCLASS32); only 64-bit programs are supported"
    )]
    Class32,
    /// EI_DATA is not ELFDATA2LSB.
    #[error(
        "a big-endian ELF file (EI_DATA at offset 0x5 is ELFDATA2MSB); only x86-64 programs are supported"
    )]
    BigEndian,
    /// e_machine is not EM_X86_64.
    #[error(
        "a program for {name} (e_machine at offset 0x12 is {e_machine}); only x86-64 is supported"
    )]
    Machine {
        /// The architecture's name.
        name: &'static str,
        /// What the header says.
        e_machine: u16,
    },
    /// e_type is neither ET_EXEC nor ET_DYN.
    #[error("{what} (e_type at offset 0x10 is {e_type}), not an executable or a shared object")]
    Type {
        /// What kind of file it is.
        what: &'static str,
        /// What the header says.
        e_type: u16,
    },
    /// A header field has a value that the specification does not allow.
    #[error(
        "invalid ELF header: {field} at offset {offset:#x} is {value:#x}, expected {expected:#x}"
    )]
    Field {
        /// The field's name in the specification.
        field: &'static str,
        /// Where it is.
        offset: u64,
        /// What the file says.
        value: u64,
        /// What it should say.
        expected: u64,
    },
    /// Nothing in the file can be executed.
    #[error("no executable code: {why}")]
    NoCode {
        /// What is missing.
        why: &'static str,
    },
}
