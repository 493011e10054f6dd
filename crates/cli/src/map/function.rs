//! One function, for people: its blocks with their source lines, edges, loops, dominators and what
//! probes they can carry.

use std::io::{self, Write};

use rustc_hash::FxHashMap;
use tomo_graph::{AcyclicPaths, Dominators, FlowGraph, LoopKind, Loops};
use tomo_program::{
    BlockId, BlockView, CallView, Callee, EdgeKind, EdgeView, FunctionView, IndirectJumpView,
};

use super::list::printable;
use super::numbers::{counted, grouped};

/// What the analyses of the graph found.
struct Shape {
    graph: FlowGraph,
    dominators: Dominators,
    loops: Loops,
}

impl Shape {
    fn of(function: &FunctionView<'_>) -> Option<Self> {
        let graph = function.flow_graph()?;
        let dominators = Dominators::of(&graph);
        let loops = Loops::of(&graph, &dominators);
        Some(Self {
            graph,
            dominators,
            loops,
        })
    }
}

/// A function being shown.
struct Page<'g> {
    function: FunctionView<'g>,
    shape: Option<Shape>,
    calls: FxHashMap<BlockId, CallView<'g>>,
    jumps: FxHashMap<BlockId, IndirectJumpView<'g>>,
    width: usize,
}

/// Writes what is known of `function`, in lines of `width` columns where that is possible.
pub(crate) fn write(
    out: &mut dyn Write,
    function: FunctionView<'_>,
    width: usize,
) -> io::Result<()> {
    let page = Page {
        function,
        shape: Shape::of(&function),
        calls: function.calls().map(|call| (call.block(), call)).collect(),
        jumps: function
            .indirect_jumps()
            .map(|jump| (jump.block(), jump))
            .collect(),
        width,
    };
    page.write_head(out)?;
    page.write_loops(out)?;
    if function.block_count() > 0 {
        writeln!(
            out,
            "\n{:>7}  {:<18} {:>6} {:>5}  {:<6}  SOURCE",
            "BLOCK", "ADDRESS", "BYTES", "INSNS", "PROBE"
        )?;
    }
    function
        .blocks()
        .try_for_each(|block| page.write_block(out, &block))
}

impl Page<'_> {
    fn write_head(&self, out: &mut dyn Write) -> io::Result<()> {
        let function = &self.function;
        writeln!(out, "{}", printable(&function.title()))?;
        if let Some(name) = function.name().filter(|_| function.demangled().is_some()) {
            writeln!(out, "  symbol    {}", printable(name))?;
        }
        for (index, range) in function.ranges().enumerate() {
            let what = if index == 0 { "bytes" } else { "" };
            writeln!(
                out,
                "  {what:<9} {:#x}..{:#x}  {}",
                range.start(),
                range.end(),
                grouped(range.size())
            )?;
        }
        let status = function.status();
        let why = status
            .reason()
            .map_or(String::new(), |reason| format!(": {}", reason.sentence()));
        writeln!(out, "  status    {}{why}", status.name())?;
        let returns = if function.returns() {
            ""
        } else {
            ", does not return"
        };
        let counts = [
            counted(function.block_count() as u64, "block", "blocks"),
            counted(function.edges().count() as u64, "edge", "edges"),
            counted(function.calls().len() as u64, "call", "calls"),
            counted(function.branches().into(), "branch", "branches"),
        ];
        writeln!(out, "  graph     {}{returns}", counts.join(", "))?;
        match &self.shape {
            Some(shape) => writeln!(
                out,
                "  paths     {} acyclic",
                AcyclicPaths::of(&shape.graph).count()
            ),
            None => Ok(()),
        }
    }

    /// The loops, outer before inner, each with its header and how it is nested.
    fn write_loops(&self, out: &mut dyn Write) -> io::Result<()> {
        let Some(shape) = &self.shape else {
            return Ok(());
        };
        for (index, id) in shape.loops.ids().enumerate() {
            let what = if index == 0 { "loops" } else { "" };
            let header = shape.loops.header(id).0;
            let blocks = counted(shape.loops.members(id).len() as u64, "block", "blocks");
            let inside = shape.loops.parent(id).map_or(String::new(), |parent| {
                format!(", inside that at B{}", shape.loops.header(parent).0)
            });
            let kind = match shape.loops.kind(id) {
                LoopKind::Natural => "",
                LoopKind::Irreducible => ", irreducible",
            };
            let depth = shape.loops.depth(id);
            writeln!(
                out,
                "  {what:<9} at B{header}: {blocks}, depth {depth}{inside}{kind}"
            )?;
        }
        Ok(())
    }

    /// `B` and the position of the block in the function.
    fn label(&self, block: BlockId) -> String {
        self.function
            .position_of(block)
            .map_or_else(|| "?".into(), |position| format!("B{position}"))
    }

    fn write_block(&self, out: &mut dyn Write, block: &BlockView<'_>) -> io::Result<()> {
        let source = block.source().map_or(String::new(), |source| {
            let room = self.width.saturating_sub(54);
            format!(
                "{}:{}",
                shortened(&printable(source.file), room),
                source.line
            )
        });
        let probe = block.patchability(self.function.status()).name();
        let line = format!(
            "{:>7}  {:<18} {:>6} {:>5}  {probe:<6}  {source}",
            self.label(block.id()),
            block.address().to_string(),
            block.size(),
            block.instructions()
        );
        writeln!(out, "{}", line.trim_end())?;
        let mut notes = self.place_in_graph(block.id());
        notes.extend(self.calls.get(&block.id()).map(describe_call));
        notes.extend(self.jumps.get(&block.id()).map(describe_jump));
        notes.extend(self.successors(block));
        write_notes(out, &notes, self.width)
    }

    /// Its immediate dominator and the innermost loop around it.
    fn place_in_graph(&self, block: BlockId) -> Vec<String> {
        let Some((shape, node)) = self.shape.as_ref().zip(self.function.node(block)) else {
            return Vec::new();
        };
        if !shape.dominators.is_reachable(node) {
            return vec!["unreachable from the entry".into()];
        }
        let dominator = shape
            .dominators
            .immediate(node)
            .map(|node| format!("idom B{}", node.0));
        let header = |id| shape.loops.header(id);
        let around = shape
            .loops
            .innermost(node)
            .map(|id| match header(id) == node {
                true => format!("loop header, depth {}", shape.loops.depth(id)),
                false => format!("in loop B{}, depth {}", header(id).0, shape.loops.depth(id)),
            });
        dominator.into_iter().chain(around).collect()
    }

    /// Where control can go, each with why. Many entries of a jump table become one note.
    fn successors(&self, block: &BlockView<'_>) -> Vec<String> {
        let mut notes: Vec<(EdgeKind, String)> = Vec::new();
        for edge in block.successors() {
            let target = self.target(&edge);
            match notes.last_mut() {
                Some((kind, note)) if *kind == edge.kind => {
                    note.push(' ');
                    note.push_str(&target);
                }
                _ => notes.push((edge.kind, format!("{} → {target}", edge.kind.name()))),
            }
        }
        notes.into_iter().map(|(_, note)| note).collect()
    }

    fn target(&self, edge: &EdgeView) -> String {
        edge.block()
            .map_or_else(|| edge.address.to_string(), |block| self.label(block))
    }
}

