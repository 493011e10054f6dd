//! Which paths are counted: those of a file, the hottest of an earlier run, or those that no earlier run has seen.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use tomo_export::{Followed, FunctionPaths, PathBreak, PathEnd, RanPath};
use tomo_launch::{ChosenPaths, Observed};
use tomo_program::{Address, Graphs};
use tomo_weave::{NamedPath, PathEnds, PathsOf};
use tomo_wire::of_schema;

/// What `--select` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Select {
    /// The paths in a document of `tomo paths --format json`.
    File(PathBuf),
    /// So many of the hottest of an earlier run.
    Hot(usize),
    /// What no earlier run has seen.
    Unseen,
}

impl FromStr for Select {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("hot:") {
            _ if text == "unseen" => Ok(Self::Unseen),
            None => Ok(Self::File(text.into())),
            Some(number) => match number.parse() {
                Ok(number) if number > 0 => Ok(Self::Hot(number)),
                _ => Err(format!("{number:?} is no number of paths")),
            },
        }
    }
}

/// The runs that were there before, as they are asked for.
pub(crate) struct Earlier<'e> {
    pub(crate) module: &'e Observed,
    /// Those that the user named.
    pub(crate) named: &'e [PathBuf],
    /// Those of the same build in the folder of runs, the newest first.
    pub(crate) found: Vec<PathBuf>,
    pub(crate) output: &'e Path,
}

impl Earlier<'_> {
    /// What the named runs say, or if there are none, the first `most` of those that were found.
    fn read(&self, most: usize, read: &dyn Fn(&Path) -> Result<Followed>) -> Result<Vec<Followed>> {
        let runs = match self.named {
            [] => self.found.get(..most).unwrap_or(&self.found),
            named => named,
        };
        let read = |run: &PathBuf| {
            let file = run.join(format!("{}.paths", self.module.stem));
            let path = self.module.path.display();
            ensure!(
                file.is_file(),
                "{} is no run of `tomo paths` of {path}, or of another build of it",
                run.display()
            );
            read(run).with_context(|| run.display().to_string())
        };
        runs.iter().map(read).collect()
    }
}

/// The paths that `select` says, of functions with these entries, or of all.
pub(crate) fn chosen(
    select: &Select,
    entries: Option<&BTreeSet<u64>>,
    graphs: &Graphs<'_>,
    earlier: &Earlier<'_>,
    read: &dyn Fn(&Path) -> Result<Followed>,
) -> Result<ChosenPaths> {
    let is_wanted = |entry: u64| entries.is_none_or(|entries| entries.contains(&entry));
    match select {
        Select::File(path) => {
            let text = fs::read(path).with_context(|| path.display().to_string())?;
            let mut paths = of_document(&text, graphs, earlier.module)
                .with_context(|| format!("{} selects no paths", path.display()))?;
            paths.retain(|entry, _| is_wanted(*entry));
            ensure!(!paths.is_empty(), "{} selects no paths", path.display());
            Ok(ChosenPaths::Some(paths))
        }
        Select::Hot(most) => {
            let runs = earlier.read(1, read)?;
            ensure!(
                !runs.is_empty(),
                "no earlier run of this build is in {}: run it once without --select, or name a run with --of",
                earlier.output.display()
            );
            let paths = hottest(&runs, *most, graphs, &is_wanted);
            ensure!(!paths.is_empty(), "no path ran in the earlier run");
            Ok(ChosenPaths::Some(paths))
        }
        Select::Unseen => {
            let runs = earlier.read(usize::MAX, read)?;
            if runs.is_empty() {
                let output = earlier.output.display();
                say!("tomo: no earlier run of this build is in {output}: all paths are unseen");
            }
            let seen = seen(&runs, graphs);
            Ok(match entries {
                None => ChosenPaths::AllBut(seen),
                Some(entries) => ChosenPaths::Some(only(entries, seen)),
            })
        }
    }
}

/// The same of these functions alone; of one that was not followed before all are meant.
fn only(entries: &BTreeSet<u64>, mut seen: BTreeMap<u64, PathsOf>) -> BTreeMap<u64, PathsOf> {
    let nothing = || PathsOf {
        others: true,
        ..PathsOf::default()
    };
    let each = entries.iter().map(|entry| {
        let paths = seen.remove(entry);
        (*entry, paths.unwrap_or_else(nothing))
    });
    each.collect()
}

/// What the hottest paths of these runs are, by how many instructions were executed along them.
fn hottest(
    runs: &[Followed],
    most: usize,
    graphs: &Graphs<'_>,
    is_wanted: &dyn Fn(u64) -> bool,
) -> BTreeMap<u64, PathsOf> {
    let mut hot: Vec<(u128, &FunctionPaths, &RanPath)> = Vec::new();
    for run in runs {
        let functions = run.counts.functions.iter();
        let paths = functions.flat_map(|one| one.ran.iter().map(move |path| (one, path)));
        hot.extend(paths.map(|(one, path)| (path.executed(graphs), one, path)));
    }
    hot.retain(|(_, one, _)| entry(graphs, one).is_some_and(is_wanted));
    hot.sort_by_key(|(executed, ..)| std::cmp::Reverse(*executed));
    let mut chosen: BTreeMap<u64, PathsOf> = BTreeMap::new();
    let mut count = 0;
    for (_, function, path) in hot {
        let Some((entry, path)) = entry(graphs, function).zip(name(graphs, path)) else {
            continue;
        };
        if count == most {
            break;
        }
        let paths = chosen.entry(entry).or_insert_with(|| PathsOf {
            ends: ends(graphs, function),
            ..PathsOf::default()
        });
        // Of several runs each path counts once.
        count += usize::from(paths.paths.insert(path));
    }
    chosen
}

