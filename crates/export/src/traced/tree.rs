//! The calls of a thread as a tree, in which what repeats itself is folded and counted.
//!
//! Equal subtrees are one (hash consing: Ershov, *On Programming of Arithmetic Operations*, CACM 1(8), 1958), so
//! the tree of a long run is small wherever the run does the same again.

use std::collections::HashMap;
use std::io::{self, Write};

use super::calls::{Activation, Visitor};
use super::names::Names;

/// An activation with what it called, in order, each with how often in a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Node {
    function: u32,
    called: Vec<(u32, u64)>,
}

/// The tree of a thread.
#[derive(Debug, Default)]
pub struct Tree {
    nodes: Vec<Node>,
    known: HashMap<Node, u32>,
    open: Vec<Node>,
    roots: Vec<(u32, u64)>,
}

/// How much of a tree is written.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'s> {
    /// Levels at most.
    pub depth: usize,
    /// Lines at most.
    pub lines: usize,
    /// Only activations of this function, with what they called.
    pub function: Option<&'s str>,
}

impl Tree {
    fn add(called: &mut Vec<(u32, u64)>, node: u32) {
        match called.last_mut() {
            Some((last, times)) if *last == node => *times += 1,
            _ => called.push((node, 1)),
        }
    }

    /// Whether it has a call of the function that is called so.
    #[must_use]
    pub fn has(&self, names: &Names, function: &str) -> bool {
        let mut nodes = self.nodes.iter();
        nodes.any(|node| names.function(node.function).title == function)
    }

    /// Writes it.
    ///
    /// # Errors
    /// As the writer has them.
    pub fn write(&self, names: &Names, shown: Shown<'_>, to: &mut impl Write) -> io::Result<()> {
        let mut left = shown.lines;
        match shown.function {
            None => {
                for &(root, times) in &self.roots {
                    self.line(names, (root, times), 0, shown, &mut left, to)?;
                }
            }
            Some(wanted) => {
                for (number, node) in (0..).zip(&self.nodes) {
                    if names.function(node.function).title == wanted {
                        self.line(names, (number, 1), 0, shown, &mut left, to)?;
                    }
                }
            }
        }
        if left == 0 {
            writeln!(to, "… more lines: see --lines, --depth and --function")?;
        }
        Ok(())
    }

    fn line(
        &self,
        names: &Names,
        (number, times): (u32, u64),
        level: usize,
        shown: Shown<'_>,
        left: &mut usize,
        to: &mut impl Write,
    ) -> io::Result<()> {
        let node = &self.nodes[number as usize];
        if *left == 0 {
            return Ok(());
        }
        *left -= 1;
        let named = names.function(node.function);
        let place = named
            .place
            .as_deref()
            .map_or(String::new(), |place| format!("  {place}"));
        let often = if times > 1 {
            format!("  × {times}")
        } else {
            String::new()
        };
        writeln!(to, "{}{}{often}{place}", "  ".repeat(level), named.title)?;
        if level + 1 < shown.depth {
            for &called in &node.called {
                self.line(names, called, level + 1, shown, left, to)?;
            }
        } else if !node.called.is_empty() {
            writeln!(to, "{}…", "  ".repeat(level + 1))?;
        }
        Ok(())
    }
}

impl Visitor for Tree {
    fn begins(&mut self, stack: &[Activation]) {
        let function = stack.last().map_or(0, |last| last.function);
        self.open.push(Node {
            function,
            called: Vec::new(),
        });
    }

    fn ends(&mut self, _: &[Activation]) {
        let Some(node) = self.open.pop() else {
            return;
        };
        let next = self.nodes.len() as u32;
        let number = *self.known.entry(node).or_insert_with_key(|node| {
            self.nodes.push(node.clone());
            next
        });
        match self.open.last_mut() {
            Some(above) => Self::add(&mut above.called, number),
            None => Self::add(&mut self.roots, number),
        }
    }
}
