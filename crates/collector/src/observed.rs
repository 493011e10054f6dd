//! One campaign in memory: its definition, what is known of it, and the list of news.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard};
use tomo_protocol::{Campaign, InstanceId, Name, News, Since, Units};
use tomo_wire::report::{NO_ROOM, ReportView};

use crate::hunt::Hunt;
use crate::segment::Entry;
use crate::state::{Keeps, State};

/// Blocks of runs (64 each) that one instance may have beside its hits. More would be 64 million runs
/// of one installation, or numbers of runs that are made up.
const MOST_BLOCKS: usize = 1 << 20;
/// Blocks of runs that an instance may have without a word on all earlier runs: an instance gives
/// numbers out one after the other, and may have lost many of its reports.
const MOST_SPARSE: u64 = 1 << 14;

/// Counts that are kept of one instance at most, of runs that are not all over: 64 MB.
const MOST_ROWS: u64 = 1 << 22;

/// Instances that are copied at a time, while reports wait.
pub(crate) const CHUNK: usize = 64;

/// A campaign that is observed.
#[derive(Debug)]
pub(crate) struct Observed {
    /// Its definition.
    pub(crate) campaign: Campaign,
    /// Its search, if it has one. It changes after what changes it is durable.
    pub(crate) hunt: Option<RwLock<Hunt>>,
    /// Who decides how the search goes on; how much evidence there was then.
    pub(crate) deciding: tokio::sync::Mutex<u64>,
    live: Mutex<Live>,
}

/// What changes of a campaign.
#[derive(Debug)]
pub(crate) struct Live {
    /// What is known. It changes after what changes it is durable.
    pub(crate) state: State,
    /// When it ended.
    pub(crate) retired: Option<i64>,
    /// The objects of its log that are in the state, with their sizes.
    pub(crate) covered: BTreeMap<String, u64>,
    /// The objects that cannot be used, or not to the end.
    pub(crate) damaged: BTreeMap<String, u64>,
    /// Bytes of segments since the last snapshot.
    pub(crate) uncompacted: u64,
    /// Final reports of a search.
    pub(crate) evidence: u64,
    news: NewsList,
    /// Instances of each variant, pending ones included.
    carriers: Vec<u64>,
    /// Assignments that are on their way to the disk.
    pending: HashMap<InstanceId, u32>,
    /// New instances whose first reports are.
    arriving: HashSet<InstanceId>,
    /// How many instances were heard of lately.
    lately: Option<Lately>,
}

/// How many instances were heard of lately, as somebody counted.
#[derive(Clone, Copy, Debug)]
struct Lately {
    /// When that was.
    at: i64,
    heard: u64,
    /// How many there were in all.
    of: u64,
}

/// Nanoseconds within which who was heard of goes on reporting: instances are told to wait an hour at most.
const LATELY: i64 = 2 * 3600 * 1_000_000_000;
/// Nanoseconds for which a count holds, but for those who have come since: there may be a million to be looked at.
const COUNTED: i64 = 60 * 1_000_000_000;

/// Units that were seen, in the order in which this collector learned of them.
#[derive(Debug)]
struct NewsList {
    epoch: Name,
    order: Vec<u32>,
    seen: BTreeSet<u32>,
}

impl NewsList {
    fn add(&mut self, units: Vec<u32>) {
        for unit in units {
            if self.seen.insert(unit) {
                self.order.push(unit);
            }
        }
    }

    fn since(&self, since: Option<Since>) -> News {
        let known = since.filter(|since| since.epoch == self.epoch);
        let from = known.map_or(0, |since| since.from.min(self.order.len() as u64));
        News {
            epoch: self.epoch,
            upto: self.order.len() as u64,
            units: Units::of(self.order[from as usize..].iter().copied()),
        }
    }
}

/// Why a report is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub(crate) enum Objection {
    #[error("it is for another campaign than its token")]
    OtherCampaign,
    #[error(
        "it was made under other plans than this campaign's: another build of the program or another version of tomo"
    )]
    OtherPlans,
    #[error("the campaign has no such variant")]
    NoSuchVariant,
    #[error("it names units that its variant does not carry")]
    ForeignUnits,
    #[error("it counts what this campaign does not, or does not count what it does")]
    OtherCounts,
    #[error(
        "the installation has reported more of runs that are not all over than is kept of one; to have it go on as another, remove the file `instance` in the folder of its state"
    )]
    TooManyCounts,
    #[error("runs are numbered from 1, one after the other")]
    OddRun,
    #[error(
        "a run of this number has ended otherwise: the folder of the installation's state is a copy, or an older one; remove the file `instance` in it"
    )]
    OtherRun,
    #[error("the campaign has been retired")]
    Retired,
    #[error("the campaign has as many instances as it may have")]
    TooManyInstances,
}

