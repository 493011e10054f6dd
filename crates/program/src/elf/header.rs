//! The ELF header and the program headers: what must be right before anything else can be read.
//!
//! System V ABI, chapters 4 and 5; the AMD64 supplement for EM_X86_64. A field that this module
//! refuses is one without which the loader could not run the file either.

use object::elf;
use object::endian::LittleEndian as LE;
use object::read::ReadRef;
use object::read::elf::FileHeader as _;

use super::ElfError;

/// The only header that we read on: 64 bit, little endian.
pub(crate) type Header = elf::FileHeader64<LE>;

/// The header of an x86-64 executable or shared object.
pub(crate) fn read(data: &[u8]) -> Result<&Header, ElfError> {
    identify(data)?;
    let header = data
        .read_at::<Header>(0)
        .map_err(|()| truncated_header(data))?;
    let machine = header.e_machine.get(LE);
    if machine != elf::EM_X86_64 {
        return Err(ElfError::Machine {
            name: machine_name(machine),
            e_machine: machine.0,
        });
    }
    check_type(header.e_type.get(LE))?;
    Ok(header)
}

/// What e_ident says, before the rest of the header can be interpreted.
fn identify(data: &[u8]) -> Result<(), ElfError> {
    if data.is_empty() {
        return Err(ElfError::Empty);
    }
    let magic = &data[..data.len().min(4)];
    if !elf::ELFMAG.starts_with(magic) {
        return Err(ElfError::NotElf {
            found: describe(data),
        });
    }
    match data.get(4).map(|&class| elf::FileClass(class)) {
        Some(elf::ELFCLASS64) => {}
        Some(elf::ELFCLASS32) => return Err(ElfError::Class32),
        Some(other) => return Err(field("EI_CLASS", 4, other.0.into(), 2)),
        None => return Err(truncated_header(data)),
    }
    match data.get(5).map(|&encoding| elf::DataEncoding(encoding)) {
        Some(elf::ELFDATA2LSB) => Ok(()),
        Some(elf::ELFDATA2MSB) => Err(ElfError::BigEndian),
        Some(other) => Err(field("EI_DATA", 5, other.0.into(), 1)),
        None => Err(truncated_header(data)),
    }
}

fn truncated_header(data: &[u8]) -> ElfError {
    ElfError::Truncated {
        what: "the ELF header".to_owned(),
        offset: 0,
        needed: size_of::<Header>() as u64,
        end: data.len() as u64,
    }
}

fn field(field: &'static str, offset: u64, value: u64, expected: u64) -> ElfError {
    ElfError::Field {
        field,
        offset,
        value,
        expected,
    }
}

/// What a file that is not ELF looks like, for people who passed the wrong one.
fn describe(data: &[u8]) -> String {
    if data.starts_with(b"#!") {
        return "it is a script (it starts with \"#!\"); name its interpreter's binary".to_owned();
    }
    if data.starts_with(b"!<arch>") {
        return "it is a static library (an ar archive)".to_owned();
    }
    let start: Vec<String> = data
        .iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!(
        "it starts with {}, not with 7f 45 4c 46 (ELFMAG)",
        start.join(" ")
    )
}

fn check_type(e_type: elf::FileType) -> Result<(), ElfError> {
    let what = match e_type {
        elf::ET_EXEC | elf::ET_DYN => return Ok(()),
        elf::ET_REL => "a relocatable object (ET_REL)",
        elf::ET_CORE => "a core dump (ET_CORE)",
        elf::ET_NONE => "a file without a type (ET_NONE)",
        _ => "a file of an unknown type",
    };
    Err(ElfError::Type {
        what,
        e_type: e_type.0,
    })
}

/// Names of the architectures that somebody may really have at hand.
fn machine_name(machine: elf::Machine) -> &'static str {
    match machine {
        elf::EM_386 => "32-bit x86 (EM_386)",
        elf::EM_AARCH64 => "64-bit ARM (EM_AARCH64)",
        elf::EM_ARM => "32-bit ARM (EM_ARM)",
        elf::EM_RISCV => "RISC-V (EM_RISCV)",
        elf::EM_PPC => "PowerPC (EM_PPC)",
        elf::EM_PPC64 => "64-bit PowerPC (EM_PPC64)",
        elf::EM_S390 => "IBM S/390 (EM_S390)",
        elf::EM_MIPS => "MIPS (EM_MIPS)",
        elf::EM_LOONGARCH => "LoongArch (EM_LOONGARCH)",
        elf::EM_SPARC => "SPARC (EM_SPARC)",
        elf::EM_SPARCV9 => "64-bit SPARC (EM_SPARCV9)",
        elf::EM_IA_64 => "Itanium (EM_IA_64)",
        elf::EM_68K => "Motorola 68000 (EM_68K)",
        elf::EM_BPF => "the kernel's BPF machine (EM_BPF)",
        elf::EM_NONE => "no machine (EM_NONE)",
        _ => "an unknown machine",
    }
}

/// The program headers. A file that has none cannot be executed.
pub(crate) fn program_headers<'data>(
    header: &Header,
    data: &'data [u8],
) -> Result<&'data [elf::ProgramHeader64<LE>], ElfError> {
    let offset = header.e_phoff.get(LE);
    let count = header
        .phnum(LE, data)
        .unwrap_or_else(|_| header.e_phnum.get(LE).into());
    if offset == 0 || count == 0 {
        return Err(ElfError::NoCode {
            why: "the file has no program headers (e_phoff, e_phnum)",
        });
    }
    let size = size_of::<elf::ProgramHeader64<LE>>() as u64;
    let entry_size = u64::from(header.e_phentsize.get(LE));
    if entry_size != size {
        return Err(field("e_phentsize", 0x36, entry_size, size));
    }
    data.read_slice_at(offset, count as usize)
        .map_err(|()| ElfError::Truncated {
            what: format!("the program header table ({count} entries)"),
            offset,
            needed: u64::from(count).saturating_mul(size),
            end: data.len() as u64,
        })
}
