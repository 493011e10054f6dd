//! Which lines Go's table of functions states: what is left of a program whose debug information was stripped.
//!
//! Sources: runtime/symtab.go (`funcline1`, `funcfile`, `pcvalue`, `step`) and cmd/link/internal/ld/pcln.go. For each function
//! there are two lists, of files and of lines, each of which says from where to where in the code which value holds. Of what was
//! inlined they state the place of the body, not of the call. Nothing is said of where statements begin: all counts.

use super::{Described, Table, long, word};
use crate::text_of_bytes;

/// Where a line begins to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Begin {
    pub(crate) address: u64,
    /// The file, for [`Table::path`], and the line; nothing where none is known, as behind the end of a function.
    pub(crate) place: Option<(u64, u64)>,
}

/// In a description: where the lists of files and of lines are, and the first of its unit's files.
const FILES: usize = 20;
const LINES: usize = 24;
const FIRST_FILE: usize = 32;
/// In the head of the table: where the units' files are, the files' names and the lists.
const UNITS: usize = 40;
const PATHS: usize = 48;
const LISTS: usize = 56;
/// No path is longer.
const LONGEST_PATH: usize = 4096;

impl<'data> Table<'data> {
    /// Tells which line holds from where on, function by function, behind each of which none does.
    ///
    /// A function has as many places as bytes at most, so this is linear in the file.
    pub(crate) fn each_line(&self, mut each: impl FnMut(Begin)) {
        let described = (0..self.count).map_while(|index| self.described(index));
        for Described { start, size, about } in described {
            let lists = [FILES, LINES].map(|at| self.list(about, at, size));
            let [Some(files), Some(lines)] = lists else {
                continue;
            };
            let first = word(about, FIRST_FILE);
            for (from, file, line) in together(files, lines) {
                let file = u32::try_from(file).ok().zip(first);
                let file = file.and_then(|(file, first)| self.file(first.checked_add(file)?));
                let line = u64::try_from(line).ok();
                each(Begin {
                    address: start.0.saturating_add(from.into()),
                    place: file.zip(line),
                });
            }
            each(Begin {
                address: start.0.saturating_add(size.into()),
                place: None,
            });
        }
    }

    /// How many bytes there are at most.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The path of a file, as the compiler was given it.
    pub(crate) fn path(&self, file: u64) -> Option<String> {
        let at = usize::try_from(file).ok()?.checked_add(self.part(PATHS)?)?;
        let bytes = self.bytes.get(at..)?;
        let bytes = bytes.get(..LONGEST_PATH).unwrap_or(bytes);
        let length = bytes.iter().position(|byte| *byte == 0)?;
        Some(text_of_bytes(&bytes[..length]))
    }

    /// Where the part begins whose place is there in the table's head.
    fn part(&self, at: usize) -> Option<usize> {
        usize::try_from(long(self.bytes, at)?).ok()
    }

    /// The file that has this number among those of all units.
    fn file(&self, number: u32) -> Option<u64> {
        const NONE: u32 = u32::MAX;
        let at = usize::try_from(number).ok()?.checked_mul(4)?;
        let path = word(self.bytes, at.checked_add(self.part(UNITS)?)?)?;
        (path != NONE).then(|| path.into())
    }

    /// A list of a function of this size, whose place is there in its description.
    fn list(&self, about: &[u8], at: usize, size: u32) -> Option<List<'data>> {
        let at = usize::try_from(word(about, at)?)
            .ok()
            .filter(|at| *at != 0)?;
        let bytes = self.bytes.get(at.checked_add(self.part(LISTS)?)?..)?;
        Some(List {
            bytes,
            end: 0,
            size,
            value: -1,
        })
    }
}

/// A list of values and of how far each holds: pairs of numbers of seven bits a byte, the difference to the value before with
/// its sign in the lowest bit, then bytes of code. A difference of 0 ends it, but at its beginning.
struct List<'data> {
    bytes: &'data [u8],
    /// How far the last value holds, from the function's start.
    end: u32,
    size: u32,
    value: i32,
}

impl Iterator for List<'_> {
    /// How far a value holds, and the value.
    type Item = (u32, i32);

    fn next(&mut self) -> Option<(u32, i32)> {
        if self.end >= self.size {
            return None;
        }
        let difference = number(&mut self.bytes)?;
        if difference == 0 && self.end != 0 {
            return None;
        }
        let signed = (difference >> 1) as i32 ^ -((difference & 1) as i32);
        let further = number(&mut self.bytes).filter(|further| *further != 0)?;
        self.value = self.value.wrapping_add(signed);
        self.end = self.end.saturating_add(further).min(self.size);
        Some((self.end, self.value))
    }
}

/// From where on both have which values, up to where one ends.
fn together(a: List<'_>, b: List<'_>) -> impl Iterator<Item = (u32, i32, i32)> {
    let (mut a, mut b) = (a.peekable(), b.peekable());
    let mut from = 0;
    std::iter::from_fn(move || {
        let (&(a_end, a_value), &(b_end, b_value)) = (a.peek()?, b.peek()?);
        let end = a_end.min(b_end);
        let begin = std::mem::replace(&mut from, end);
        a.next_if(|it| it.0 == end);
        b.next_if(|it| it.0 == end);
        Some((begin, a_value, b_value))
    })
}

/// A number of seven bits a byte, the lowest first; nothing where it has more than 32 bits, as none has.
fn number(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0_u32;
    for shift in (0..32).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{List, number, together};

    /// Files 0 and 3, for 4 and 300 bytes; lines 7, 5 and 1,000,000 for 2, 4 and 298.
    const FILES: [u8; 6] = [2, 4, 6, 0xac, 2, 0];
    const LINES: [u8; 9] = [16, 2, 3, 4, 0xf6, 0x88, 0x7a, 0xaa, 2];

    fn list(bytes: &[u8], size: u32) -> List<'_> {
        List {
            bytes,
            end: 0,
            size,
            value: -1,
        }
    }

    fn both(size: u32) -> Vec<(u32, i32, i32)> {
        together(list(&FILES, size), list(&LINES, size)).collect()
    }

    #[test]
    fn each_value_holds_up_to_the_next() {
        let files: Vec<_> = list(&FILES, 304).collect();
        assert_eq!(files, [(4, 0), (304, 3)]);
        let all = [(0, 0, 7), (2, 0, 5), (4, 3, 5), (6, 3, 1_000_000)];
        assert_eq!(both(304), all);
        assert_eq!(both(6), all[..3], "a function ends where it ends");
        assert_eq!(both(3), all[..2]);
        assert_eq!(both(0), []);
    }

    #[test]
    fn what_is_no_list_has_no_more_values_than_the_function_has_bytes() {
        // One that goes on without code, one that goes on for ever, and one that begins with no difference.
        for bytes in [
            &[2, 0, 2, 0][..],
            &[2, 1].repeat(1000),
            &[0, 1].repeat(1000),
        ] {
            assert!(list(bytes, 50).count() <= 50);
        }
        for length in 0..LINES.len() {
            assert!(list(&LINES[..length], 304).count() < 3, "{length} bytes");
        }
        assert_eq!(number(&mut &[0xff; 9][..]), None);
        assert_eq!(number(&mut &[0x80][..]), None);
        assert_eq!(number(&mut &[0xac, 2, 7][..]), Some(300));
    }
}
