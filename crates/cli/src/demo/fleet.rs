//! The campaign is set up as an administrator does it, and the instances run as users run them: `tomo run`, each with a
//! state of its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result, ensure};
use tomo_launch::{Master, Observed};
use tomo_protocol::{
    Bound, Campaign, Name, NewCampaign, NewModule, NewToken, Numbers, Plan, Policy, Profile,
    Program, Role, Strategy, Token, paths,
};

use super::server::Serving;
use super::words::Lines;
use super::work::Work;

pub(crate) struct Fleet<'a> {
    pub(crate) server: &'a Serving,
    /// What is observed.
    pub(crate) module: NewModule,
    pub(crate) folder: PathBuf,
    pub(crate) cache: PathBuf,
    pub(crate) tomo: PathBuf,
    pub(crate) work: &'a [Work],
    pub(crate) lines: &'a Lines,
}

/// A campaign, what it observes, and the file with the token of its instances.
pub(crate) struct Running {
    pub(crate) campaign: Campaign,
    token: PathBuf,
}

impl Fleet<'_> {
    /// Registers the build and its plan.
    pub(crate) fn register(&self, module: &Observed, master: &Master) -> Result<()> {
        let client = self.server.administrator()?;
        let program = Program {
            stem: module.stem.clone(),
            name: "tomo".into(),
            build_id: module.id.build_id().map(tomo_program::hexadecimal),
            size: fs::metadata(&module.path)?.len(),
            functions: 0,
            version: env!("CARGO_PKG_VERSION").into(),
        };
        let path = paths::of_program(paths::PROGRAM, &module.stem);
        let _: Program = client.put(&path, &program)?;
        let plan = fs::read(master.plan_path())?;
        let plan: Plan = client.put_bytes(&paths::of_plan(Name(master.plan())), &plan)?;
        ensure!(
            plan.probes == master.probes(),
            "the collector reads another plan"
        );
        Ok(())
    }

    /// Sets up a campaign over the plan that was registered, and a token for its instances.
    pub(crate) fn campaign(&self, name: &str, bound: Bound, variants: u32) -> Result<Running> {
        let client = self.server.administrator()?;
        let module = self.module.clone();
        let new = NewCampaign {
            name: name.into(),
            modules: vec![module],
            strategy: Strategy::BalancedProbes,
            variants,
            bound,
            seed: 2006,
            policy: Policy::default(),
            search: None,
        };
        let campaign: Campaign = client.post(paths::CAMPAIGNS, &new)?;
        let wanted = NewToken {
            role: Role::Instance,
            note: "the demo's instances".into(),
        };
        let path = paths::of_campaign(paths::TOKENS, campaign.id);
        let token: Token = client.post(&path, &wanted)?;
        let file = self.folder.join(format!("{}.token", campaign.id));
        fs::write(&file, token.token)?;
        Ok(Running {
            campaign,
            token: file,
        })
    }

    /// Runs all instances so often, as many at once as there are processors.
    pub(crate) fn run(&self, running: &Running, instances: u32, runs: u32) -> Result<()> {
        let all = instances * runs;
        let (next, done) = (AtomicU32::new(0), AtomicU32::new(0));
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let work = || -> Result<()> {
            loop {
                // All instances run once before any runs again, as sites of one release do.
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= all {
                    return Ok(());
                }
                let (instance, run) = (number % instances, number / instances);
                self.run_one(running, instance, run)?;
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                self.lines.progress(done, all);
            }
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            for thread in threads {
                let ended = thread.join();
                ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
            Ok(())
        })
    }

    /// What an instance does in a run.
    pub(crate) fn work_of(&self, instance: u32, run: u32) -> &Work {
        let number = (instance + run) as usize % self.work.len();
        &self.work[number]
    }

    fn run_one(&self, running: &Running, instance: u32, run: u32) -> Result<()> {
        let work = self.work_of(instance, run);
        let id = running.campaign.id.to_string();
        let output = Command::new(&self.tomo)
            .args(["run", "--wait", "100", "--flush-timeout", "10"])
            .args(["--collector", self.server.url(), "--token-file"])
            .arg(&running.token)
            .arg("--state")
            .arg(super::state(&self.folder, &id, instance))
            .arg("--")
            .arg(&self.tomo)
            .args(work.arguments())
            .env("TOMO_CACHE_DIR", &self.cache)
            .stdin(Stdio::null())
            .output()
            .context("starting an instance")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success() && errors.is_empty(),
            "an instance failed: {errors}"
        );
        Ok(())
    }

    /// For each instance the processor seconds that its work takes alone.
    pub(crate) fn alone(
        &self,
        running: &Running,
        instances: u32,
        runs: u32,
    ) -> BTreeMap<String, f64> {
        let id = running.campaign.id.to_string();
        let name = |instance| {
            let state = super::state(&self.folder, &id, instance);
            let name = fs::read_to_string(state.join("instance")).unwrap_or_default();
            name.trim().to_owned()
        };
        let seconds = |instance| {
            (0..runs)
                .map(|run| self.work_of(instance, run).seconds)
                .sum()
        };
        (0..instances)
            .map(|one| (name(one), seconds(one)))
            .collect()
    }

    pub(crate) fn profile(&self, running: &Running) -> Result<Profile> {
        let path = paths::of_campaign(paths::PROFILE, running.campaign.id);
        Ok(self.server.administrator()?.get(&path)?)
    }

    pub(crate) fn status(&self, running: &Running) -> Result<Numbers> {
        let path = paths::of_campaign(paths::STATUS, running.campaign.id);
        Ok(self.server.administrator()?.get(&path)?)
    }
}
