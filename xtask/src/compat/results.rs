//! What a suite says: for each of its tests a word. Suites that speak otherwise are made to say it in
//! this manner by their line in the list of suites.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Words that stand before a test's name, as automake's test driver has them; `SAID` is for tests
/// of which only the checksum of their output is known.
const WORDS: [&str; 7] = ["PASS", "FAIL", "SKIP", "XFAIL", "XPASS", "ERROR", "SAID"];

/// What became of each test, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Results {
    tests: BTreeMap<String, String>,
}

impl Results {
    /// The lines `WORD: name` of what a suite printed. A name that comes again is counted up.
    pub(super) fn read(printed: &str) -> Self {
        let mut results = Self::default();
        for line in printed.lines() {
            let Some((word, rest)) = line.split_once(": ") else {
                continue;
            };
            if WORDS.contains(&word) {
                results.add(word, rest.trim());
            }
        }
        results
    }

    fn add(&mut self, word: &str, rest: &str) {
        let (name, word) = match rest.rsplit_once(' ') {
            Some((name, sum)) if word == "SAID" => (name, format!("{word} {sum}")),
            _ => (rest, word.to_owned()),
        };
        let mut unique = name.to_owned();
        let mut number = 1;
        loop {
            match self.tests.entry(unique) {
                Entry::Vacant(free) => {
                    free.insert(word);
                    return;
                }
                Entry::Occupied(_) => {
                    number += 1;
                    unique = format!("{name} ({number})");
                }
            }
        }
    }

    /// How many tests there are.
    pub(super) fn len(&self) -> usize {
        self.tests.len()
    }

    /// How many of them have this word.
    pub(super) fn count(&self, word: &str) -> usize {
        let words = self.tests.values().map(|said| said.split(' ').next());
        words.filter(|said| *said == Some(word)).count()
    }

    /// The tests of which the other says something else, or that only one of them has.
    pub(super) fn differences(&self, other: &Self) -> Vec<String> {
        let ours = self.tests.iter();
        let mut names: Vec<_> = ours
            .filter(|(name, word)| other.tests.get(*name) != Some(word))
            .map(|(name, _)| name.clone())
            .collect();
        let theirs = other.tests.keys();
        names.extend(
            theirs
                .filter(|name| !self.tests.contains_key(*name))
                .cloned(),
        );
        names
    }
}

#[cfg(test)]
mod tests {
    use super::Results;

    const PRINTED: &str =
        "make: hello\nPASS: a\nFAIL: b\nSKIP: c d\nPASS: a\nSAID: run-x 123 \nNOTE: e\n";

    #[test]
    fn each_test_has_its_word() {
        let results = Results::read(PRINTED);
        assert_eq!(results.len(), 5);
        assert_eq!(results.count("PASS"), 2);
        assert_eq!((results.count("FAIL"), results.count("SAID")), (1, 1));
    }

    #[test]
    fn whatever_changes_comes_or_goes_differs() {
        let results = Results::read(PRINTED);
        assert!(results.differences(&results).is_empty());
        for (from, to, name) in [
            ("FAIL: b", "PASS: b", "b"),
            ("SAID: run-x 123", "SAID: run-x 124", "run-x"),
            ("SKIP: c d\n", "", "c d"),
            ("SKIP: c d\n", "SKIP: c d\nPASS: new\n", "new"),
            ("PASS: a\nSAID", "FAIL: a\nSAID", "a (2)"),
        ] {
            let other = Results::read(&PRINTED.replace(from, to));
            assert_eq!(results.differences(&other), [name]);
        }
    }
}
