//! Which functions failing cases enter at all: no predicate of another can be true in them, so its turn comes last.
//!
//! A probe at each function's entry tells, which vanishes when it is hit, for all cases that follow, too. Those that
//! cannot have one may be entered.

use std::collections::BTreeSet;
use std::path::Path;

use tomo_launch::{
    Arming, Carried, How, Images, Master, equip, masters, new_folder, private_folder, read_record,
};
use tomo_weave::Placement;
use tomo_wire::plan::{Level, PlanView};

use crate::asked::IsolateError;
use crate::many::each;
use crate::session::Session;

/// Failing cases that are run for it at most.
const MOST: usize = 200;

impl Session {
    /// Entries of functions that none of these cases enters, ascending.
    pub(crate) fn idle(&self, failing: &[usize]) -> Result<Vec<u64>, IsolateError> {
        let images = Images::in_cache(&self.options.cache)?;
        let how = How {
            level: Level::Function,
            placement: Placement::All,
            stays: false,
        };
        let masters = masters([(&self.module, how)], &images, &())?;
        let Some(master) = masters.first() else {
            return Ok(Vec::new());
        };
        let folder = self.folder.join(format!("scout-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let folder = private_folder(&folder)?;
        let failing = failing.get(..MOST).unwrap_or(failing);
        let hit = self.hit(master, failing, &folder);
        let _ = std::fs::remove_dir_all(&folder);
        let hit = hit?;
        let path = master.plan_path();
        let io = |error| IsolateError::Io(path.into(), error);
        let bytes = std::fs::read(path).map_err(io)?;
        let plan = PlanView::read(&bytes).map_err(|refusal| io(std::io::Error::other(refusal)))?;
        // Units with probes come first.
        let probes = (0..master.probes()).zip(plan.units);
        let idle = probes.filter(|(probe, _)| !hit.contains(probe));
        let mut idle: Vec<u64> = idle.map(|(_, unit)| unit.from.get()).collect();
        idle.sort_unstable();
        Ok(idle)
    }

    /// The probes that these cases hit; all of them where a case was not observed.
    fn hit(
        &self,
        master: &Master,
        cases: &[usize],
        folder: &Path,
    ) -> Result<BTreeSet<u32>, IsolateError> {
        let image = folder.join("image");
        master.write(&image, |_| true)?;
        let (stem, probes) = (self.module.stem.as_str(), master.probes());
        let Some(carried) = Carried::of(&image, stem, master.plan(), probes) else {
            return Ok((0..probes).collect());
        };
        let seen = each(cases.len(), self.options.jobs, |number| {
            let run = folder.join(format!("run-{number}"));
            new_folder(&run)?;
            let roster = equip(&run, [0; 16], std::slice::from_ref(&carried))?;
            let arming = Arming {
                agent: &self.agent,
                roster: &roster,
                sanitized: false,
            };
            let variables = arming.variables(|name| std::env::var_os(name));
            self.labelled(cases[number], &variables)?;
            let marks = read_record(&carried.record(&run), |view| {
                let armed = view.live.armed.get() > 0 && view.live.refused.get() == 0;
                armed.then(|| view.marks.to_vec())
            })?;
            Ok(marks)
        });
        let mut hit = BTreeSet::new();
        for marks in seen {
            match marks {
                Ok(Some(marks)) => {
                    let marked = (0u32..).zip(&marks).filter(|(_, mark)| **mark != 0);
                    hit.extend(marked.map(|(probe, _)| probe));
                }
                Ok(None) => hit.extend(0..probes),
                Err(error) => return Err(error),
            }
        }
        Ok(hit)
    }
}
