//! drcov, version 2, as DynamoRIO writes it and Lighthouse, Cartographer, bncov and others read it: a
//! table of modules as text, then a record of eight bytes for each block that ran.
//!
//! Sources: DynamoRIO's `drcov.h` (`bb_entry_t`: start, size, module) and its module table, version 2.
//! Only what ran is in it; the format cannot say that a block was inferred, or that nothing is known
//! of it. Blocks longer than 65,535 bytes are several. Offsets are from the module's first page, as
//! loaders place it.

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;

use tomo_profile::merge::Finding;
use tomo_wire::plan::Level;

use crate::{Module, Picture};

/// Modules that the table's numbers can name.
const MOST_MODULES: usize = u16::MAX as usize;

/// Writes the log.
///
/// # Errors
/// Where `out` cannot be written.
pub fn write(out: &mut dyn Write, picture: &Picture) -> io::Result<()> {
    let modules = &picture.modules[..picture.modules.len().min(MOST_MODULES)];
    writeln!(out, "DRCOV VERSION: 2\nDRCOV FLAVOR: drcov")?;
    writeln!(out, "Module Table: version 2, count {}", modules.len())?;
    writeln!(out, "Columns: id, base, end, entry, path")?;
    let mut blocks = Vec::new();
    for (id, module) in modules.iter().enumerate() {
        let mut path = module.path().as_os_str().as_bytes().to_vec();
        for byte in path.iter_mut().filter(|byte| b"\n\r".contains(byte)) {
            *byte = b'?';
        }
        let (base, end) = (module.base, module.end);
        write!(
            out,
            "{id:3}, {base:#018x}, {end:#018x}, 0x0000000000000000, "
        )?;
        out.write_all(&path)?;
        out.write_all(b"\n")?;
        blocks.extend(ran(module).map(|(start, size)| Block {
            start,
            size,
            module: id as u16,
        }));
    }
    writeln!(out, "BB Table: {} bbs", blocks.len())?;
    for block in blocks {
        out.write_all(&block.start.to_le_bytes())?;
        out.write_all(&block.size.to_le_bytes())?;
        out.write_all(&block.module.to_le_bytes())?;
    }
    Ok(())
}

struct Block {
    start: u32,
    size: u16,
    module: u16,
}

/// The blocks of a module that ran, by function, as offset and size.
fn ran(module: &Module) -> impl Iterator<Item = (u32, u16)> {
    let graphs = module.model().graphs().ok();
    let mut ran = Vec::new();
    for function in graphs.iter().flat_map(|graphs| graphs.functions()) {
        for block in function.blocks() {
            let finding = module.findings.blocks.get(block.id().index());
            if finding.and_then(|finding| Finding::ran(*finding)) != Some(true) {
                continue;
            }
            let Some(mut start) = block.address().0.checked_sub(module.base) else {
                continue;
            };
            let mut rest = block.size();
            while rest > 0 {
                let size = u16::try_from(rest).unwrap_or(u16::MAX);
                ran.extend(u32::try_from(start).ok().map(|start| (start, size)));
                rest -= u32::from(size);
                start += u64::from(size);
            }
        }
    }
    ran.into_iter()
}

/// Whether the picture holds blocks at all.
#[must_use]
pub fn has_blocks(picture: &Picture) -> bool {
    picture.level() > Level::Function
}
