//! Which calls were inlined, as LLVM's reader of debug information prints it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Where the body of an inlined call is entered, and the last name of the file and the line of the call.
pub type Call = (u64, String, u32);

/// The inlined calls of a program: of each body what `llvm-dwarfdump` says of where it is entered (DWARF 5 §2.18:
/// at its entry, else at its start, else where the first of its ranges starts).
///
/// # Errors
/// If the program cannot be read.
pub fn calls(program: &Path) -> Result<Vec<Call>> {
    let mut command = Command::new("llvm-dwarfdump-19");
    let output = command.arg("--debug-info").arg(program).output();
    let output = output.context("llvm-dwarfdump-19 (Debian package llvm-19)")?;
    ensure!(output.status.success(), "{command:?} failed");
    let text = String::from_utf8_lossy(&output.stdout);
    let entries = text.split("DW_TAG_").skip(1);
    let bodies = entries.filter(|entry| entry.starts_with("inlined_subroutine"));
    Ok(bodies.filter_map(call).collect())
}

fn call(entry: &str) -> Option<Call> {
    let after = |name: &str| entry.split_once(&format!("DW_AT_{name}\t(")).map(|it| it.1);
    let address = |text: &str| {
        let digits = text.trim_start().strip_prefix("0x")?;
        let end = digits.find(|letter: char| !letter.is_ascii_hexdigit());
        u64::from_str_radix(&digits[..end?], 16).ok()
    };
    let first_range = || address(after("ranges")?.split_once('[')?.1);
    let entered = after("entry_pc")
        .or_else(|| after("low_pc"))
        .and_then(address);
    let (path, _) = after("call_file")?.strip_prefix('"')?.split_once('"')?;
    let (line, _) = after("call_line")?.split_once(')')?;
    let name = path.rsplit('/').next()?.to_owned();
    Some((entered.or_else(first_range)?, name, line.parse().ok()?))
}
