//! Functions as JSON objects, schema `tomo.function/1`, one a line.
//!
//! A large program has millions of blocks, so objects are written straight into bytes, without a
//! tree in between, for many functions at once on all processors; the lines come out in order all
//! the same. Strings are escaped by `serde_json`.

use std::io::{self, Write};

use rayon::prelude::*;
use tomo_program::{
    BlockView, CallView, Callee, EdgeView, FunctionView, Graphs, IndirectJumpView, Status,
};

/// Blocks, about, that are made into one piece of output by one processor.
const PIECE: usize = 2048;
/// Pieces that are made before the first of them is written.
const BATCH: usize = 32;

/// Writes one line for each function.
pub(crate) fn write_lines(out: &mut dyn Write, graphs: &Graphs<'_>) -> io::Result<()> {
    write_all(out, graphs, b"\n")
}

/// Writes one function on a line.
pub(crate) fn write_one(out: &mut dyn Write, function: FunctionView<'_>) -> io::Result<()> {
    let mut line = Vec::new();
    Object(&mut line).function(&function);
    line.push(b'\n');
    out.write_all(&line)
}

/// Writes all functions as one array.
pub(crate) fn write_array(out: &mut dyn Write, graphs: &Graphs<'_>) -> io::Result<()> {
    out.write_all(b"[\n")?;
    let count = graphs.functions().len();
    if count > 0 {
        write_all(out, graphs, b",\n")?;
    }
    out.write_all(b"]\n")
}

/// Writes all functions with `separator` behind each but the last, which a line end follows.
fn write_all(out: &mut dyn Write, graphs: &Graphs<'_>, separator: &[u8]) -> io::Result<()> {
    let functions: Vec<_> = graphs.functions().collect();
    let last = functions.last().map(|function| function.id());
    let mut weight = 0;
    let pieces: Vec<_> = functions
        .chunk_by(|function, _| {
            weight += function.block_count() + 1;
            let room = weight < PIECE;
            weight = if room { weight } else { 0 };
            room
        })
        .collect();
    for batch in pieces.chunks(BATCH) {
        let texts: Vec<Vec<u8>> = batch
            .par_iter()
            .map(|piece| text(piece, separator, last))
            .collect();
        texts.iter().try_for_each(|text| out.write_all(text))?;
    }
    Ok(())
}

fn text(
    functions: &[FunctionView<'_>],
    separator: &[u8],
    last: Option<tomo_program::FunctionId>,
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PIECE * 256);
    for function in functions {
        Object(&mut bytes).function(function);
        bytes.extend_from_slice(if Some(function.id()) == last {
            b"\n"
        } else {
            separator
        });
    }
    bytes
}

/// Bytes to which JSON is appended.
struct Object<'a>(&'a mut Vec<u8>);

impl Object<'_> {
    /// `before`, then the number: `before` is a piece of JSON such as `,"size":`.
    fn number(&mut self, before: &str, number: u64) {
        self.raw(before);
        let mut digits = [0; 20];
        let mut first = digits.len();
        let mut rest = number;
        loop {
            first -= 1;
            digits[first] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.0.extend_from_slice(&digits[first..]);
    }

    fn raw(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    /// A name of ours: nothing in it needs escaping.
    fn word(&mut self, before: &str, word: &str) {
        self.raw(before);
        self.raw("\"");
        self.raw(word);
        self.raw("\"");
    }

    fn flag(&mut self, before: &str, flag: bool) {
        self.raw(before);
        self.raw(if flag { "true" } else { "false" });
    }

    /// A string from outside, or null.
    fn string(&mut self, before: &str, string: Option<&str>) {
        self.raw(before);
        match string {
            // Writing to a vector cannot fail.
            Some(string) => serde_json::to_writer(&mut *self.0, string).unwrap_or_default(),
            None => self.raw("null"),
        }
    }

    /// `before`, then a list of what `write` writes for each item.
    fn list<T>(
        &mut self,
        before: &str,
        items: impl Iterator<Item = T>,
        write: impl Fn(&mut Self, T),
    ) {
        self.raw(before);
        self.raw("[");
        for (index, item) in items.enumerate() {
            if index > 0 {
                self.raw(",");
            }
            write(self, item);
        }
        self.raw("]");
    }

    fn function(&mut self, function: &FunctionView<'_>) {
        let status = function.status();
        self.string(r#"{"schema":"tomo.function/1","name":"#, function.name());
        self.string(r#","demangled":"#, function.demangled().as_deref());
        self.number(r#","address":"#, function.entry().0);
        self.number(r#","size":"#, function.size());
        self.word(r#","status":"#, status.name());
        self.string(r#","reason":"#, status.reason().map(|reason| reason.name()));
        self.flag(r#","returns":"#, function.returns());
        self.number(r#","branches":"#, function.branches().into());
        self.list(r#","ranges":"#, function.ranges(), |object, range| {
            object.number(r#"{"address":"#, range.start().0);
            object.number(r#","size":"#, range.size());
            object.raw("}");
        });
        self.list(r#","calls":"#, function.calls(), |object, call| {
            object.call(&call)
        });
        self.list(
            r#","indirect_jumps":"#,
            function.indirect_jumps(),
            |object, jump| object.jump(&jump),
        );
        self.list(r#","blocks":"#, function.blocks(), |object, block| {
            object.block(&block, status)
        });
        self.raw("}");
    }

    fn block(&mut self, block: &BlockView<'_>, status: Status) {
        self.number(r#"{"address":"#, block.address().0);
        self.number(r#","size":"#, block.size().into());
        self.number(r#","instructions":"#, block.instructions().into());
        self.word(r#","patch":"#, block.patchability(status).name());
        if let Some(source) = block.source() {
            self.string(r#","file":"#, Some(source.file));
            self.number(r#","line":"#, source.line.into());
        }
        self.list(r#","successors":"#, block.successors(), |object, edge| {
            object.edge(&edge)
        });
        self.raw("}");
    }

    fn edge(&mut self, edge: &EdgeView) {
        self.number(r#"{"address":"#, edge.address.0);
        self.word(r#","kind":"#, edge.kind.name());
        self.raw("}");
    }

    fn call(&mut self, call: &CallView<'_>) {
        self.number(r#"{"address":"#, call.address().0);
        match call.callee() {
            Callee::Function(entry) => self.number(r#","callee":"#, entry.0),
            Callee::Import(_) => self.string(r#","import":"#, call.import()),
            Callee::Indirect => self.raw(r#","indirect":true"#),
        }
        self.flag(r#","returns":"#, call.returns());
        self.flag(r#","void":"#, call.is_void());
        self.raw("}");
    }

    fn jump(&mut self, jump: &IndirectJumpView<'_>) {
        self.number(r#"{"address":"#, jump.address().0);
        self.word(r#","resolution":"#, jump.resolution().name());
        if let Some(import) = jump.import() {
            self.string(r#","import":"#, Some(import));
        }
        self.raw("}");
    }
}