/// What is to be kept of it.
fn keeps(campaign: &Campaign) -> Keeps {
    Keeps {
        evidence: campaign.search.is_some(),
        counts: campaign.is_counted(),
        chains: campaign.has_chains(),
    }
}

impl Observed {
    /// A campaign of which nothing is known yet; `epoch` names its list of news.
    pub(crate) fn new(campaign: Campaign, hunt: Option<Hunt>, epoch: Name) -> Self {
        let live = Live {
            state: State::of(keeps(&campaign)),
            retired: None,
            covered: BTreeMap::new(),
            damaged: BTreeMap::new(),
            uncompacted: 0,
            evidence: 0,
            news: NewsList {
                epoch,
                order: Vec::new(),
                seen: BTreeSet::new(),
            },
            carriers: vec![0; campaign.variants.len()],
            pending: HashMap::new(),
            arriving: HashSet::new(),
            lately: None,
        };
        Self {
            campaign,
            hunt: hunt.map(RwLock::new),
            deciding: tokio::sync::Mutex::new(0),
            live: Mutex::new(live),
        }
    }

    /// What changes of it. Nobody panics while he holds it; if somebody did, joins leave no half states.
    pub(crate) fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock()
    }

    /// Why a report is not taken, as far as its own content says.
    pub(crate) fn object_to(&self, report: &ReportView<'_>) -> Option<Objection> {
        let (campaign, header) = (&self.campaign, &report.header);
        if header.campaign != campaign.id.0 {
            return Some(Objection::OtherCampaign);
        }
        if header.plans.get() != campaign.plans.0 {
            return Some(Objection::OtherPlans);
        }
        let have = |units: &Units| {
            let mut called = report.links.iter().map(|link| link.unit.get());
            units.have(report.hits.iter().map(|hit| hit.get()))
                && called.all(|unit| unit == NO_ROOM || units.has(unit))
        };
        let number = header.variant.get();
        let has_all = match self.hunt() {
            Some(hunt) => hunt.units(number).map(have),
            None => {
                let variant = campaign.variants.get(number as usize);
                variant.map(|variant| have(&variant.units))
            }
        };
        match has_all {
            None => return Some(Objection::NoSuchVariant),
            Some(false) => return Some(Objection::ForeignUnits),
            Some(true) => {}
        }
        let is_other = report.counts.is_empty() == campaign.is_counted();
        if (is_other && !report.hits.is_empty())
            || (!campaign.has_chains() && !report.links.is_empty())
        {
            return Some(Objection::OtherCounts);
        }
        (header.run.get() == 0).then_some(Objection::OddRun)
    }

    /// Its search, if it has one.
    pub(crate) fn hunt(&self) -> Option<RwLockReadGuard<'_, Hunt>> {
        self.hunt.as_ref().map(RwLock::read)
    }

    /// Takes what is durable, and lets the search know.
    pub(crate) fn take(&self, live: &mut Live, entry: Entry<'_>, at: i64) {
        let edition = match &entry {
            Entry::Edition(edition) => Some(edition.clone()),
            _ => None,
        };
        live.take(entry, at);
        let (Some(hunt), Some(edition)) = (&self.hunt, edition) else {
            return;
        };
        let mut hunt = hunt.write();
        // Another collector may have decided otherwise, earlier.
        if !hunt.apply(&edition) {
            hunt.replay(live.state.editions().map(|(_, edition)| edition));
        }
    }

    /// A copy of what is known, and whether the campaign has ended. Reports go on in between: what is told of
    /// one instance may be a little older than of another.
    pub(crate) fn copy(&self) -> (State, bool) {
        let (instances, retired) = {
            let live = self.live();
            let instances: Vec<_> = live.state.instances().map(|(id, _)| id).collect();
            (instances, live.retired.is_some())
        };
        let mut state = State::of(keeps(&self.campaign));
        for chunk in instances.chunks(CHUNK) {
            let live = self.live();
            for &id in chunk {
                if let Some(instance) = live.state.instance(id) {
                    state.join_instance(id, instance.clone());
                }
            }
        }
        for (at, edition) in self.live().state.editions() {
            state.edition(edition.clone(), at);
        }
        (state, retired)
    }

    /// The news since then.
    pub(crate) fn news(&self, since: Option<Since>) -> News {
        self.live().news.since(since)
    }
}

