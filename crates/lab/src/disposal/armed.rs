//! A program armed by the environment: one image, one record, put back as they were when asked.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tomo_launch::{Agent, Arming, Chosen, How, Images, Observed, Pool, Target};
use tomo_wire::Refusal;
use tomo_wire::plan::{Entry, PlanView, Tactic};
use tomo_wire::record::RecordView;

use super::StudyError;

/// A pool of one program, as new.
#[derive(Debug)]
pub(crate) struct Armed {
    /// What the program's environment must hold.
    pub(crate) environment: Vec<(OsString, OsString)>,
    plan: PathBuf,
    record: PathBuf,
    /// Image and record as they were made.
    fresh: Vec<(PathBuf, Vec<u8>)>,
}

/// What a pool's record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Probes.
    pub(crate) probes: u64,
    /// Those that were hit.
    pub(crate) hit: u64,
    /// Processes that were armed.
    pub(crate) armed: u64,
    /// Processes that should have been.
    pub(crate) refused: u64,
}

impl Armed {
    /// A new pool for the executable `program` in `folder`; images and models are kept in `cache`.
    pub(crate) fn new(
        program: &Path,
        how: How,
        folder: &Path,
        cache: &Path,
    ) -> Result<Self, StudyError> {
        let failed =
            |error: &dyn std::error::Error| StudyError::NotArmed(program.into(), error.to_string());
        let target = Target::find_dynamic(program.as_os_str(), None).map_err(|e| failed(&e))?;
        let observed = Observed::of(&Chosen::executable(&target)).map_err(|e| failed(&e))?;
        let images = Images::in_cache(cache).map_err(|e| failed(&e))?;
        let agent = Agent::in_cache(cache).map_err(|e| failed(&e))?;
        let pool = Pool::open(folder).map_err(|e| failed(&e))?;
        pool.add(std::slice::from_ref(&observed), &images, how, &())
            .map_err(|e| failed(&e))?;
        let arming = Arming {
            agent: &agent,
            roster: &pool.roster(),
            outside: None,
        };
        let variables = arming.variables(|name| std::env::var_os(name));
        let file = |kind: &str| pool.path().join(format!("{}.{kind}", observed.stem));
        let contents = |path: PathBuf| -> Result<_, StudyError> {
            let bytes = fs::read(&path).map_err(StudyError::io(&path))?;
            Ok((path, bytes))
        };
        Ok(Self {
            environment: variables
                .into_iter()
                .map(|(name, value)| (name.into(), value))
                .collect(),
            plan: file("plan"),
            record: file("record"),
            fresh: vec![contents(file("image"))?, contents(file("record"))?],
        })
    }

    /// Puts image and record back as they were, for processes that start from now on.
    pub(crate) fn renew(&self) -> Result<(), StudyError> {
        for (path, bytes) in &self.fresh {
            let file = OpenOptions::new().write(true).open(path);
            let mut file = file.map_err(StudyError::io(path))?;
            file.write_all(bytes).map_err(StudyError::io(path))?;
        }
        Ok(())
    }

    /// What was seen since.
    pub(crate) fn seen(&self) -> Result<Seen, StudyError> {
        read(&self.record)
    }
}

impl Armed {
    /// How many of the probes stay.
    pub(crate) fn staying(&self) -> Result<u64, StudyError> {
        let bytes = fs::read(&self.plan).map_err(StudyError::io(&self.plan))?;
        let plan = PlanView::read(&bytes).map_err(refused(&self.plan))?;
        let stays = |unit: &&Entry| unit.tactic.get() == Tactic::Staying as u32;
        Ok(plan.units.iter().filter(stays).count() as u64)
    }
}

fn refused(path: &Path) -> impl FnOnce(Refusal) -> StudyError {
    let path = path.to_path_buf();
    move |refusal| StudyError::Io(path, io::Error::other(refusal.to_string()))
}

/// What a record says.
pub(crate) fn read(record: &Path) -> Result<Seen, StudyError> {
    let bytes = fs::read(record).map_err(StudyError::io(record))?;
    let view = RecordView::read(&bytes).map_err(refused(record))?;
    Ok(Seen {
        probes: view.marks.len() as u64,
        hit: view.marks.iter().filter(|mark| **mark != 0).count() as u64,
        armed: view.live.armed.get(),
        refused: view.live.refused.get(),
    })
}
