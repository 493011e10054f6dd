//! The expectation that a fixture carries in its comments.
//!
//! A fixture is a source text. Each of its comment lines that starts with one of these words says
//! something; all other lines are prose or code:
//!
//! ```text
//! built by: COMPILER FLAG …            the file itself and the output come behind the flags
//! stripped: NAME …                     `strip` leaves these functions to be found, with the same graph
//! function NAME: STATUS                the blocks and edges follow
//! - LABEL: KIND LABEL …, KIND LABEL …  a block and its ways out
//! resolution LABEL: RESOLUTION         of the indirect jump that ends the block
//! pads NAME: CALLEE …                  whose calls in the function have a landing pad, and no other call has
//! table NAME: COUNT                    how many different targets its jump tables have
//! ```
//!
//! The status is `exact`, `not exact`, `sound` (exact only with just these blocks and edges),
//! `absent`, or what `Debug` prints for a [`tomo_program::Status`]; `, never returns` may follow.
//! Places are labels that start with a capital `L`. They are looked up in the linked file and taken
//! out of it before it is analysed, so that they say nothing to the analysis. `LABEL+1` is a byte
//! further on, `NAME@plt` the stub of an import.

/// What a fixture says.
#[derive(Debug, Default)]
pub(crate) struct Fixture {
    /// Compiler and flags.
    pub(crate) command: Vec<String>,
    /// Functions that must be found in the stripped file.
    pub(crate) stripped: Vec<String>,
    /// Its functions.
    pub(crate) functions: Vec<Expected>,
}

/// What is expected of one function.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    /// Its symbol.
    pub(crate) name: String,
    /// Its status, in the words of the fixture.
    pub(crate) status: String,
    /// Whether control never comes back from it.
    pub(crate) never_returns: bool,
    /// Its blocks by label, each with its ways out: kind and label.
    pub(crate) blocks: Vec<(String, Vec<(String, String)>)>,
    /// Block and what is known of its indirect jump.
    pub(crate) resolutions: Vec<(String, String)>,
    /// Callees of the calls that have a landing pad.
    pub(crate) pads: Option<Vec<String>>,
    /// How many different targets its jump tables have.
    pub(crate) table: Option<usize>,
}

impl Fixture {
    /// Reads the comments of a source text.
    pub(crate) fn parse(source: &str) -> Self {
        let mut fixture = Self::default();
        for line in source.lines() {
            let line = line.trim_start_matches(['#', '/', '*', ' ']).trim_end();
            if let Some((word, rest)) = line.split_once(": ") {
                fixture.statement(word, rest);
            } else if let Some(label) = line.strip_prefix("- ") {
                let label = label.trim_end_matches(':').to_owned();
                fixture.last().blocks.push((label, Vec::new()));
            }
        }
        fixture
    }

    fn statement(&mut self, word: &str, rest: &str) {
        match word.split_once(' ') {
            None if word == "stripped" => self.stripped = words(rest),
            Some(("built", "by")) => self.command = words(rest),
            Some(("function", name)) => self.functions.push(Expected::new(name, rest)),
            Some(("resolution", label)) => {
                let resolution = (label.to_owned(), rest.to_owned());
                self.last().resolutions.push(resolution);
            }
            Some(("pads", _)) => self.last().pads = Some(words(rest)),
            Some(("table", _)) => {
                self.last().table = Some(rest.parse().expect("a number of targets"));
            }
            Some(("-", label)) => self.last().blocks.push((label.to_owned(), ways(rest))),
            _ => {}
        }
    }

    fn last(&mut self) -> &mut Expected {
        self.functions
            .last_mut()
            .expect("blocks follow their function")
    }
}

impl Expected {
    fn new(name: &str, rest: &str) -> Self {
        let (status, never_returns) = match rest.strip_suffix(", never returns") {
            Some(status) => (status, true),
            None => (rest, false),
        };
        Self {
            name: name.to_owned(),
            status: status.to_owned(),
            never_returns,
            ..Self::default()
        }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn ways(text: &str) -> Vec<(String, String)> {
    let ways = text.split(',').flat_map(|way| {
        let mut words = way.split_whitespace();
        let kind = words.next().unwrap_or_default();
        words.map(move |label| (kind.to_owned(), label.to_owned()))
    });
    ways.collect()
}

#[test]
fn comments_are_read() {
    let fixture = Fixture::parse(
        "# Prose: of any kind.\n# built by: gcc -shared\n# function f: exact, never returns\n\
         # - f: taken La, not-taken Lb\n# - La: jump-table Lb Lc\n# - Lb:\nf: nop\n",
    );
    assert_eq!(fixture.command, ["gcc", "-shared"]);
    let function = &fixture.functions[0];
    assert_eq!(
        (function.name.as_str(), function.status.as_str()),
        ("f", "exact")
    );
    assert!(function.never_returns);
    let way = |kind: &str, label: &str| (kind.to_owned(), label.to_owned());
    assert_eq!(
        function.blocks[0].1,
        [way("taken", "La"), way("not-taken", "Lb")]
    );
    assert_eq!(
        function.blocks[1].1,
        [way("jump-table", "Lb"), way("jump-table", "Lc")]
    );
    assert_eq!(function.blocks[2], ("Lb".to_owned(), Vec::new()));
}
