//! The answer: predictors of failure, ranked by Importance (ABI §4.3), with what speaks for each.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use tomo_export::predicates::{Id, Line, Sites, Sources};
use tomo_export::words::counted;
use tomo_profile::scores::{Interval, importance_interval, increase};

use crate::state::{Known, StepMade};
use crate::words::{Words, words};

/// Predictors that are named.
pub(crate) const MOST: usize = 10;
/// Standard deviations to each side of what is 95 % certain.
const DEVIATIONS: f64 = 1.96;
/// Lines of the source that are shown before and behind.
const AROUND: u32 = 2;

/// What is said where nothing was found and each failure may have a reason of its own.
const LONE: &str = " What is true in one failure of several does not count: if they have different reasons, search them one by one.";

/// What names a predictor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// A predicate, as `tomo predicates` calls it.
    Predicate(Id),
    /// An acyclic path of the function with this entry.
    Path {
        /// The entry, as the module states it.
        entry: u64,
        /// Tells the function's paths apart.
        path: u32,
    },
}

impl fmt::Display for Name {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Predicate(id) => id.fmt(to),
            Self::Path { entry, path } => write!(to, "path@{entry:#x}:{path:08x}"),
        }
    }
}

/// A predictor of failure.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its name.
    pub id: Name,
    /// The function.
    pub function: String,
    /// Where it is.
    pub line: Option<Line>,
    /// What it says.
    pub words: Words,
    /// In how many runs it was true: of all cases.
    pub known: Known,
    /// How well it predicts, with 95 % confidence.
    pub importance: Interval,
    /// The step that found it.
    pub step: u32,
    /// The source around it.
    pub source: Vec<(u32, String)>,
}

/// What a search came to.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The best first.
    pub findings: Vec<Finding>,
    /// Cases that fail, and that do not.
    pub failures: usize,
    /// Cases that do not fail.
    pub successes: usize,
    /// Cases that do not always end alike.
    pub flaky: usize,
    /// How the search went.
    pub steps: Vec<StepMade>,
    /// Sites that were watched.
    pub seen: usize,
    /// Sites that there are.
    pub sites: usize,
    /// Whether more steps would find nothing better.
    pub complete: bool,
    /// Whether no run failed while it was observed.
    pub vanished: bool,
    /// Whether something was true in one of several failures and in few successes. Its Importance is 0, since log 1 is.
    pub lone: bool,
    /// The program.
    pub module: PathBuf,
}

/// Importance of what is known. One failing run says nothing of how many it is true in; it counts as all of them.
pub(crate) fn importance(known: &Known) -> Interval {
    let tally = known.tally();
    if known.failed != 1 {
        return importance_interval(&tally, known.failed, known.passed, DEVIATIONS);
    }
    let rise = increase(&tally);
    let value = match known.failed_true {
        1 if rise > 0.0 => 2.0 * rise / (1.0 + rise),
        _ => 0.0,
    };
    Interval {
        low: 0.0,
        value,
        high: if value > 0.0 { 1.0 } else { 0.0 },
    }
}

/// Whether no predicate can be more important: it was true in all failing runs and in no other, and all others met its site.
/// So its Context is the share of runs that fail, below which none is that is true in all of them (ABI §4.3).
pub(crate) fn is_perfect(known: &Known) -> bool {
    let predicts = known.failed_true == known.failed && known.passed_true == 0;
    let is_met = known.passed_seen == known.passed;
    known.failed > 0 && known.passed > 0 && predicts && is_met
}

/// Whether a predicate that tells failure from success was true in one of several failing runs only: as where each fails for
/// a reason of its own. How much a predictor accounts for is log F / log NumF (ABI §4.3), so nothing here.
pub(crate) fn has_lone(known: &BTreeMap<usize, Known>) -> bool {
    let is_lone = |known: &Known| known.failed > 1 && known.failed_true == 1;
    let mut lone = known.values().filter(|known| is_lone(known));
    lone.any(|known| increase(&known.tally()) > 0.0)
}

/// Rows that predict failure at all, the best first; of equals that which more successful runs could have met.
pub(crate) fn best(known: &BTreeMap<usize, Known>) -> Vec<(usize, Interval)> {
    let mut found: Vec<(usize, Interval, u64)> = known
        .iter()
        .map(|(row, known)| (*row, importance(known), known.passed_seen))
        .filter(|(_, importance, _)| importance.value > 0.0)
        .collect();
    found.sort_by(|one, other| {
        let by_value = other.1.value.total_cmp(&one.1.value);
        by_value.then(other.2.cmp(&one.2)).then(one.0.cmp(&other.0))
    });
    found.into_iter().map(|(row, one, _)| (row, one)).collect()
}

/// The first of the best, as all cases have it.
pub(crate) fn findings(
    sites: &Sites,
    best: &[(usize, Interval)],
    confirmed: &BTreeMap<usize, Known>,
    found: &BTreeMap<usize, Known>,
) -> Vec<Finding> {
    let rows: BTreeMap<usize, Known> = best
        .iter()
        .take(MOST)
        .filter_map(|(row, _)| Some((*row, *confirmed.get(row)?)))
        .collect();
    let mut sources = Sources::default();
    let each = self::best(&rows).into_iter();
    each.filter_map(|(row, importance)| {
        let site = sites
            .sites
            .iter()
            .find(|site| (site.first..site.first + site.told.len()).contains(&row))?;
        let case = (row - site.first) as u8;
        Some(Finding {
            id: Name::Predicate(Id::of(sites.rows.get(row)?)?),
            function: site.function.clone(),
            line: site.line.clone(),
            words: words(site, case, &mut sources),
            known: *rows.get(&row)?,
            importance,
            step: found.get(&row).map_or(0, |known| known.step),
            source: site
                .line
                .as_ref()
                .map(|line| sources.around(line, AROUND))
                .unwrap_or_default(),
        })
    })
    .collect()
}

impl Answer {
    /// In how many steps sites were watched, behind a word of that; nothing where there were none, as in campaigns that watch all at once.
    #[must_use]
    pub fn in_steps(&self) -> String {
        match self.steps.len() as u64 {
            0 => String::new(),
            many => format!(" in {}", counted(many, "step", "steps")),
        }
    }

    /// What came of it, in a sentence.
    #[must_use]
    pub fn verdict(&self) -> String {
        let searched = match self.complete {
            true => "",
            false => " yet",
        };
        if self.vanished {
            return format!(
                "The failures vanish when the program is observed: in {} steps none of its runs failed.",
                self.steps.len()
            );
        }
        let Some(best) = self.findings.first() else {
            return format!(
                "Nothing that was watched predicts the failure{searched}: {} of {} sites were watched{}.{}",
                self.seen,
                self.sites,
                self.in_steps(),
                match self.lone {
                    true => LONE,
                    false => "",
                }
            );
        };
        let words = format!("{}: {}.", best.words.place, best.words.what);
        match (best.importance.low > 0.0, self.failures) {
            (true, _) => words,
            (false, 1) => {
                format!("One failure alone proves nothing{searched}; the best guess is {words}")
            }
            (false, _) => format!(
                "Nothing predicts the failure for certain{searched}; the best guess is {words}"
            ),
        }
    }
}
