//! Counts in the format of pprof, not compressed: a sample for each block that ran, with how often that was and how many
//! instructions that makes. As in Callgrind's format all is a function's own; who called it is for `tomo chains`.
//!
//! What was inlined from another file has a function of that file and the same name: pprof shows the lines of a function in
//! one file alone.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::Counted;
use crate::protobuf::{Message, profile};

/// A block that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    function: String,
    /// The linker's name for it; empty where there is none.
    symbol: String,
    file: String,
    line: u32,
    address: u64,
    instructions: u64,
    times: u64,
}

/// Writes the profile of a module.
///
/// # Errors
/// Where `out` cannot be written, the model is damaged, or a number is larger than the format holds.
pub fn write(out: &mut dyn Write, counted: &Counted) -> io::Result<()> {
    let graphs = counted.graphs().map_err(io::Error::other)?;
    let mut rows = Vec::new();
    for function in counted.functions(&graphs) {
        let blocks = function.view.blocks().zip(&function.counts.blocks);
        for (block, count) in blocks {
            let Some(times) = count.filter(|count| *count > 0) else {
                continue;
            };
            let place = counted.start(block);
            rows.push(Row {
                function: function.view.title(),
                symbol: function.view.name().unwrap_or_default().into(),
                file: place.map_or_else(String::new, |place| counted.file(place).into()),
                line: place.map_or(0, |place| place.line),
                address: block.address().0,
                instructions: executed(times, block.instructions())?,
                times,
            });
        }
    }
    let module = counted.located.path.display().to_string();
    out.write_all(&encoded(&rows, &module))
}

/// How many instructions these are, if the format's signed numbers hold as many.
pub(super) fn executed(times: u64, instructions: u32) -> io::Result<u64> {
    let executed = times.checked_mul(instructions.into());
    let fits = |executed: &u64| i64::try_from(*executed.max(&times)).is_ok();
    executed.filter(fits).ok_or_else(|| {
        io::Error::other(format!(
            "a block of {instructions} instructions ran {times} times, more than the format can say"
        ))
    })
}

/// Strings by number, in the order in which they are first used.
struct Strings {
    numbers: BTreeMap<String, u64>,
    all: Vec<String>,
}

impl Strings {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.all.len() as u64;
        self.numbers.insert(text.into(), number);
        self.all.push(text.into());
        number
    }
}

fn encoded(rows: &[Row], module: &str) -> Vec<u8> {
    let mut whole = Message::default();
    let mut strings = Strings {
        numbers: BTreeMap::new(),
        all: Vec::new(),
    };
    // The first is to be the empty one.
    strings.number("");
    for kind in ["blocks", "instructions"] {
        let mut value = Message::default();
        value.number(1, strings.number(kind));
        value.number(2, strings.number("count"));
        whole.bytes(profile::SAMPLE_TYPE, &value.0);
    }
    let mut functions: BTreeMap<(&str, &str, &str), u64> = BTreeMap::new();
    for (number, row) in (1..).zip(rows) {
        let mut sample = Message::default();
        sample.packed(1, [number].into_iter());
        sample.packed(2, [row.times, row.instructions].into_iter());
        whole.bytes(profile::SAMPLE, &sample.0);
        let next = functions.len() as u64 + 1;
        let system = profile::system_name(&row.function, &row.symbol);
        let name = (row.function.as_str(), system, row.file.as_str());
        let function = *functions.entry(name).or_insert(next);
        if function == next {
            let mut message = Message::default();
            message.number(1, next);
            message.number(2, strings.number(name.0));
            message.number(3, strings.number(name.1));
            message.number(4, strings.number(name.2));
            whole.bytes(profile::FUNCTION, &message.0);
        }
        whole.bytes(profile::LOCATION, &location(number, row, function).0);
    }
    whole.bytes(profile::MAPPING, &mapping(strings.number(module)).0);
    for string in &strings.all {
        whole.bytes(profile::STRING, string.as_bytes());
    }
    whole.0
}

fn location(number: u64, row: &Row, function: u64) -> Message {
    let mut line = Message::default();
    line.number(1, function);
    line.number(2, row.line.into());
    let mut location = Message::default();
    location.number(1, number);
    location.number(2, 1);
    location.number(3, row.address);
    location.bytes(4, &line.0);
    location
}

/// The one mapping, of which functions, files and lines are known.
fn mapping(name: u64) -> Message {
    let mut mapping = Message::default();
    for (field, value) in [(1, 1), (3, u64::MAX), (5, name), (7, 1), (8, 1), (9, 1)] {
        mapping.number(field, value);
    }
    mapping
}

#[cfg(test)]
mod tests {
    use super::{Row, encoded, executed};
    use crate::protobuf::tests::{fields, numbers};

    #[test]
    fn what_is_written_is_decoded_again() {
        let row = |function: &str, file: &str, line, times| Row {
            function: function.into(),
            symbol: format!("_{function}"),
            file: file.into(),
            line,
            address: 0x1000 + u64::from(line),
            instructions: 3 * times,
            times,
        };
        let rows = [
            row("main", "a.c", 4, 1),
            row("main", "a.h", 9, 700),
            row("main", "a.c", 5, u64::from(u32::MAX)),
            row("", "", 0, 2),
        ];
        let bytes = encoded(&rows, "/bin/x");
        let all = fields(&bytes);
        let of = |wanted| all.iter().filter(move |(field, ..)| *field == wanted);
        let strings: Vec<_> = of(6)
            .map(|(.., text)| String::from_utf8(text.clone()).expect("UTF-8"))
            .collect();
        assert_eq!(strings[0], "");
        let number = |message: &[u8], wanted| {
            let inner = fields(message);
            let field = inner.iter().find(|(field, ..)| *field == wanted);
            field
                .map(|(_, value, inner)| (*value, inner.clone()))
                .expect("a field")
        };
        let kinds = of(1).map(|(.., kind)| strings[number(kind, 1).0 as usize].as_str());
        assert_eq!(kinds.collect::<Vec<_>>(), ["blocks", "instructions"]);
        let decoded = of(2).map(|(.., sample)| {
            let at = numbers(&number(sample, 1).1)[0];
            let values = numbers(&number(sample, 2).1);
            let locations: Vec<_> = of(4).filter(|(.., one)| number(one, 1).0 == at).collect();
            assert_eq!(locations.len(), 1);
            let location = &locations[0].2;
            let line = number(location, 4).1;
            let function = number(&line, 1).0;
            let (.., function) = of(5)
                .find(|(.., one)| number(one, 1).0 == function)
                .expect("one");
            let text = |field| strings[number(function, field).0 as usize].clone();
            Row {
                function: text(2),
                symbol: text(3),
                file: text(4),
                line: number(&line, 2).0 as u32,
                address: number(location, 3).0,
                instructions: values[1],
                times: values[0],
            }
        });
        assert_eq!(decoded.collect::<Vec<_>>(), rows);
        assert_eq!(of(5).count(), 3, "functions are there once for each file");
        let (.., mapping) = of(3).next().expect("a mapping");
        assert_eq!(strings[number(mapping, 5).0 as usize], "/bin/x");
    }

    #[test]
    fn what_the_format_cannot_hold_is_an_error() {
        assert_eq!(executed(1 << 40, 3).expect("fits"), 3 << 40);
        assert!(executed(u64::MAX / 2, 3).is_err());
        assert!(executed(1 << 62, 2).is_err(), "numbers are signed");
        assert!(executed(1 << 63, 0).is_err());
    }
}
