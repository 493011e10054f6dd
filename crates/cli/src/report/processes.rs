//! The table of processes: what each of those ran that have records of their own.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use tomo_export::{Group, Totals, collect, single_processes};
use tomo_profile::records;

use super::gather::Gatherer;
use super::text::{Kind, Table};

/// A row for each process in `folders`, below the run that it belongs to, and one for all together. What had to
/// be left out is said of all together.
pub(super) fn rows(folders: &[PathBuf], gatherer: &mut Gatherer<'_>) -> Result<Table> {
    let mut records: BTreeMap<(PathBuf, String), Vec<PathBuf>> = BTreeMap::new();
    for (process, record) in single_processes(folders) {
        let run = record.parent().unwrap_or(Path::new("")).to_path_buf();
        records.entry((run, process)).or_default().push(record);
    }
    if records.is_empty() {
        bail!("no process has a record of its own; observe with --fork separate");
    }
    let all = gatherer.gather(folders)?.totals();
    let mut table = Table::default();
    let mut last = None;
    // Of many processes most did the same as others.
    let mut known: HashMap<Vec<Content>, Option<Totals>> = HashMap::new();
    for ((run, process), records) in &records {
        if last != Some(run) {
            table.push_title(&run.to_string_lossy());
        }
        last = Some(run);
        let collected = collect(records, &());
        let content: Vec<Content> = collected.groups.iter().map(content).collect();
        let totals = match known.get(&content) {
            Some(totals) => *totals,
            None => {
                let picture = gatherer.picture(&collected)?;
                let totals = picture.map(|picture| picture.totals());
                known.insert(content, totals);
                totals
            }
        };
        if let Some(totals) = totals {
            table.push(Kind::File, process, totals);
        }
    }
    table.push(Kind::All, "all", all);
    Ok(table)
}

/// All of a group that totals depend on: its kind, whether it carried a part, and what it saw, if anybody looked.
type Content = (records::Kind, bool, Option<Vec<usize>>);

fn content(group: &Group) -> Content {
    let seen = (group.marks.live.armed > 0).then(|| group.marks.hits.ones().collect());
    (group.kind, group.by_parts, seen)
}
