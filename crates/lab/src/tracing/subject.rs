//! What is traced: the programs of `tests/subjects`, each with several of its cases.

use std::path::{Path, PathBuf};

use tomo_isolate::Cases;
use tomo_plan::random::Random;

use crate::disposal::StudyError;
use crate::disposal::inputs::Case;
use crate::isolation::{self, Workshop};

/// A program and what it is run on.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its name.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// Its runs.
    pub inputs: Vec<Input>,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Input {
    /// What it does, in a few words.
    pub title: String,
    /// Its arguments and input.
    pub case: Case,
}

/// Seed of what is drawn.
const SEED: u64 = 1;

/// Builds `subject`, and draws so many of its cases, evenly from all.
///
/// # Errors
/// Where it does not build, or its cases cannot be read.
pub fn prepare(
    subject: &isolation::Subject,
    workshop: &Workshop<'_>,
    inputs: usize,
) -> Result<Subject, StudyError> {
    let failed = |error: isolation::IsolationError| {
        StudyError::NotStarted(subject.folder.clone(), std::io::Error::other(error))
    };
    let program = workshop.program(subject, &[]).map_err(failed)?;
    let file = workshop.cases(subject, &program).map_err(failed)?;
    let cases = Cases::read(&file)
        .map_err(|error| failed(error.into()))?
        .cases;
    let inputs = inputs.min(cases.len());
    // One of each part, by chance: cases often come in groups of the same few kinds.
    let mut random = Random::new(SEED);
    let drawn = (0..inputs).map(|at| {
        let part = at * cases.len() / inputs..(at + 1) * cases.len() / inputs;
        &cases[part.start + random.below(part.len())]
    });
    Ok(Subject {
        name: subject.name.clone(),
        program,
        inputs: drawn.map(input).collect(),
    })
}

fn input(case: &tomo_isolate::Case) -> Input {
    let arguments = case.arguments.iter();
    let arguments: Vec<String> = arguments
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let read = case.input.as_deref().and_then(Path::file_name);
    let read = read.map(|name| format!("< {}", name.to_string_lossy()));
    let words = arguments.iter().map(|word| last(word)).chain(read);
    Input {
        title: words.collect::<Vec<_>>().join(" "),
        case: Case {
            arguments: arguments.clone(),
            stdin: case.input.clone(),
            operations: 1,
        },
    }
}

/// The last part of a path.
fn last(word: &str) -> String {
    word.rsplit('/').next().unwrap_or(word).to_owned()
}

#[cfg(test)]
mod tests {
    use super::input;

    #[test]
    fn titles_name_files_without_their_folders() {
        let case = tomo_isolate::Case {
            line: 1,
            arguments: vec!["-c".into(), "/a/b/script.lua".into(), "7".into()],
            input: Some("/a/c/in.txt".into()),
            success: tomo_isolate::Success::Exit(0),
            timeout: 1,
        };
        let input = input(&case);
        assert_eq!(input.title, "-c script.lua 7 < in.txt");
        assert_eq!(input.case.arguments, ["-c", "/a/b/script.lua", "7"]);
    }
}
