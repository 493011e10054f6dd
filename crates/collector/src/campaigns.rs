//! What administrators ask: builds, plans, campaigns and tokens.

use axum::http::StatusCode;
use bytes::Bytes;
use tomo_protocol::{
    CHAINS, Campaign, CampaignId, KnownToken, ModuleOf, Name, NewCampaign, NewToken, PATHS, Plan,
    Program, Role, Summary, Terrain, Token, Units, Variant, is_counted, steers,
};
use tomo_wire::chains::Functions;
use tomo_wire::paths::Paths;
use tomo_wire::plan::{Level, PlanView};
use tomo_wire::predicates::{Predicates, Row, Told};
use tomo_wire::report::{MOST_HITS, name_of_plans};

use crate::collector::Collector;
use crate::tokens::{self, Grant};
use crate::variants::{PlanningError, left_out, variants};
use crate::{Denial, hunting};

/// Modules of one campaign at most.
const MOST_MODULES: usize = 4096;
/// Letters of a name or a note at most.
const LONGEST_NAME: usize = 200;

/// The parts of a build that are kept beside what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Model,
    File,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::File => "file",
        }
    }
}

fn refuse(error: impl Into<String>, advice: &str) -> Denial {
    Denial::new(StatusCode::UNPROCESSABLE_ENTITY, error, advice)
}

/// Names are shown by whoever reads them, so they hold nothing that a terminal would obey.
fn check_letters(what: &str, text: &str) -> Result<(), Denial> {
    if text.chars().any(steers) {
        let error = format!("{what} holds letters that steer a terminal");
        return Err(refuse(error, "leave them out"));
    }
    Ok(())
}

