//! What probes for some paths cost a program: whole processes, as ratios of the processor's time.
//!
//! Selections are made of what an earlier run of the same work saw: of every function its hottest paths, or as many
//! that are drawn blindly from all that ran.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use tomo_plan::random::Random;

use super::Effort;
use crate::disposal::inputs::Case;
use crate::disposal::measure::{Job, Meter, Ran};
use crate::disposal::numbers::median;
use crate::disposal::way::job;
use crate::disposal::{StudyError, Subject};

/// A way to run a program, timed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timed {
    /// The program.
    pub program: String,
    /// Which paths are counted.
    pub way: &'static str,
    /// How many of them are asked for; none where not some are.
    pub paths: Option<usize>,
    /// Seconds of the processor, the median.
    pub seconds: f64,
    /// The median of the rounds' ratios to the program alone.
    pub ratio: f64,
    /// Whether each run printed what the program prints.
    pub same: bool,
}

/// A way to run the program.
struct Way {
    name: &'static str,
    paths: Option<usize>,
    job: Job,
}

/// Runs the longest work of a program in all ways.
pub(super) fn time(
    subject: &Subject,
    effort: Effort,
    tomo: &Path,
    folder: &Path,
) -> Result<Vec<Timed>, StudyError> {
    let inputs = folder.join("inputs");
    let work = subject.inputs.write(&subject.name, &inputs, effort.scale);
    let work = work.map_err(StudyError::io(inputs))?;
    let Some(case) = work.tasks.first().and_then(|task| task.cases.first()) else {
        return Ok(Vec::new());
    };
    let meter = Meter::new(tomo, folder);
    let ways = Site {
        program: &subject.builds.plain,
        meter: &meter,
        case,
        folder,
    }
    .ways()?;
    let mut runs: Vec<Vec<Ran>> = ways.iter().map(|_| Vec::new()).collect();
    for round in 0..=effort.rounds {
        // Whoever comes first finds caches colder than the next: take turns.
        for turn in 0..ways.len() {
            let at = (turn + round) % ways.len();
            runs[at].push(meter.run(&ways[at].job)?);
        }
    }
    let timed = ways.iter().zip(&runs).map(|(way, own)| {
        // The first round fills caches, and weaves what is missing.
        let pairs = own.iter().zip(&runs[0]).skip(1);
        let cpu = |ran: &Ran| ran.measured.cpu;
        Timed {
            program: subject.name.clone(),
            way: way.name,
            paths: way.paths,
            seconds: median(own.iter().skip(1).map(cpu)).unwrap_or_default(),
            ratio: median(pairs.map(|(own, alone)| cpu(own) / cpu(alone))).unwrap_or_default(),
            same: own.iter().all(|ran| ran.told() == runs[0][0].told()),
        }
    });
    Ok(timed.collect())
}

/// A program, its work, and where files go.
struct Site<'s> {
    program: &'s Path,
    meter: &'s Meter,
    case: &'s Case,
    folder: &'s Path,
}

/// Which of the paths of a function are selected.
#[derive(Clone, Copy)]
enum Pick {
    Hottest,
    Drawn,
}

impl Site<'_> {
    fn ways(&self) -> Result<Vec<Way>, StudyError> {
        let all = self.folder.join("all.json");
        self.meter
            .run(&self.counting(&["--format", "json", "--to"], &all))?;
        let text = fs::read(&all).map_err(StudyError::io(&all))?;
        let document: Value = serde_json::from_slice(&text)?;
        let mut ways = vec![Way {
            name: "alone",
            paths: None,
            job: job(self.program, self.case, Vec::new()),
        }];
        let told = self.folder.join("told");
        ways.push(Way {
            name: "all paths",
            paths: None,
            job: self.counting(&["--to"], &told),
        });
        for (name, most, pick) in [
            ("the hottest of each function", 1, Pick::Hottest),
            ("the five hottest of each function", 5, Pick::Hottest),
            ("one of each function, drawn", 1, Pick::Drawn),
            ("five of each function, drawn", 5, Pick::Drawn),
        ] {
            let (selection, paths) = selected(&document, most, pick);
            let file = self.folder.join(format!("selection-{}.json", ways.len()));
            fs::write(&file, selection.to_string()).map_err(StudyError::io(&file))?;
            let mut job = self.counting(&["--to"], &told);
            let options = [OsString::from("--select"), file.into()];
            job.arguments.splice(1..1, options);
            ways.push(Way {
                name,
                paths: Some(paths),
                job,
            });
        }
        Ok(ways)
    }

    /// The program under `tomo paths` with these options, the last of which names `file`.
    fn counting(&self, options: &[&str], file: &Path) -> Job {
        let own = job(self.program, self.case, Vec::new());
        let runs: PathBuf = self.folder.join("runs");
        let mut arguments: Vec<OsString> = vec!["paths".into(), "-o".into(), runs.into()];
        arguments.extend(options.iter().map(OsString::from));
        arguments.extend([file.into(), "--".into(), self.program.into()]);
        arguments.extend(own.arguments);
        let cache = self.folder.join("cache");
        Job {
            program: self.meter.tomo().into(),
            arguments,
            environment: vec![("TOMO_CACHE_DIR".into(), cache.into())],
            stdin: own.stdin,
        }
    }
}

/// The document with so many paths of each function, and how many these are.
fn selected(document: &Value, most: usize, pick: Pick) -> (Value, usize) {
    let mut selection = document.clone();
    let mut count = 0;
    let mut random = Random::new(most as u64);
    let functions = selection["functions"].as_array_mut();
    for function in functions.into_iter().flatten() {
        // Documents list the most frequent first.
        if let Some(paths) = function["paths"].as_array_mut() {
            if let Pick::Drawn = pick {
                random.shuffle(paths);
            }
            paths.truncate(most);
            count += paths.len();
        }
    }
    (selection, count)
}

#[cfg(test)]
mod tests {
    use super::{Pick, selected};
    use serde_json::json;

    #[test]
    fn as_many_paths_of_each_function_as_there_are() {
        let document = json!({"functions": [{"paths": [9, 8, 7]}, {"paths": []}, {"paths": [1]}]});
        let (hot, count) = selected(&document, 2, Pick::Hottest);
        let expected = json!({"functions": [{"paths": [9, 8]}, {"paths": []}, {"paths": [1]}]});
        assert_eq!((hot, count), (expected, 3));
        let (drawn, count) = selected(&document, 2, Pick::Drawn);
        assert_eq!(count, 3);
        assert_eq!(drawn, selected(&document, 2, Pick::Drawn).0);
    }
}