/// The paths that any of these runs saw, the newest of which come first.
fn seen(runs: &[Followed], graphs: &Graphs<'_>) -> BTreeMap<u64, PathsOf> {
    let mut seen: BTreeMap<u64, PathsOf> = BTreeMap::new();
    for function in runs.iter().flat_map(|run| &run.counts.functions) {
        let Some(entry) = entry(graphs, function) else {
            continue;
        };
        let paths = seen.entry(entry).or_insert_with(|| PathsOf {
            others: true,
            ends: ends(graphs, function),
            ..PathsOf::default()
        });
        let ran = function.ran.iter();
        paths
            .paths
            .extend(ran.filter_map(|path| name(graphs, path)));
    }
    seen
}

fn entry(graphs: &Graphs<'_>, function: &FunctionPaths) -> Option<u64> {
    Some(graphs.function(function.function)?.entry().0)
}

fn name(graphs: &Graphs<'_>, path: &RanPath) -> Option<NamedPath> {
    let start = |block| Some(graphs.block(block)?.address().0);
    let blocks = path.blocks.iter().map(|block| start(*block));
    let end = match path.end {
        PathEnd::Exit => None,
        PathEnd::Edge(block) => Some(start(block)?),
    };
    Some(NamedPath {
        blocks: blocks.collect::<Option<_>>()?,
        end,
    })
}

fn ends(graphs: &Graphs<'_>, function: &FunctionPaths) -> Option<PathEnds> {
    let start = |block| Some(graphs.block(block)?.address().0);
    let last = function
        .breaks
        .iter()
        .filter(|(_, kind)| *kind == PathBreak::Edge);
    let broken = last.map(|(edge, _)| Some((start(edge.from)?, edge.address.0)));
    let unfollowed = function.unfollowed.iter().map(|block| start(*block));
    Some(PathEnds {
        broken: broken.collect::<Option<_>>()?,
        unfollowed: unfollowed.collect::<Option<_>>()?,
    })
}

/// What is read of a document of paths (schema tomo.paths/1).
#[derive(Deserialize)]
struct Document {
    schema: String,
    module: Option<String>,
    functions: Vec<Function>,
}

#[derive(Deserialize)]
struct Function {
    address: String,
    paths: Vec<Along>,
    breaks: Option<Vec<Break>>,
    unfollowed: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Along {
    blocks: Vec<String>,
    end: Option<String>,
}

#[derive(Deserialize)]
struct Break {
    from: String,
    to: String,
    path: String,
}

/// The paths that a document lists.
fn of_document(
    text: &[u8],
    graphs: &Graphs<'_>,
    module: &Observed,
) -> Result<BTreeMap<u64, PathsOf>> {
    let document: Document = serde_json::from_slice(text)?;
    let schema = document.schema;
    of_schema(&schema, "tomo.paths/1").with_context(|| format!("its schema is {schema:?}"))?;
    if let Some(other) = document.module.filter(|other| *other != module.stem) {
        let (path, stem) = (module.path.display(), &module.stem);
        bail!("it is of the build {other}; {path} is {stem}");
    }
    let mut all = BTreeMap::new();
    for function in document
        .functions
        .iter()
        .filter(|one| !one.paths.is_empty())
    {
        let entry = address(&function.address)?;
        ensure!(
            graphs.function_starting_at(Address(entry)).is_some(),
            "no function starts at {entry:#x}"
        );
        match all.entry(entry) {
            Entry::Vacant(place) => place.insert(paths_of(function)?),
            Entry::Occupied(_) => bail!("the function at {entry:#x} is there twice"),
        };
    }
    Ok(all)
}

fn paths_of(function: &Function) -> Result<PathsOf> {
    let along = |path: &Along| {
        Ok(NamedPath {
            blocks: addresses(&path.blocks)?,
            end: path.end.as_deref().map(address).transpose()?,
        })
    };
    let ends = match (&function.breaks, &function.unfollowed) {
        (None, None) => None,
        (breaks, unfollowed) => {
            let last = breaks.iter().flatten().filter(|one| one.path == "edge");
            let broken = last.map(|one| Ok((address(&one.from)?, address(&one.to)?)));
            let unfollowed = addresses(unfollowed.as_deref().unwrap_or_default())?;
            Some(PathEnds {
                broken: broken.collect::<Result<_>>()?,
                unfollowed: unfollowed.into_iter().collect(),
            })
        }
    };
    Ok(PathsOf {
        others: false,
        paths: function.paths.iter().map(along).collect::<Result<_>>()?,
        ends,
    })
}

fn addresses(texts: &[String]) -> Result<Vec<u64>> {
    texts.iter().map(|text| address(text)).collect()
}

fn address(text: &str) -> Result<u64> {
    let digits = text.strip_prefix("0x");
    let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.with_context(|| format!("{text:?} is no address: one is written 0x1234"))
}

#[cfg(test)]
mod tests {
    use super::Select;

    #[test]
    fn selections_are_read_and_bad_numbers_refused() {
        let read = |text: &str| text.parse::<Select>();
        assert_eq!(read("unseen"), Ok(Select::Unseen));
        assert_eq!(read("hot:12"), Ok(Select::Hot(12)));
        assert_eq!(read("a/file"), Ok(Select::File("a/file".into())));
        for text in [
            "hot:",
            "hot:0",
            "hot:-1",
            "hot:many",
            "hot:99999999999999999999",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