fn describe_call(call: &CallView<'_>) -> String {
    let callee = match call.callee() {
        Callee::Function(entry) => call.function().map_or_else(
            || entry.to_string(),
            |function| printable(&function.title()),
        ),
        Callee::Import(_) => format!("{} (import)", printable(call.import().unwrap_or("?"))),
        Callee::Indirect => "through a pointer".into(),
    };
    let returns = if call.returns() {
        ""
    } else {
        ", does not return"
    };
    format!("call {callee}{returns}")
}

fn describe_jump(jump: &IndirectJumpView<'_>) -> String {
    let import = jump.import().map_or(String::new(), |name| {
        format!(" to {} (import)", printable(name))
    });
    format!("indirect jump: {}{import}", jump.resolution().name())
}

/// Writes notes below a block, as many on a line as fit.
fn write_notes(out: &mut dyn Write, notes: &[String], width: usize) -> io::Result<()> {
    const INDENT: &str = "         ";
    let words = notes.iter().enumerate().flat_map(|(index, note)| {
        let last = index + 1 == notes.len();
        let count = note.split(' ').count();
        note.split(' ')
            .enumerate()
            .map(move |(at, word)| (word, !last && at + 1 == count))
    });
    let mut line = String::new();
    for (word, ends_note) in words {
        let comma = if ends_note { ";" } else { "" };
        if !line.is_empty()
            && INDENT.len() + line.chars().count() + word.chars().count() + 2 > width
        {
            writeln!(out, "{INDENT}{line}")?;
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        line.push_str(comma);
    }
    if line.is_empty() {
        Ok(())
    } else {
        writeln!(out, "{INDENT}{line}")
    }
}

/// The end of `path`, from a separator on, with at most about `room` letters.
fn shortened(path: &str, room: usize) -> String {
    let room = room.max(20);
    if path.chars().count() <= room {
        return path.to_owned();
    }
    let starts = path.match_indices('/').map(|(at, _)| at);
    let mut tails = starts
        .map(|at| &path[at..])
        .filter(|tail| tail.chars().count() < room);
    let last = path.rsplit('/').next().unwrap_or(path);
    tails
        .next()
        .map_or_else(|| last.to_owned(), |tail| format!("…{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_keep_their_ends() {
        assert_eq!(shortened("/a/b.c", 30), "/a/b.c");
        assert_eq!(
            shortened("/home/somebody/project/src/main.c", 24),
            "…/project/src/main.c"
        );
        assert_eq!(
            shortened("/home/a-very-long-name-of-a-file-indeed.c", 5),
            "a-very-long-name-of-a-file-indeed.c"
        );
    }
}
