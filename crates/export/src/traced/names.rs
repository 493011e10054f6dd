//! What the blocks of a chart are called: functions, files and lines.

use std::collections::HashMap;

use tomo_profile::tracing::Atlas;
use tomo_program::{Address, Graphs};

/// A function's name, and where it starts in the source.
#[derive(Clone, Debug, Default)]
pub struct Named {
    /// Its name.
    pub title: String,
    /// File and line, if they are known.
    pub place: Option<String>,
}

/// Names of all that a chart has.
#[derive(Debug)]
pub struct Names {
    functions: Vec<Named>,
    /// Per block: file and line.
    lines: Vec<(u32, u32)>,
    files: Vec<String>,
}

impl Names {
    /// Those of an atlas, as the model of the program has them.
    #[must_use]
    pub fn of(atlas: &Atlas<'_>, graphs: &Graphs<'_>) -> Self {
        let mut files: Vec<String> = vec![String::new()];
        let mut known: HashMap<String, u32> = HashMap::new();
        let mut lines = Vec::with_capacity(atlas.chart.blocks.len());
        for block in atlas.chart.blocks {
            let view = graphs.block_at(Address(block.address.get()));
            let source = view.and_then(|view| view.source());
            lines.push(source.map_or((0, 0), |source| {
                let name = source.file.to_string();
                let next = files.len() as u32;
                let file = *known.entry(name).or_insert_with_key(|name| {
                    files.push(name.clone());
                    next
                });
                (file, source.line)
            }));
        }
        let mut names = Self {
            functions: Vec::new(),
            lines,
            files,
        };
        for function in atlas.chart.functions {
            let entry = function.entry.get();
            let address = Address(atlas.chart.blocks[entry as usize].address.get());
            let view = graphs.function_starting_at(address);
            names.functions.push(Named {
                title: view.map_or_else(|| format!("{:#x}", address.0), |view| view.title()),
                place: names
                    .line(entry)
                    .map(|(file, line)| format!("{file}:{line}")),
            });
        }
        names
    }

    /// The same with the names of functions as `written` has them.
    #[must_use]
    pub fn with_titles(mut self, written: impl Fn(&str) -> String) -> Self {
        for function in &mut self.functions {
            function.title = written(&function.title);
        }
        self
    }

    /// Functions alone.
    #[cfg(test)]
    pub(super) fn called(functions: impl Into<Vec<Named>>) -> Self {
        Self {
            functions: functions.into(),
            lines: Vec::new(),
            files: Vec::new(),
        }
    }

    /// The function with this number.
    #[must_use]
    pub fn function(&self, function: u32) -> &Named {
        &self.functions[function as usize]
    }

    /// Where a block starts in the source.
    #[must_use]
    pub fn line(&self, block: u32) -> Option<(&str, u32)> {
        let (file, line) = *self.lines.get(block as usize)?;
        (file > 0).then(|| (self.files[file as usize].as_str(), line))
    }

    /// The same in one word, or nothing.
    #[must_use]
    pub fn place(&self, block: u32) -> String {
        let line = self.line(block);
        line.map_or_else(String::new, |(file, line)| format!("{file}:{line}"))
    }
}