impl Live {
    /// Why a report is not taken, as things stand.
    pub(crate) fn object_to(&self, report: &ReportView<'_>, most: usize) -> Option<Objection> {
        if self.retired.is_some() {
            return Some(Objection::Retired);
        }
        let instance = InstanceId(report.header.instance);
        let Some(known) = self.state.instance(instance) else {
            let is_new = !self.arriving.contains(&instance);
            return (is_new && self.is_crowded(most)).then_some(Objection::TooManyInstances);
        };
        if known.runs.contradict(report) {
            return Some(Objection::OtherRun);
        }
        let (run, blocks) = (report.header.run.get(), known.runs.blocks());
        let plausible = (blocks as u64)
            .saturating_add(MOST_SPARSE)
            .saturating_mul(64);
        let odd = run > plausible || blocks >= MOST_BLOCKS;
        if odd && !known.runs.has_block_of(run) {
            return Some(Objection::OddRun);
        }
        let new = report.counts.len() as u64 + 2 * report.links.len() as u64;
        let rows = known.counts.rows() + known.chained.rows() + new;
        (rows > MOST_ROWS).then_some(Objection::TooManyCounts)
    }

    /// Whether there are so many instances that no other may come.
    pub(crate) fn is_crowded(&self, most: usize) -> bool {
        self.state.instances().len() + self.pending.len() + self.arriving.len() >= most
    }

    /// Whether nothing is known of an instance, nor on its way.
    pub(crate) fn is_new(&self, instance: InstanceId) -> bool {
        self.state.instance(instance).is_none() && !self.arriving.contains(&instance)
    }

    /// The first reports of these are on their way to the disk.
    pub(crate) fn expect(&mut self, instances: impl IntoIterator<Item = InstanceId>) {
        self.arriving.extend(instances);
    }

    /// The first report of an instance did not become durable.
    pub(crate) fn expect_no_more(&mut self, instance: InstanceId) {
        self.arriving.remove(&instance);
    }

    /// How many instances were heard of lately: those that will never come back are not to slow down the others.
    pub(crate) fn heard_lately(&mut self, now: i64) -> u64 {
        let of = self.state.instances().len() as u64;
        let holds = |lately: &Lately| (0..COUNTED).contains(&now.saturating_sub(lately.at));
        if let Some(lately) = self.lately.filter(holds) {
            return lately.heard + of.saturating_sub(lately.of);
        }
        let since = now.saturating_sub(LATELY);
        let instances = self.state.instances();
        let heard = instances.filter(|(_, known)| known.last_heard >= since);
        let heard = heard.count() as u64;
        self.lately = Some(Lately { at: now, heard, of });
        heard
    }

    /// The variant of an instance, if it has one.
    pub(crate) fn variant_of(&self, instance: InstanceId) -> Option<u32> {
        self.state.instance(instance)?.variant()
    }

    /// The variant of an instance whose assignment is on its way, or a new one: that which fewest have.
    pub(crate) fn choose(&mut self, instance: InstanceId) -> u32 {
        if let Some(variant) = self.pending.get(&instance) {
            return *variant;
        }
        let fewest = (0..).zip(&self.carriers).min_by_key(|(_, count)| **count);
        let variant = fewest.map_or(0, |(variant, _)| variant);
        self.pending.insert(instance, variant);
        self.count(variant, 1);
        variant
    }

    /// Gives up an assignment that did not become durable.
    pub(crate) fn forget(&mut self, instance: InstanceId) {
        if let Some(variant) = self.pending.remove(&instance) {
            self.count(variant, -1);
        }
    }

    fn count(&mut self, variant: u32, by: i64) {
        if let Some(count) = self.carriers.get_mut(variant as usize) {
            *count = count.saturating_add_signed(by);
        }
    }

    /// Takes what is durable.
    pub(crate) fn take(&mut self, entry: Entry<'_>, at: i64) {
        match entry {
            Entry::Edition(edition) => {
                self.state.edition(edition, at);
            }
            Entry::Report(report) => {
                self.arriving.remove(&InstanceId(report.header.instance));
                self.evidence += u64::from(report.outcome.is_final());
                let new = self.state.report(&report, at);
                self.news.add(new);
            }
            Entry::Assignment(instance, variant) => {
                self.recounted(instance, |live| live.state.assign(instance, variant, at));
            }
            Entry::Instance(instance, known) => self.recounted(instance, |live| {
                live.evidence += known.evidence.all().count() as u64;
                let new = live.state.join_instance(instance, *known);
                live.news.add(new);
            }),
        }
    }

    /// Changes what is known of an instance, and the number of its variant's carriers with it.
    fn recounted(&mut self, instance: InstanceId, change: impl FnOnce(&mut Self)) {
        let before = self.variant_of(instance);
        change(self);
        let after = self.variant_of(instance);
        self.forget(instance);
        if before != after {
            before
                .into_iter()
                .for_each(|variant| self.count(variant, -1));
            after.into_iter().for_each(|variant| self.count(variant, 1));
        }
    }

    /// How many units were seen.
    pub(crate) fn seen(&self) -> u32 {
        self.news.seen.len() as u32
    }
}
