//! Chains in the format of pprof (`profile.proto`, github.com/google/pprof), not compressed: a sample a chain, the
//! innermost location first. A location is an address of a call in the module; those of gaps have none.

use std::collections::HashMap;
use std::io::{self, Write};

use super::{Frame, Stacks};
use crate::protobuf::{Message, profile};

/// Strings that come before the names.
const STRINGS: [&str; 3] = ["", "calls", "count"];
/// The number of the one mapping.
const MAPPING: u64 = 1;

/// Writes the chains of the module called `module`.
///
/// # Errors
/// Those of `to`.
pub fn write(to: &mut impl Write, stacks: &Stacks, module: &str) -> io::Result<()> {
    let mut whole = Message::default();
    let mut kind = Message::default();
    kind.number(1, 1);
    kind.number(2, 2);
    whole.bytes(profile::SAMPLE_TYPE, &kind.0);
    let mut locations: HashMap<Frame, u64> = HashMap::new();
    let mut order = Vec::new();
    for stack in &stacks.stacks {
        let numbers = stacks.frames(stack).map(|frame| {
            let next = locations.len() as u64 + 1;
            *locations.entry(frame).or_insert_with(|| {
                order.push(frame);
                next
            })
        });
        let numbers: Vec<u64> = numbers.collect();
        let mut sample = Message::default();
        sample.packed(1, numbers.into_iter());
        sample.packed(2, [stack.calls].into_iter());
        whole.bytes(profile::SAMPLE, &sample.0);
        // Samples grow as the square of a recursion's depth: they are not held.
        to.write_all(&whole.0)?;
        whole.0.clear();
    }
    let (names, many) = (STRINGS.len() as u64, stacks.names.len() as u64);
    let mut mapping = Message::default();
    mapping.number(1, MAPPING);
    mapping.number(3, u64::MAX);
    mapping.number(5, names + 2 * many);
    mapping.number(7, 1);
    whole.bytes(profile::MAPPING, &mapping.0);
    for (number, frame) in (1..).zip(&order) {
        whole.bytes(profile::LOCATION, &location(number, frame).0);
    }
    for number in 0..many {
        let mut function = Message::default();
        function.number(1, number + 1);
        function.number(2, names + number);
        function.number(3, names + many + number);
        whole.bytes(profile::FUNCTION, &function.0);
    }
    let strings = STRINGS.into_iter();
    let strings = strings.chain(stacks.names.iter().map(String::as_str));
    let systems = (0..).zip(&stacks.names).map(|(number, name)| {
        let symbol = stacks.symbols.get(&number);
        profile::system_name(name, symbol.map_or("", String::as_str))
    });
    for string in strings.chain(systems).chain([module]) {
        whole.bytes(profile::STRING, string.as_bytes());
    }
    to.write_all(&whole.0)
}

fn location(number: u64, frame: &Frame) -> Message {
    let mut line = Message::default();
    line.number(1, u64::from(frame.name) + 1);
    let mut location = Message::default();
    location.number(1, number);
    if frame.function != 0 {
        let at = if frame.at == 0 {
            frame.function
        } else {
            frame.at
        };
        location.number(2, MAPPING);
        location.number(3, at);
    }
    location.bytes(4, &line.0);
    location
}

#[cfg(test)]
mod tests {
    use super::write;
    use crate::chains::{Frame, Stacks};
    use crate::protobuf::tests::{fields, numbers};

    #[test]
    fn what_is_written_is_decoded_again() {
        let frame = |name, function, at| Frame { name, function, at };
        let deep = [
            frame(0, 0x1000, 0x1234),
            frame(1, 0, 0),
            frame(2, 0x2000, 0),
        ];
        let mut stacks = Stacks::of(
            &["main", "[qsort]", "compare"],
            &[(&deep, 300), (&[frame(0, 0x1000, 0)], 1)],
        );
        stacks.symbols.insert(2, "_Z7compare".into());
        let mut bytes = Vec::new();
        write(&mut bytes, &stacks, "/bin/x").expect("written");
        let all = fields(&bytes);
        let of = |wanted| all.iter().filter(move |(field, ..)| *field == wanted);
        let strings: Vec<_> = of(6)
            .map(|(.., s)| String::from_utf8(s.clone()).expect("UTF-8"))
            .collect();
        let name_of = |location: u64| {
            let (.., location) = of(4).nth(location as usize - 1).expect("a location");
            let inner = fields(location);
            let line = &inner
                .iter()
                .find(|(field, ..)| *field == 4)
                .expect("a line")
                .2;
            let function = fields(line)[0].1;
            let (.., function) = of(5).nth(function as usize - 1).expect("a function");
            strings[fields(function)[1].1 as usize].clone()
        };
        let samples: Vec<_> = of(2)
            .map(|(.., sample)| {
                let inner = fields(sample);
                let chain = numbers(&inner[0].2).into_iter().map(name_of);
                (chain.collect::<Vec<_>>().join("<"), numbers(&inner[1].2))
            })
            .collect();
        assert_eq!(
            samples,
            [
                ("compare<[qsort]<main".to_owned(), vec![300]),
                ("main".to_owned(), vec![1])
            ]
        );
        let named = of(5).map(|(.., function)| {
            let function = fields(function);
            [1, 2].map(|field: usize| strings[function[field].1 as usize].as_str())
        });
        let expected = [["main", ""], ["[qsort]", ""], ["compare", "_Z7compare"]];
        assert_eq!(named.collect::<Vec<_>>(), expected);
        assert_eq!(strings.last().map(String::as_str), Some("/bin/x"));
        let addresses: Vec<_> = of(4)
            .filter_map(|(.., location)| fields(location).iter().find(|f| f.0 == 3).map(|f| f.1))
            .collect();
        assert_eq!(addresses, [0x2000, 0x1234, 0x1000]);
    }
}
