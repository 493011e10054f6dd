//! The table of processes: what each of those ran that have records of their own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use tomo_export::{Paths, single_processes};

use super::gather::gather;
use super::text::{Kind, Table};
use crate::bar::Bar;

/// A row for each process in `folders`, below the run that it belongs to, and one for all together.
pub(super) fn rows(
    folders: &[PathBuf],
    programs: &[PathBuf],
    paths: &Paths,
    bar: &Bar,
) -> Result<Table> {
    let mut records: BTreeMap<(PathBuf, String), Vec<PathBuf>> = BTreeMap::new();
    for (process, record) in single_processes(folders) {
        let run = record.parent().unwrap_or(Path::new("")).to_path_buf();
        records.entry((run, process)).or_default().push(record);
    }
    if records.is_empty() {
        bail!("no process has a record of its own; observe with --fork separate");
    }
    let all = gather(folders, programs, paths, bar)?.totals();
    let mut table = Table::default();
    let mut last = None;
    for ((run, process), records) in &records {
        if last != Some(run) {
            table.push_title(&run.to_string_lossy());
        }
        let totals = gather(records, programs, paths, bar)?.totals();
        table.push(Kind::File, process, totals);
        last = Some(run);
    }
    table.push(Kind::All, "all", all);
    Ok(table)
}
