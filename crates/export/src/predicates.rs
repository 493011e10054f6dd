//! Predicates put beside the source: which sites a module has, where they are, and which of their predicates
//! were true.

mod ids;
mod source;

use tomo_program::dwarf::Position;
use tomo_program::{
    ANALYSIS_VERSION, Address, BlockView, CallView, EdgeKind, FunctionView, Graphs, ModelError,
};
use tomo_wire::Refusal;
use tomo_wire::predicates::{Kind, Predicates, Recorded, Row, Told, Width, values};

use crate::Located;
use crate::lines::Lines;
pub use ids::{BadId, Id, case_name};
pub use source::{Line, Sources};

/// Why a file of predicates says nothing about a module.
#[derive(Debug, thiserror::Error)]
pub enum PredicateError {
    /// It is damaged.
    #[error("the predicates: {0}")]
    Refused(#[from] Refusal),
    /// It was made by another analysis.
    #[error(
        "the predicates were chosen by another version of tomo (analysis {0}, this is {ANALYSIS_VERSION}): observe them anew"
    )]
    Analysis(u32),
    /// The model is damaged.
    #[error("the model {0}")]
    Model(#[from] ModelError),
}

/// A site, and what is known of its predicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// What is looked at.
    pub kind: Kind,
    /// The branch, or what is behind the call; as the module states it.
    pub address: Address,
    /// The block that ends in it.
    pub block: Address,
    /// The function's name.
    pub function: String,
    /// Where in the source the branch, or the call, is.
    pub line: Option<Line>,
    /// Where its ways lead to, of a branch: taken, not taken.
    pub ways: [Address; 2],
    /// The lines there.
    pub leads: [Option<Line>; 2],
    /// Whom it calls, if that is known.
    pub callee: Option<String>,
    /// Bits of the result that are looked at, and how that is known.
    pub bits: u8,
    /// How that is known.
    pub width: Width,
    /// Which row is its first.
    pub first: usize,
    /// How each of its predicates is observed.
    pub told: Vec<Told>,
}

/// The sites of a module.
#[derive(Debug)]
pub struct Sites {
    /// The rows that they stand for.
    pub rows: Vec<Row>,
    /// What is recorded of them.
    pub recorded: Recorded,
    /// The file's header.
    pub header: Predicates,
    /// By row.
    pub sites: Vec<Site>,
}

impl Sites {
    /// The sites that the file `predicates` names, of the module that it is about.
    ///
    /// # Errors
    /// Where the file is damaged, or of another version.
    pub fn read(located: &Located, predicates: &[u8]) -> Result<Self, PredicateError> {
        let mut all = Self::unplaced(predicates)?;
        let firsts = all.rows.iter().enumerate();
        let firsts = firsts.filter(|(_, row)| row.case == 0).map(|one| one.0);
        all.sites = all.place(located, &firsts.collect::<Vec<_>>())?;
        Ok(all)
    }

    /// The rows alone, without the sites.
    ///
    /// # Errors
    /// Where the file is damaged, or of another version.
    pub fn unplaced(predicates: &[u8]) -> Result<Self, PredicateError> {
        let (header, rows) = Predicates::read(predicates)?;
        if header.analysis.get() != ANALYSIS_VERSION {
            return Err(PredicateError::Analysis(header.analysis.get()));
        }
        Ok(Self {
            sites: Vec::new(),
            rows: rows.to_vec(),
            recorded: header.recorded(),
            header,
        })
    }

    /// The sites of the module with these first rows.
    ///
    /// # Errors
    /// Where the model is damaged.
    pub fn place(&self, located: &Located, firsts: &[usize]) -> Result<Vec<Site>, PredicateError> {
        let graphs = located.model.graphs()?;
        let finder = Finder {
            graphs: &graphs,
            lines: located.lines(),
        };
        let sites = firsts
            .iter()
            .filter_map(|first| finder.site(&self.rows, *first));
        Ok(sites.collect())
    }

    /// What is known of each row, given each mark's or counter's value.
    #[must_use]
    pub fn values(&self, probe: impl Fn(u32) -> u64) -> Vec<Option<u64>> {
        let mut found = vec![None; self.rows.len()];
        values(&self.rows, self.recorded, probe, &mut found);
        found
    }
}

/// Finds sites in a model and their lines.
struct Finder<'f> {
    graphs: &'f Graphs<'f>,
    lines: &'f Lines,
}

impl Finder<'_> {
    fn site(&self, rows: &[Row], first: usize) -> Option<Site> {
        let row = rows.get(first)?;
        let kind = row.kind()?;
        let block = self.graphs.block_at(Address(row.block.get()))?;
        let function = block.function()?;
        let cases = rows.get(first..first + usize::from(kind.cases()))?;
        let taken = self.way(block, |kind| kind != EdgeKind::NotTaken);
        let not_taken = self.way(block, |kind| kind == EdgeKind::NotTaken);
        let lead = |way: Address| {
            let to = self.graphs.block_at(way).filter(|_| kind == Kind::Branch)?;
            self.lines.first(to).map(|first| self.line(first))
        };
        Some(Site {
            kind,
            address: Address(row.site.get()),
            block: block.address(),
            function: function.title(),
            line: self.lines.last(block).map(|last| self.line(last)),
            ways: [taken, not_taken],
            leads: [lead(taken), lead(not_taken)],
            callee: callee(&function, block).filter(|_| kind == Kind::Result),
            bits: row.bits(),
            width: row.known()?,
            first,
            told: cases.iter().filter_map(Row::told).collect(),
        })
    }

    /// Where an edge leads; nowhere where there is none.
    fn way(&self, block: BlockView<'_>, is: impl Fn(EdgeKind) -> bool) -> Address {
        let edge = block.successors().find(|edge| is(edge.kind));
        edge.map_or(Address(0), |edge| edge.address)
    }

    fn line(&self, position: Position) -> Line {
        Line {
            file: self.lines.file(position).to_owned(),
            line: position.line,
        }
    }
}

/// Whom the call at the end of a block calls.
fn callee(function: &FunctionView<'_>, block: BlockView<'_>) -> Option<String> {
    let call = function.calls().find(|call| call.block() == block.id())?;
    let own = |call: &CallView<'_>| call.function().map(|function| function.title());
    call.import().map(str::to_owned).or_else(|| own(&call))
}
