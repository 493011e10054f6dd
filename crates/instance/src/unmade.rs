//! Why the last assignment was not made into images. Who found out may have had nobody to tell it to: a program that ends
//! at once is prepared for in a process of its own. So it is written down, and the next run tells it.

use std::fs;
use std::io;

use crate::bake::BakeError;
use crate::state::{State, StateError, replace};

fn path(state: &State) -> std::path::PathBuf {
    state.file("unmade")
}

/// Writes it down for the token that is shown; once there are images, there is nothing to tell.
pub(crate) fn note(state: &State, error: Option<&BakeError>) -> Result<(), StateError> {
    let path = path(state);
    let noted = match error {
        Some(error) => replace(&path, format!("{} {error}", state.bearer()).as_bytes()),
        None => match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        },
    };
    noted.map_err(|error| StateError::Io(path, error))
}

/// Why that was, if it was written down for this token.
pub(crate) fn noted(state: &State) -> Option<String> {
    let text = fs::read_to_string(path(state)).ok()?;
    let (bearer, why) = text.split_once(' ')?;
    (bearer == state.bearer().to_string()).then(|| why.to_owned())
}