/// Whether nothing is to be seen of a letter: spaces, those of no width, and what else Unicode (§23.2) has no width for.
fn shows_nothing(letter: char) -> bool {
    letter.is_whitespace()
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

fn random(_: getrandom::Error) -> Denial {
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    let advice = "see the system's log of the collector's machine";
    Denial::new(status, "the system gives no random numbers", advice)
}

impl Collector {
    /// Stores something of an administrator's; what went wrong goes into the log.
    async fn put(&self, name: &str, bytes: impl Into<Bytes>) -> Result<(), Denial> {
        let put = self.shared.put(name, bytes.into()).await;
        put.map_err(|error| {
            tracing::error!(%name, %error, "could not be stored");
            Denial::from(&error)
        })
    }

    async fn read(&self, name: &str, what: &str) -> Result<Bytes, Denial> {
        let found = self.shared.store.get(name).await.map_err(|error| {
            tracing::error!(%name, %error, "could not be read");
            Denial::from(&error)
        })?;
        let advice =
            "where it was registered, the collector's store has lost it: restore that from a copy";
        found.ok_or_else(|| Denial::unknown(what, advice))
    }

    /// Registers a build.
    pub(crate) async fn put_program(&self, program: Program) -> Result<Program, Denial> {
        check_stem(&program.stem)?;
        check_letters("the program's name", &program.name)?;
        let text =
            serde_json::to_vec(&program).map_err(|error| Denial::malformed(error.to_string()))?;
        let name = format!("programs/{}/meta.json", program.stem);
        self.put(&name, text).await?;
        let mut programs = self.shared.programs.write();
        programs.insert(program.stem.clone(), program.clone());
        Ok(program)
    }

    /// All builds.
    pub(crate) fn programs(&self) -> Vec<Program> {
        self.shared.programs.read().values().cloned().collect()
    }

    /// One build.
    pub(crate) fn program(&self, stem: &str) -> Result<Program, Denial> {
        let found = self.shared.programs.read().get(stem).cloned();
        let advice = "`tomo campaign new` with its file registers it";
        found.ok_or_else(|| Denial::unknown(&format!("build {stem}"), advice))
    }

    /// Stores a part of a build. Parts come before the description, so that a build that is listed is
    /// whole.
    pub(crate) async fn put_part(
        &self,
        stem: &str,
        part: Part,
        bytes: Bytes,
    ) -> Result<(), Denial> {
        check_stem(stem)?;
        self.put(&format!("programs/{stem}/{}", part.name()), bytes)
            .await
    }

    /// A part of a build.
    pub(crate) async fn part(&self, stem: &str, part: Part) -> Result<Bytes, Denial> {
        self.program(stem)?;
        let what = format!("{} of build {stem}", part.name());
        self.read(&format!("programs/{stem}/{}", part.name()), &what)
            .await
    }

    /// Stores a master plan, once it has been read.
    pub(crate) async fn put_plan(&self, name: Name, bytes: Bytes) -> Result<Plan, Denial> {
        let plan = read_plan(&bytes)?;
        if plan.name != name {
            let error = format!("the plan's name is {}, not {name}", plan.name);
            return Err(refuse(error, "put it under its own name"));
        }
        self.put(&plan_object(name), bytes).await?;
        Ok(plan)
    }

    /// Stores the terrain of a plan of predicates, once it has been read.
    pub(crate) async fn put_terrain(&self, name: Name, bytes: Bytes) -> Result<(), Denial> {
        self.plan(name).await?;
        if Terrain::from_bytes(&bytes).is_none() {
            let advice = "make it anew with the tomo of this version";
            return Err(refuse("the terrain cannot be read", advice));
        }
        self.put(&terrain_object(name), bytes).await
    }

    /// A master plan.
    pub(crate) async fn plan(&self, name: Name) -> Result<Bytes, Denial> {
        self.read(&plan_object(name), &format!("plan {name}")).await
    }

    /// Plans a campaign and stores it.
    pub(crate) async fn new_campaign(&self, new: NewCampaign) -> Result<Campaign, Denial> {
        if new.modules.is_empty() || new.modules.len() > MOST_MODULES {
            let error = format!("a campaign observes 1 to {MOST_MODULES} modules");
            return Err(refuse(
                error,
                "name modules whose files `tomo campaign new` was given",
            ));
        }
        if new.name.is_empty() || new.name.chars().count() > LONGEST_NAME {
            let error = format!("a campaign's name has 1 to {LONGEST_NAME} letters");
            return Err(refuse(error, "choose another name"));
        }
        check_letters("the campaign's name", &new.name)?;
        if new.name.chars().all(shows_nothing) {
            let error = "nothing is to be seen of the campaign's name";
            return Err(refuse(error, "give it letters"));
        }
        let asked = self.modules(&new).await?;
        let (strategy, bound, seed) = (new.strategy, new.bound, new.seed);
        let planned = match new.search {
            Some(_) => (Vec::new(), 0),
            None => plan_variants(&new, &asked).await?,
        };
        let (planned, left_out) = planned;
        let Asked { modules, units, .. } = asked;
        let names: Vec<_> = modules.iter().map(|module| module.plan.0.into()).collect();
        let mut id = CampaignId([0; 16]);
        getrandom::fill(&mut id.0).map_err(random)?;
        let campaign = Campaign {
            id,
            name: new.name,
            created: self.shared.now(),
            plans: Name(name_of_plans(&names)),
            modules,
            units,
            strategy,
            bound,
            seed,
            policy: new.policy,
            variants: planned,
            left_out,
            search: new.search,
        };
        let hunt = hunting::hunt_of(&self.shared, &campaign).await;
        let hunt = hunt.map_err(|why| {
            let error = format!("there can be no search: {why}");
            refuse(
                error,
                "observe one module by its predicates, and put its terrain first",
            )
        })?;
        let text =
            serde_json::to_vec(&campaign).map_err(|error| Denial::malformed(error.to_string()))?;
        self.put(&format!("campaigns/{id}.json"), text).await?;
        let observed = self.shared.observed(campaign.clone(), hunt);
        let mut campaigns = self.shared.campaigns.write();
        campaigns.entry(id).or_insert(observed);
        tracing::info!(campaign = %id, name = %campaign.name, units, variants = campaign.variants.len(), "new campaign");
        Ok(campaign)
    }

    /// What is asked for, as far as the modules tell.
    async fn modules(&self, new: &NewCampaign) -> Result<Asked, Denial> {
        let (mut modules, mut units) = (Vec::new(), 0_u32);
        let (mut clusters, mut events) = (Vec::new(), Vec::new());
        let mut observable = Vec::new();
        let counted = new.modules.iter().any(|module| is_counted(&module.level));
        if counted && new.modules.len() > 1 {
            let error = "a campaign that counts observes one module";
            return Err(refuse(error, "make a campaign for each"));
        }
        for module in &new.modules {
            self.program(&module.stem)?;
            let bytes = self.plan(module.plan).await?;
            let plan = read_plan(&bytes)?;
            let is_asked = |unit: &u32| module.only.as_ref().is_none_or(|only| only.has(*unit));
            let asked = observable_in(&bytes).into_iter().filter(is_asked);
            observable.extend(asked.map(|unit| unit + units));
            let placements: &[&str] = match is_counted(&module.level) {
                true => &["all"],
                false => &["all", "reduced"],
            };
            if plan.level != module.level || !placements.contains(&module.placement.as_str()) {
                let error = format!(
                    "plan {} is not for level {}, placement {}",
                    plan.name, module.level, module.placement
                );
                return Err(refuse(
                    error,
                    "name level and placement as the plan was made",
                ));
            }
            for (sets, all) in [
                (&module.clusters, &mut clusters),
                (&module.events, &mut events),
            ] {
                if !sets.iter().all(|set| set.are_below(plan.probes)) {
                    let probes = plan.probes;
                    let error = format!("a set names more than the {probes} probes of its plan");
                    let advice = "make clusters and events of the plan's own probes";
                    return Err(refuse(error, advice));
                }
                let moved = |set: &Units| Units::of(set.iter().map(|unit| unit + units));
                all.extend(sets.iter().map(moved));
            }
            modules.push(ModuleOf {
                stem: module.stem.clone(),
                level: module.level.clone(),
                placement: module.placement.clone(),
                plan: module.plan,
                probes: plan.probes,
            });
            let sum = units
                .checked_add(plan.probes)
                .filter(|sum| *sum <= MOST_HITS);
            let error = || format!("the modules have more than {MOST_HITS} probes together");
            units =
                sum.ok_or_else(|| refuse(error(), "observe fewer modules, or functions only"))?;
        }
        if observable.is_empty() && new.modules.iter().any(|module| module.only.is_some()) {
            let error = "nothing of what is asked for can be observed";
            return Err(refuse(error, "ask for something else"));
        }
        Ok(Asked {
            modules,
            units,
            observable,
            clusters,
            events,
        })
    }

    /// All campaigns, or the one that a token is for.
    pub(crate) fn summaries(&self, only: Option<CampaignId>) -> Vec<Summary> {
        let all = self.shared.all_campaigns().into_iter();
        let shown = all.filter(|observed| only.is_none_or(|id| id == observed.campaign.id));
        let summary = |observed: std::sync::Arc<crate::observed::Observed>| {
            let (campaign, live) = (&observed.campaign, observed.live());
            let runs = live
                .state
                .instances()
                .map(|(_, known)| known.runs.sums().runs);
            Summary {
                id: campaign.id,
                name: campaign.name.clone(),
                created: campaign.created,
                retired: live.retired.is_some(),
                units: campaign.units,
                seen: live.seen(),
                variants: campaign.variants.len() as u32,
                instances: live.state.instances().len() as u64,
                runs: runs.sum(),
            }
        };
        let mut summaries: Vec<Summary> = shown.map(summary).collect();
        summaries.sort_by_key(|summary| (summary.created, summary.id));
        summaries
    }

    /// Ends a campaign: it takes no reports any more and keeps what it has.
    pub(crate) async fn retire(&self, id: CampaignId) -> Result<Summary, Denial> {
        let observed = self.observed(id)?;
        if observed.live().retired.is_none() {
            let now = self.shared.now();
            let name = format!("campaigns/{id}.retired");
            let put = self
                .shared
                .put_anyway(&name, format!("{now}\n").into())
                .await;
            put.map_err(|error| {
                tracing::error!(%name, %error, "could not be stored");
                Denial::from(&error)
            })?;
            observed.live().retired = Some(now);
            tracing::info!(campaign = %id, "retired");
        }
        self.summaries(Some(id))
            .pop()
            .ok_or_else(|| Denial::unknown("such campaign", "list them"))
    }

    /// Draws a token for a campaign.
    pub(crate) async fn new_token(&self, id: CampaignId, new: NewToken) -> Result<Token, Denial> {
        self.observed(id)?;
        if new.role == Role::Admin {
            let advice = "the administrator's token is in admin.token in the collector's folder";
            return Err(refuse(
                "tokens of campaigns are for instances or readers",
                advice,
            ));
        }
        if new.note.chars().count() > LONGEST_NAME {
            let error = format!("a note has up to {LONGEST_NAME} letters");
            return Err(refuse(error, "write a shorter one"));
        }
        check_letters("the note", &new.note)?;
        let token = tokens::draw(new.role, Some(id)).map_err(random)?;
        let grant = Grant {
            role: new.role,
            campaign: Some(id),
            note: new.note,
            created: self.shared.now(),
        };
        let text =
            serde_json::to_vec(&grant).map_err(|error| Denial::malformed(error.to_string()))?;
        self.put(&tokens::object_of(&token.hash), text).await?;
        self.shared.tokens.insert(token.hash.clone(), grant);
        Ok(token)
    }

    /// The tokens of a campaign.
    pub(crate) fn tokens_of(&self, id: CampaignId) -> Result<Vec<KnownToken>, Denial> {
        self.observed(id)?;
        Ok(self.shared.tokens.of_campaign(id))
    }

    /// Withdraws a token.
    pub(crate) async fn withdraw(&self, hash: &str) -> Result<(), Denial> {
        if self.shared.tokens.by_hash(hash).is_none() || !tokens::is_hash(hash) {
            return Err(Denial::unknown("such token", "name it by its hash"));
        }
        let deleted = self.shared.store.delete(&tokens::object_of(hash)).await;
        deleted.map_err(|error| Denial::from(&error))?;
        self.shared.tokens.remove(hash);
        Ok(())
    }
}

fn check_stem(stem: &str) -> Result<(), Denial> {
    let words = "the stem is not hexadecimal digits and dashes";
    let sound = tomo_protocol::paths::is_stem(stem);
    sound.then_some(()).ok_or_else(|| Denial::malformed(words))
}

/// The object of a plan.
pub(crate) fn plan_object(name: Name) -> String {
    format!("plans/{name}.plan")
}

/// The object of a plan's terrain.
pub(crate) fn terrain_object(name: Name) -> String {
    format!("plans/{name}.terrain")
}

/// The folder of the objects of a search's editions.
pub(crate) fn editions_of(campaign: CampaignId) -> String {
    format!("editions/{campaign}")
}

/// The object of an edition.
pub(crate) fn edition_object(campaign: CampaignId, number: u32) -> String {
    format!("{}/{number:08}.edition", editions_of(campaign))
}

/// What is asked for.
struct Asked {
    modules: Vec<ModuleOf>,
    units: u32,
    /// The units that can be observed.
    observable: Vec<u32>,
    /// In units of the campaign.
    clusters: Vec<Units>,
    events: Vec<Units>,
}

/// The variants that are asked for, over the units that can be observed; and how many of these could be in one and are not.
async fn plan_variants(new: &NewCampaign, asked: &Asked) -> Result<(Vec<Variant>, u32), Denial> {
    let (strategy, count, bound, seed) = (new.strategy, new.variants, new.bound, new.seed);
    let observable = asked.observable.clone();
    let among = |units: &Units| {
        let each = (0..).zip(&observable);
        Units::of(each.filter(|(_, unit)| units.has(**unit)).map(|(at, _)| at))
    };
    let chained = asked.modules.iter().any(|module| module.level == CHAINS);
    if chained && strategy.is_for_events() && asked.events.is_empty() {
        let error = format!(
            "{} shares out chains, and the request has none",
            strategy.name()
        );
        return Err(refuse(
            error,
            "name chains, or choose a strategy for clusters",
        ));
    }
    let sets: Vec<Units> = match (strategy.is_for_clusters(), strategy.is_for_events()) {
        (true, _) => asked.clusters.iter().map(among).collect(),
        // An event is seen as a whole or not at all.
        (_, true) => {
            let whole = asked.events.iter().map(|event| (event.len(), among(event)));
            let whole = whole.filter(|(length, event)| event.len() == *length);
            whole.map(|(_, event)| event).collect()
        }
        _ => Vec::new(),
    };
    let sets: Vec<Units> = sets.into_iter().filter(|one| !one.is_empty()).collect();
    if sets.is_empty() && strategy.is_for_events() && !asked.events.is_empty() {
        let error = "none of the events can be observed";
        return Err(refuse(error, "name others"));
    }
    let number = observable.len() as u32;
    let planning = move || {
        let planned = variants(number, &sets, strategy, count, bound, seed)?;
        let left_out = left_out(number, &sets, bound, &planned);
        Ok::<_, PlanningError>((planned, left_out))
    };
    let planned = tokio::task::spawn_blocking(planning).await;
    let planned = planned.map_err(|_| Denial::busy())?;
    let (planned, left_out) =
        planned.map_err(|error| refuse(error.to_string(), "change the request"))?;
    let units = |variant: Variant| {
        let each = variant.units.iter();
        let units = each.filter_map(|at| observable.get(at as usize).copied());
        Variant {
            units: Units::of(units),
        }
    };
    Ok((planned.into_iter().map(units).collect(), left_out))
}

/// The probes of a plan, or the predicates that can be observed.
fn observable_in(plan: &[u8]) -> Vec<u32> {
    if let Ok((_, rows)) = Predicates::read(plan) {
        let observed = |row: &Row| matches!(row.told(), Some(Told::Itself | Told::BySite));
        let each = (0..).zip(rows);
        return each
            .filter(|(_, row)| observed(row))
            .map(|(at, _)| at)
            .collect();
    }
    let probes = read_plan(plan).map_or(0, |plan| plan.probes);
    (0..probes).collect()
}

fn read_plan(bytes: &[u8]) -> Result<Plan, Denial> {
    if let Ok((header, rows)) = Predicates::read(bytes) {
        return Ok(Plan {
            name: Name(header.name()),
            level: "predicate".into(),
            probes: rows.len() as u32,
        });
    }
    if let Ok((header, rows)) = Functions::read(bytes) {
        return Ok(Plan {
            name: Name(header.name()),
            level: CHAINS.into(),
            probes: rows.len() as u32,
        });
    }
    if let Ok((header, _)) = Paths::read(bytes) {
        return Ok(Plan {
            name: Name(header.name()),
            level: PATHS.into(),
            probes: header.paths(),
        });
    }
    let view = PlanView::read(bytes).map_err(|refusal| {
        let error = format!("the plan cannot be read: {refusal}");
        refuse(error, "make it anew with the tomo of this version")
    })?;
    Ok(Plan {
        name: Name(view.name),
        level: Level::name(view.level).to_owned(),
        probes: view.header.probes.get(),
    })
}
