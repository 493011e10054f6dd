//! What the threads of a run noted, read from their slabs.

use std::collections::HashSet;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use tomo_profile::chains::{Chains, Meaning};
use tomo_program::{Address, Graphs, open_regular};
use tomo_wire::Refusal;
use tomo_wire::chains::{FIRST, Functions, Node, Row, nodes, used};
use tomo_wire::counting::{Contents, LOST, MOST_SLABS, Slabs, USED};

use super::Called;
use crate::Located;

/// Why there are no chains.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is not what it should be.
    #[error("{0}: {1}")]
    Refused(&'static str, Refusal),
    /// No run makes so many calls.
    #[error("calls add up to more than 64 bits hold")]
    TooMany,
}

/// What the threads of a run noted.
#[derive(Debug)]
pub struct Tree {
    /// Their chains.
    pub chains: Chains,
    /// Threads that were not observed.
    pub lost_threads: u64,
}

impl Tree {
    /// Of a run of the module with this model: `functions` is the file of those that are observed, `slabs` that of what the
    /// threads noted, which has holes where nothing is.
    ///
    /// # Errors
    /// Where one of them is damaged or cannot be read.
    pub fn read(graphs: &Graphs<'_>, functions: &[u8], slabs: &Path) -> Result<Self, ReadError> {
        let (header, rows) = of_file(functions)?;
        let observed: HashSet<u64> = rows.iter().map(|row| row.entry.get()).collect();
        let meaning = Meaning {
            origin: header.origin.get(),
            rows,
            function_at: &|address| {
                let function = graphs.function_at(Address(address))?;
                Some(function.entry().0)
            },
            is_observed: &|entry| observed.contains(&entry),
            is_certain: &|_, _| true,
        };
        let mut chains = Chains::default();
        let lost_threads = trees(slabs, |nodes| chains.add(nodes, &meaning))?;
        chains.calls().ok_or(ReadError::TooMany)?;
        Ok(Self {
            chains,
            lost_threads,
        })
    }
}

impl Called {
    /// What runs of this module noted, of which these functions were observed.
    ///
    /// # Errors
    /// Where the functions are damaged, or calls are more than 64 bits hold.
    pub fn of(
        located: Located,
        functions: &[u8],
        runs: impl IntoIterator<Item = Tree>,
    ) -> Result<Self, ReadError> {
        let rows = of_file(functions)?.1.iter();
        let mut called = Self {
            located,
            chains: Chains::default(),
            observed: rows
                .map(|row| (row.entry.get(), row.leaf.get() != 0))
                .collect(),
            lost_threads: 0,
        };
        for run in runs {
            called.chains.merge(&run.chains);
            called.lost_threads = called.lost_threads.saturating_add(run.lost_threads);
        }
        called.chains.calls().ok_or(ReadError::TooMany)?;
        Ok(called)
    }
}

fn of_file(functions: &[u8]) -> Result<(Functions, &[Row]), ReadError> {
    Functions::read(functions).map_err(|error| ReadError::Refused("functions", error))
}

/// Gives the nodes of each slab in a file of slabs to `take`; gives how many threads had none. The file has holes where
/// nothing is.
///
/// # Errors
/// Where it is damaged or cannot be read.
pub fn trees(slabs: &Path, mut take: impl FnMut(&[Node])) -> Result<u64, ReadError> {
    let refused = |error| ReadError::Refused("slabs", error);
    let file = open_regular(slabs)?;
    let mut head = vec![0; usize::try_from(Slabs::head()).unwrap_or(0)];
    file.read_exact_at(&mut head, 0)?;
    let header = Slabs::read(&head, file.metadata()?.len()).map_err(refused)?;
    if header.contents() != Some(Contents::Chains) {
        return Err(refused(Refusal::Foreign));
    }
    let number = |at: u64| {
        let bytes = head.get(at as usize..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    };
    for slab in 0..number(USED).min(MOST_SLABS.into()) as u32 {
        let start = header.start(slab);
        let mut bytes = vec![0; FIRST as usize];
        // One that was promised and never had room in the file has nothing.
        if file.read_exact_at(&mut bytes, start).is_err() {
            continue;
        }
        let used = used(&bytes).map_err(refused)?;
        bytes.resize((used as usize).min(header.size.get() as usize), 0);
        file.read_exact_at(&mut bytes, start)?;
        take(nodes(&bytes).map_err(refused)?);
    }
    Ok(number(LOST))
}
