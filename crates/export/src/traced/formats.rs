//! Traces in formats that other programs read.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::json;
use tomo_profile::tracing::Atlas;

use super::calls::{Activation, Visitor};
use super::names::Names;

/// One line of JSON for each block.
pub struct Lines<'w, W> {
    /// Where to.
    pub to: &'w mut W,
    /// The program.
    pub atlas: &'w Atlas<'w>,
    /// What things are called.
    pub names: &'w Names,
    /// The thread.
    pub thread: u32,
    /// The first error.
    pub result: io::Result<()>,
}

impl<W: Write> Visitor for Lines<'_, W> {
    fn block(&mut self, stack: &[Activation], _: u64) {
        let Some(last) = stack.last().filter(|_| self.result.is_ok()) else {
            return;
        };
        let row = &self.atlas.chart.blocks[last.block as usize];
        let line = json!({
            "thread": self.thread,
            "depth": last.depth,
            "function": self.names.function(last.function).title,
            "block": format!("{:#x}", row.address.get()),
            "line": self.names.line(last.block).map(|(file, line)| format!("{file}:{line}")),
        });
        self.result = writeln!(self.to, "{line}");
    }
}

/// How many blocks ran under which stacks, as flame graphs are made of.
#[derive(Default)]
pub struct Folded {
    stacks: BTreeMap<Vec<u32>, u64>,
    key: Vec<u32>,
    blocks: u64,
}

impl Folded {
    fn settle(&mut self) {
        if self.blocks > 0 {
            *self.stacks.entry(self.key.clone()).or_default() += self.blocks;
            self.blocks = 0;
        }
    }

    fn follow(&mut self, stack: &[Activation]) {
        self.settle();
        self.key.clear();
        self.key.extend(stack.iter().map(|one| one.function));
    }

    /// Writes them.
    ///
    /// # Errors
    /// As the writer has them.
    pub fn write(mut self, names: &Names, to: &mut impl Write) -> io::Result<()> {
        self.settle();
        for (stack, blocks) in &self.stacks {
            let titles = stack
                .iter()
                .map(|one| names.function(*one).title.replace(';', ":"));
            writeln!(to, "{} {blocks}", titles.collect::<Vec<_>>().join(";"))?;
        }
        Ok(())
    }
}

impl Visitor for Folded {
    fn begins(&mut self, stack: &[Activation]) {
        self.follow(stack);
    }

    fn ends(&mut self, stack: &[Activation]) {
        self.follow(&stack[..stack.len().saturating_sub(1)]);
    }

    fn block(&mut self, _: &[Activation], _: u64) {
        self.blocks += 1;
    }
}

/// The trace event format, in which a block takes a microsecond: what Perfetto and Chrome open.
pub struct Events<'w, W> {
    /// Where to.
    pub to: &'w mut W,
    /// What things are called.
    pub names: &'w Names,
    /// The thread.
    pub thread: u32,
    /// The first error.
    pub result: io::Result<()>,
    /// How many blocks there were.
    pub step: u64,
}

impl<W: Write> Events<'_, W> {
    /// Begins the array of all threads' events, with the name of the process: each other is one more element.
    ///
    /// # Errors
    /// As the writer has them.
    pub fn begin(to: &mut W, program: &str) -> io::Result<()> {
        let named =
            json!({ "ph": "M", "pid": 1, "name": "process_name", "args": { "name": program } });
        write!(to, "[\n{named}")
    }

    fn event(&mut self, kind: &str, stack: &[Activation]) {
        let Some(last) = stack.last().filter(|_| self.result.is_ok()) else {
            return;
        };
        let named = self.names.function(last.function);
        let event = json!({
            "ph": kind, "pid": 1, "tid": self.thread, "ts": self.step,
            "name": named.title, "args": { "line": named.place },
        });
        self.result = write!(self.to, ",\n{event}");
    }
}

impl<W: Write> Visitor for Events<'_, W> {
    fn begins(&mut self, stack: &[Activation]) {
        self.event("B", stack);
    }

    fn ends(&mut self, stack: &[Activation]) {
        self.event("E", stack);
    }

    fn block(&mut self, _: &[Activation], step: u64) {
        self.step = step + 1;
    }
}

