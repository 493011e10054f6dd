//! A case run once with a folder of its own, in which what was seen of it is kept.

use tempfile::TempDir;
use tomo_launch::{Arming, FolderError, RunFolder};
use tomo_profile::scores::Outcome;

use crate::asked::IsolateError;
use crate::run::Ran;
use crate::session::Session;

/// A case that was run, and its folder, which goes with this.
pub(crate) struct Kept {
    pub(crate) folder: RunFolder,
    pub(crate) ran: Ran,
    pub(crate) outcome: Outcome,
    _out: TempDir,
}

impl Session {
    /// Runs a case; `prepare` says what is to be seen of it.
    pub(crate) fn kept(
        &self,
        case: usize,
        prepare: impl FnOnce(&mut RunFolder) -> Result<(), FolderError>,
    ) -> Result<Kept, IsolateError> {
        let out = tempfile::tempdir_in(&self.folder);
        let out = out.map_err(|error| IsolateError::Io(self.folder.clone(), error))?;
        let mut folder = RunFolder::create(out.path())?;
        prepare(&mut folder)?;
        let roster = folder.roster()?;
        let arming = Arming {
            agent: &self.agent,
            roster: &roster,
            outside: None,
        };
        let variables = arming.variables(|name| std::env::var_os(name));
        let (ran, outcome) = self.labelled(case, &variables)?;
        Ok(Kept {
            folder,
            ran,
            outcome,
            _out: out,
        })
    }
}
