//! Instances that talk to a collector: one `tomo run` each, as a new installation that takes its assignment
//! first and reports each new hit. Every deployment is a campaign of its own, with all probes in one
//! variant. Local disposal is a campaign that tells no news.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tomo_protocol::{Growth, Numbers};

use super::curves::{Curve, Curves};
use super::processes::{self, Deployed};
use super::server::Server;
use super::{Deployer, Deployment, Instance, Outcome, Source, Technique};
use crate::disposal::inputs::Case;
use crate::disposal::measure::{Job, Meter, Told};
use crate::disposal::{StudyError, Units, way};

/// A program, and the collector that its instances talk to.
pub(crate) struct Collected<'s> {
    pub(crate) meter: &'s Meter,
    pub(crate) server: Server,
    pub(crate) name: &'s str,
    pub(crate) program: &'s Path,
    pub(crate) configurations: &'s [Case],
    /// What each configuration prints and how it ends, without probes.
    pub(crate) expected: Vec<Told>,
    /// Where installations keep their state.
    pub(crate) folder: PathBuf,
    pub(crate) cache: PathBuf,
    /// How long an instance runs at the peak.
    pub(crate) duration: Duration,
    /// How many campaigns there were.
    pub(crate) campaigns: usize,
    /// Coverage over time, of the first deployment at once in which each sees all for itself.
    pub(crate) curves: Option<Curves>,
    pub(crate) faults: Vec<String>,
}

/// A campaign of one deployment.
struct Campaign {
    id: String,
    token: PathBuf,
    folder: PathBuf,
}

impl Collected<'_> {
    fn campaign(&mut self, technique: Technique) -> Result<Campaign, StudyError> {
        self.campaigns += 1;
        let folder = self.folder.join(self.campaigns.to_string());
        fs::create_dir_all(&folder).map_err(StudyError::io(&folder))?;
        let mut words = vec!["campaign", "new", "--buffer", "1"];
        words.extend(Units::BlockDom.options());
        if technique == Technique::Local {
            words.push("--no-news");
        }
        let id = self
            .server
            .ask(&words, Some(self.program.as_os_str()), &self.cache)?;
        let token = folder.join("token");
        let text = self
            .server
            .ask(&["campaign", "token", &id], None, &self.cache)?;
        fs::write(&token, text + "\n").map_err(StudyError::io(&token))?;
        Ok(Campaign { id, token, folder })
    }

    fn job(&self, campaign: &Campaign, instance: usize, configuration: usize) -> Job {
        let plain = way::job(
            self.program,
            &self.configurations[configuration],
            Vec::new(),
        );
        let state = campaign.folder.join(instance.to_string());
        let words = ["run", "--wait", "60", "--flush-timeout", "20", "--state"].map(Into::into);
        let rest = [state.into_os_string(), "--".into(), self.program.into()];
        let variable = |name: &str, value: &Path| (name.into(), value.as_os_str().to_owned());
        Job {
            program: self.meter.tomo().into(),
            arguments: [words.to_vec(), rest.to_vec(), plain.arguments].concat(),
            environment: vec![
                ("TOMO_COLLECTOR".into(), self.server.url.clone().into()),
                variable("TOMO_TOKEN_FILE", &campaign.token),
                variable("TOMO_CACHE_DIR", &self.cache),
            ],
            stdin: plain.stdin,
        }
    }

    /// What the collector says of the instances of a campaign.
    fn judge(
        &mut self,
        (technique, deployment): (Technique, Deployment),
        campaign: &Campaign,
        outcome: &mut Outcome,
    ) -> Result<(), StudyError> {
        let numbers: Numbers = self
            .server
            .json(&["fleet", "status", "--json", &campaign.id], &self.cache)?;
        outcome.probes = Some(numbers.units.into());
        outcome.seen = Some(numbers.seen.into());
        for (number, one) in outcome.instances.iter_mut().enumerate() {
            let file = campaign.folder.join(number.to_string()).join("instance");
            let id = fs::read_to_string(&file).map_err(StudyError::io(&file))?;
            let same = |told: &&tomo_protocol::Instance| told.instance.to_string() == id.trim();
            match numbers.instances.iter().find(same) {
                Some(told) if told.totals.unobserved == 0 && told.totals.runs == 1 => {
                    let own = told.totals.cpu as f64 * 1e-9;
                    one.beside = Some((one.seconds - own).max(0.0));
                    one.seconds = own;
                    one.recorded = Some(told.hits.into());
                }
                _ => self
                    .faults
                    .push(format!("{}: instance {number} was not observed", self.name)),
            }
        }
        let is_free = technique == Technique::Local && deployment == Deployment::Concurrent;
        if is_free && self.curves.is_none() {
            let growth: Growth = self
                .server
                .json(&["fleet", "growth", "--json", &campaign.id], &self.cache)?;
            self.curves = Some(curves(self.name, &growth));
        }
        Ok(())
    }
}

/// How coverage grew by the collector's clock, from the first report on.
fn curves(name: &str, growth: &Growth) -> Curves {
    let start = growth.all.first().map_or(growth.created, |&(at, _)| at);
    let seconds = |points: &[(i64, u32)]| -> Curve {
        let since = |at: i64| at.saturating_sub(start) as f64 * 1e-9;
        points
            .iter()
            .map(|&(at, seen)| (since(at), seen.into()))
            .collect()
    };
    Curves {
        program: name.into(),
        source: Source::Collector,
        instances: growth
            .instances
            .iter()
            .map(|one| seconds(&one.points))
            .collect(),
        together: seconds(&growth.all),
    }
}

impl Deployer for Collected<'_> {
    fn source(&self) -> Source {
        Source::Collector
    }

    fn knows(&self, technique: Technique, _: Deployment) -> bool {
        !matches!(technique, Technique::Lasting(_))
    }

    fn deploy(
        &mut self,
        technique: Technique,
        deployment: Deployment,
        picks: &[usize],
    ) -> Result<Outcome, StudyError> {
        let campaign = match technique {
            Technique::Bare => None,
            _ => Some(self.campaign(technique)?),
        };
        let picked = picks.iter().enumerate();
        let jobs: Vec<Job> = picked
            .map(|(number, &pick)| match &campaign {
                Some(campaign) => self.job(campaign, number, pick),
                None => way::job(self.program, &self.configurations[pick], Vec::new()),
            })
            .collect();
        let Deployed { ran, peak } = processes::deploy(
            self.meter,
            &jobs,
            deployment,
            self.duration,
            &mut |_| Ok(()),
        )?;
        let mut outcome = Outcome {
            peak,
            ..Outcome::default()
        };
        for (&configuration, ran) in picks.iter().zip(&ran) {
            outcome.instances.push(Instance {
                configuration,
                seconds: ran.measured.cpu,
                beside: None,
                operations: self.configurations[configuration].operations,
                recorded: None,
                contacts: None,
            });
            if ran.told() != self.expected[configuration] {
                let fault = format!(
                    "{}: an instance did not do what the program does",
                    self.name
                );
                self.faults.push(fault);
            }
        }
        if let Some(campaign) = campaign {
            self.judge((technique, deployment), &campaign, &mut outcome)?;
        }
        Ok(outcome)
    }
}