/// What each function costs, itself and with what it calls, by callee: callgrind's format.
#[derive(Default)]
pub struct Callgrind {
    /// Blocks run, by function.
    own: BTreeMap<u32, u64>,
    /// How often which function called which, and blocks run meanwhile.
    calls: BTreeMap<(u32, u32), (u64, u64)>,
    began: Vec<u64>,
    steps: u64,
}

impl Callgrind {
    /// Writes it.
    ///
    /// # Errors
    /// As the writer has them.
    pub fn write(&self, names: &Names, to: &mut impl Write) -> io::Result<()> {
        writeln!(
            to,
            "# callgrind format\nversion: 1\ncreator: tomo\nevents: Blocks\n"
        )?;
        for (function, own) in &self.own {
            let named = names.function(*function);
            let line = |named: &super::names::Named| {
                let place = named.place.as_deref().unwrap_or("???:0").to_owned();
                let (file, line) = place.rsplit_once(':').unwrap_or(("???", "0"));
                (file.to_owned(), line.to_owned())
            };
            let (file, at) = line(named);
            writeln!(to, "fl={file}\nfn={}\n{at} {own}", named.title)?;
            for (&(_, callee), (times, blocks)) in
                self.calls.range((*function, 0)..=(*function, u32::MAX))
            {
                let called = names.function(callee);
                let (called_file, first) = line(called);
                // Who is told the file once more takes the function for another one.
                if called_file != file {
                    writeln!(to, "cfi={called_file}")?;
                }
                writeln!(to, "cfn={}\ncalls={times} {first}", called.title)?;
                writeln!(to, "{at} {blocks}")?;
            }
        }
        Ok(())
    }
}

impl Visitor for Callgrind {
    fn begins(&mut self, _: &[Activation]) {
        self.began.push(self.steps);
    }

    fn ends(&mut self, stack: &[Activation]) {
        let began = self.began.pop().unwrap_or(self.steps);
        if let [.., caller, callee] = stack {
            let row = self
                .calls
                .entry((caller.function, callee.function))
                .or_default();
            row.0 += 1;
            row.1 += self.steps - began;
        }
    }

    fn block(&mut self, stack: &[Activation], _: u64) {
        if let Some(last) = stack.last() {
            *self.own.entry(last.function).or_default() += 1;
        }
        self.steps += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::{Callgrind, Events, Names};
    use crate::traced::Activation;
    use crate::traced::names::Named;

    fn names() -> Names {
        let named = |title: &str, place: &str| Named {
            title: title.into(),
            place: Some(place.into()),
        };
        Names::called([
            named("main", "a.c:1"),
            named("near", "a.c:9"),
            named("far", "b.h:3"),
        ])
    }

    #[test]
    fn all_events_have_a_kind() {
        let (names, mut to) = (names(), Vec::new());
        Events::begin(&mut to, "prog").expect("written");
        let mut events = Events {
            to: &mut to,
            names: &names,
            thread: 0,
            result: Ok(()),
            step: 0,
        };
        let stack = [Activation::default()];
        events.event("B", &stack);
        events.event("E", &stack);
        events.result.expect("written");
        to.push(b']');
        let all: Vec<BTreeMap<String, Value>> = serde_json::from_slice(&to).expect("JSON");
        let kinds: Vec<_> = all.iter().map(|event| event["ph"].as_str()).collect();
        assert_eq!(kinds, [Some("M"), Some("B"), Some("E")]);
    }

    #[test]
    fn the_file_of_what_is_called_is_told_where_it_is_another() {
        let callgrind = Callgrind {
            own: [(0, 5), (1, 2), (2, 1)].into(),
            calls: [((0, 1), (3, 2)), ((0, 2), (1, 1))].into(),
            ..Callgrind::default()
        };
        let mut to = Vec::new();
        callgrind.write(&names(), &mut to).expect("written");
        let text = String::from_utf8(to).expect("UTF-8");
        let near = "fl=a.c\nfn=main\n1 5\ncfn=near\ncalls=3 9\n1 2\n";
        let far = "cfi=b.h\ncfn=far\ncalls=1 3\n1 1\nfl=a.c\nfn=near\n";
        assert!(text.contains(&[near, far].concat()), "{text}");
    }
}
