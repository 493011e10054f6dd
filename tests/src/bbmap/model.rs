//! The model's side: the functions that `tomo map --format jsonl` prints, as flow graphs.
//!
//! The model's blocks end at calls; the normal form joins them again along `call-fallthrough`. Ways
//! out of the function (`tail-call`, `jump-into`) are no edges but are remembered, because a block
//! that has one and runs on has two ways out. Unknown kinds and schemas are refused: a comparer that
//! reads past what it does not know compares less than it says.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::BufRead,
};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::graph::{Edge, Graph};

/// One function of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelFunction {
    /// Its name, empty where it has none.
    pub name: String,
    /// Whether the model says that it knows all of it.
    pub exact: bool,
    /// Its blocks and edges.
    pub graph: Graph,
}

#[derive(Deserialize)]
struct Line {
    schema: String,
    name: Option<String>,
    address: u64,
    status: String,
    blocks: Vec<Block>,
}

#[derive(Deserialize)]
struct Block {
    address: u64,
    size: u64,
    successors: Vec<Successor>,
}

#[derive(Deserialize)]
struct Successor {
    address: u64,
    kind: String,
}

/// Reads one function a line; the functions by their entries.
///
/// # Errors
/// If a line is not of the form `tomo.function/1`, or two functions have the same entry.
pub fn read(lines: impl BufRead) -> Result<BTreeMap<u64, ModelFunction>> {
    let mut functions = BTreeMap::new();
    for (number, line) in lines.lines().enumerate() {
        let line: Line =
            serde_json::from_str(&line?).with_context(|| format!("line {}", number + 1))?;
        let entry = line.address;
        let function = function(line).with_context(|| format!("line {}", number + 1))?;
        ensure!(
            functions.insert(entry, function).is_none(),
            "two functions at {entry:#x}"
        );
    }
    Ok(functions)
}

fn function(line: Line) -> Result<ModelFunction> {
    ensure!(line.schema == "tomo.function/1", "schema {:?}", line.schema);
    let mut graph = Graph {
        entry: line.address,
        ..Graph::default()
    };
    for block in &line.blocks {
        let end = block
            .address
            .checked_add(block.size)
            .context("a block leaves the address space")?;
        ensure!(
            graph.blocks.insert(block.address, end).is_none(),
            "two blocks at {:#x}",
            block.address
        );
        for successor in &block.successors {
            connect(&mut graph, block.address, end, successor)?;
        }
    }
    let exact = match line.status.as_str() {
        "exact" => true,
        "partial" | "opaque" => false,
        other => bail!("status {other:?}"),
    };
    Ok(ModelFunction {
        name: line.name.unwrap_or_default(),
        exact,
        graph,
    })
}

fn connect(graph: &mut Graph, from: u64, end: u64, successor: &Successor) -> Result<()> {
    let to = successor.address;
    let thrown_at = match successor.kind.as_str() {
        "fallthrough" | "taken" | "not-taken" | "jump" | "jump-table" | "computed-goto"
        | "call-fallthrough" => None,
        "landing-pad" => Some(end),
        "tail-call" | "jump-into" => {
            graph.leaving.insert(from);
            return Ok(());
        }
        other => bail!("kind {other:?}"),
    };
    graph.edges.insert(Edge {
        from,
        to,
        thrown_at,
    });
    Ok(())
}

impl ModelFunction {
    /// Takes back what the model continues behind calls that never return (`ends`: the addresses
    /// behind them), and the blocks that nothing else reaches. Blocks that nothing reached before
    /// stay: those are errors to report.
    pub fn cut_behind(&mut self, ends: &BTreeSet<u64>) {
        let blocks = self.graph.blocks.clone();
        let goes_on = |edge: &Edge| {
            edge.thrown_at.is_none()
                && blocks.get(&edge.from) == Some(&edge.to)
                && ends.contains(&edge.to)
        };
        if !self.graph.edges.iter().any(goes_on) {
            return;
        }
        let mut before = self.graph.clone();
        before.keep_reachable();
        self.graph.edges.retain(|edge| !goes_on(edge));
        let mut after = self.graph.clone();
        after.keep_reachable();
        let lost =
            |block: &u64| before.blocks.contains_key(block) && !after.blocks.contains_key(block);
        self.graph.blocks.retain(|start, _| !lost(start));
        self.graph.edges.retain(|edge| !lost(&edge.from));
        self.graph.leaving.retain(|start| !lost(start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"schema":"tomo.function/1","name":"f","address":16,"size":9,"status":"exact",
        "reason":null,"blocks":[
        {"address":16,"size":4,"successors":[{"address":20,"kind":"call-fallthrough"},{"address":24,"kind":"landing-pad"}]},
        {"address":20,"size":4,"successors":[{"address":99,"kind":"tail-call"}]},
        {"address":24,"size":1,"successors":[]}]}"#;

    fn one(text: &str) -> Result<ModelFunction> {
        let functions = read(text.replace('\n', "").as_bytes())?;
        functions.into_values().next().context("no function")
    }

    #[test]
    fn reads_a_function() {
        let function = one(LINE).unwrap();
        assert!(function.exact);
        assert_eq!(
            function.graph.blocks,
            BTreeMap::from([(16, 20), (20, 24), (24, 25)])
        );
        let thrown = Edge {
            from: 16,
            to: 24,
            thrown_at: Some(20),
        };
        assert_eq!(
            function.graph.edges,
            BTreeSet::from([Edge::plain(16, 20), thrown])
        );
        assert_eq!(function.graph.leaving, BTreeSet::from([20]));
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        for (old, new) in [
            ("tail-call", "teleport"),
            ("exact", "perfect"),
            ("function/1", "function/2"),
        ] {
            assert!(one(&LINE.replace(old, new)).is_err(), "{new}");
        }
        assert!(read(format!("{0}\n{0}", LINE.replace('\n', "")).as_bytes()).is_err());
    }

    #[test]
    fn cutting_a_call_drops_what_only_it_reaches() {
        let mut function = one(LINE).unwrap();
        function.graph.blocks.insert(40, 41);
        function.cut_behind(&BTreeSet::from([20]));
        assert_eq!(
            function.graph.blocks.keys().copied().collect::<Vec<_>>(),
            [16, 24, 40]
        );
        assert_eq!(function.graph.edges.len(), 1);
        assert!(function.graph.leaving.is_empty());
    }
}
