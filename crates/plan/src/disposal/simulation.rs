//! Instances and a server, event by event.
//!
//! Source: DIS Algorithm 2 for what an instance does at a probe; §4.2 for techniques. The server serves
//! one request after the other, in the order in which they come, so with many instances at once it
//! becomes the bottleneck that DIS §4.3 reports; an instance waits for its answer. What a request
//! brings is known to all requests served after it. O(e log n) for e events of n instances.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{DeploymentError, Policy, Scenario, Trigger, Workload};

/// How probes are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Technique {
    /// No probes (No-I).
    Bare,
    /// Probes that stay (Dom-I, or Basic-I, by what the workload lists).
    Lasting,
    /// Probes that go at their first hit (LD).
    Local,
    /// And before it, once it is known that another instance hit them (CD).
    Collective(Policy),
}

/// What things cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Costs {
    /// A probe that records.
    pub probe: u64,
    /// Removing a probe that has recorded.
    pub removal: u64,
    /// Coming to a probe that others have hit, and removing it.
    pub skip: u64,
    /// The server's work on one request.
    pub service: u64,
    /// The way there and back.
    pub latency: u64,
}

/// What one instance did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RunOutcome {
    /// When it started.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// Probes that recorded, each counted once.
    pub recorded: u64,
    /// Probes that were come to and not needed any more.
    pub skipped: u64,
    /// Requests to the server.
    pub contacts: u64,
    /// Time spent waiting for answers.
    pub waited: u64,
}

/// What a deployment did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// By instance.
    pub runs: Vec<RunOutcome>,
    /// When something new was recorded anywhere, and how many probes had been by then (DIS Figure 5).
    pub coverage: Vec<(u64, u64)>,
    /// How many probes the server knows of at the end.
    pub known: u64,
}

impl Outcome {
    /// The mean time of a run, from start to end.
    #[must_use]
    pub fn mean_time(&self) -> f64 {
        let times = self.runs.iter().map(|run| (run.end - run.start) as f64);
        times.sum::<f64>() / self.runs.len().max(1) as f64
    }

    /// The mean time to an answer; nothing if nobody asked.
    #[must_use]
    pub fn mean_response(&self) -> Option<f64> {
        let contacts: u64 = self.runs.iter().map(|run| run.contacts).sum();
        let waited: u64 = self.runs.iter().map(|run| run.waited).sum();
        (contacts > 0).then(|| waited as f64 / contacts as f64)
    }

    /// The most instances that ran at once.
    #[must_use]
    pub fn peak(&self) -> usize {
        let at = |time: u64| {
            let runs = self.runs.iter();
            runs.filter(|run| run.start <= time && time < run.end)
                .count()
        };
        let peak = self.runs.iter().map(|run| at(run.start)).max();
        peak.unwrap_or(0)
    }
}

/// Runs one instance for each workload.
pub fn simulate(
    workloads: &[Workload],
    technique: Technique,
    scenario: Scenario,
    costs: Costs,
) -> Result<Outcome, DeploymentError> {
    let starts = scenario.starts(workloads.len())?;
    let mut world = World::new(workloads, technique, costs);
    match starts {
        Some(starts) => world.run(&starts),
        None => {
            for instance in 0..workloads.len() {
                let start = instance
                    .checked_sub(1)
                    .map_or(0, |before| world.instances[before].done.end);
                world.start(instance, start);
                world.settle();
            }
        }
    }
    Ok(world.outcome())
}

/// A set of probes that grows with the highest one.
#[derive(Clone, Debug, Default)]
struct Probes(Vec<bool>);

impl Probes {
    fn has(&self, probe: u32) -> bool {
        self.0.get(probe as usize).copied().unwrap_or(false)
    }

    /// Whether it is new.
    fn add(&mut self, probe: u32) -> bool {
        if self.0.len() <= probe as usize {
            self.0.resize(probe as usize + 1, false);
        }
        !std::mem::replace(&mut self.0[probe as usize], true)
    }
}

struct Instance<'w> {
    work: &'w Workload,
    /// The next hit (not begun yet: the highest number), and how much later than without probes.
    next: usize,
    delay: u64,
    heard: Probes,
    buffer: Vec<u32>,
    last_sent: u64,
    done: RunOutcome,
}

struct World<'w> {
    technique: Technique,
    costs: Costs,
    instances: Vec<Instance<'w>>,
    /// When each instance goes on.
    events: BinaryHeap<Reverse<(u64, usize)>>,
    server: Probes,
    free_at: u64,
    known: u64,
    covered: Probes,
    coverage: Vec<(u64, u64)>,
}

impl<'w> World<'w> {
    fn new(workloads: &'w [Workload], technique: Technique, costs: Costs) -> Self {
        let instance = |work| Instance {
            work,
            next: 0,
            delay: 0,
            heard: Probes::default(),
            buffer: Vec::new(),
            last_sent: 0,
            done: RunOutcome::default(),
        };
        Self {
            technique,
            costs,
            instances: workloads.iter().map(instance).collect(),
            events: BinaryHeap::new(),
            server: Probes::default(),
            free_at: 0,
            known: 0,
            covered: Probes::default(),
            coverage: Vec::new(),
        }
    }

    /// All instances, each from its start; a start is an event, so that nobody is served too early.
    fn run(&mut self, starts: &[u64]) {
        for (instance, &start) in starts.iter().enumerate() {
            self.start(instance, start);
        }
        self.settle();
    }

    fn start(&mut self, instance: usize, at: u64) {
        self.instances[instance].done.start = at;
        self.instances[instance].next = usize::MAX;
        self.events.push(Reverse((at, instance)));
    }

    fn settle(&mut self) {
        while let Some(Reverse((now, instance))) = self.events.pop() {
            self.wake(instance, now);
        }
    }

    fn policy(&self) -> Option<Policy> {
        match self.technique {
            Technique::Collective(policy) => Some(policy),
            _ => None,
        }
    }

    /// What `instance` does at time `now`: begin, a hit, a request that is due, or end.
    fn wake(&mut self, instance: usize, now: u64) {
        let policy = self.policy();
        let is_due = self.is_due(instance, now);
        let this = &mut self.instances[instance];
        if this.next == usize::MAX {
            this.next = 0;
            this.last_sent = now;
            if policy.is_some_and(|policy| policy.update_at_start) {
                self.contact(instance, now, true);
            }
        } else if is_due {
            let hears = policy.is_some_and(|policy| policy.piggyback);
            self.contact(instance, now, hears);
        } else if let Some(hit) = this.work.hits.get(this.next).copied() {
            if now < this.wall(hit.at) {
                return self.schedule(instance);
            }
            this.next += 1;
            self.hit(instance, now, hit);
        } else if now >= this.wall(this.work.length) {
            return self.end(instance, now);
        }
        self.schedule(instance);
    }

    fn is_due(&self, instance: usize, now: u64) -> bool {
        let this = &self.instances[instance];
        let since = now.saturating_sub(this.last_sent);
        self.policy()
            .is_some_and(|policy| policy.is_due(this.buffer.len(), since))
    }

    fn hit(&mut self, instance: usize, now: u64, hit: super::Hit) {
        let Costs {
            probe,
            removal,
            skip,
            ..
        } = self.costs;
        let this = &mut self.instances[instance];
        let cost = match self.technique {
            Technique::Bare => return,
            Technique::Lasting => probe.saturating_mul(hit.times),
            Technique::Local => probe.saturating_add(removal),
            Technique::Collective(_) if this.heard.has(hit.probe) => {
                this.done.skipped += 1;
                this.delay = this.delay.saturating_add(skip);
                return;
            }
            Technique::Collective(_) => {
                this.buffer.push(hit.probe);
                probe.saturating_add(removal)
            }
        };
        this.heard.add(hit.probe);
        this.done.recorded += 1;
        this.delay = this.delay.saturating_add(cost);
        if self.covered.add(hit.probe) {
            let before = self.coverage.last().map_or(0, |&(_, count)| count);
            self.coverage.push((now, before + 1));
        }
    }

    /// Sends what is in the buffer, and hears what the server knows once that has been served.
    fn contact(&mut self, instance: usize, now: u64, hears: bool) {
        let served = self.free_at.max(now).saturating_add(self.costs.service);
        self.free_at = served;
        let this = &mut self.instances[instance];
        for probe in this.buffer.drain(..) {
            self.known += u64::from(self.server.add(probe));
        }
        if hears {
            // All that it recorded itself is known to the server by now.
            this.heard = self.server.clone();
        }
        let answered = served.saturating_add(self.costs.latency);
        this.done.contacts += 1;
        this.done.waited += answered - now;
        this.delay = this.delay.saturating_add(answered - now);
        this.last_sent = answered;
    }

    fn end(&mut self, instance: usize, now: u64) {
        let flush = self.policy().is_some_and(|policy| policy.flush_at_end);
        let mut end = now;
        if flush && !self.instances[instance].buffer.is_empty() {
            let before = self.instances[instance].delay;
            self.contact(instance, now, false);
            end = now.saturating_add(self.instances[instance].delay - before);
        }
        self.instances[instance].done.end = end;
    }

    /// Puts the next thing that `instance` does on the calendar.
    fn schedule(&mut self, instance: usize) {
        let this = &self.instances[instance];
        let next = this.work.hits.get(this.next);
        let planned = this.wall(next.map_or(this.work.length, |hit| hit.at.min(this.work.length)));
        let due = match self.policy().map(|policy| policy.send) {
            Some(Trigger::Interval(length)) => this.last_sent.saturating_add(length.max(1)),
            Some(Trigger::Buffer(size)) if this.buffer.len() >= size.get() as usize => 0,
            _ => u64::MAX,
        };
        self.events.push(Reverse((
            planned.min(due.max(self.now(instance))),
            instance,
        )));
    }

    /// The earliest time at which `instance` can do anything: behind its last hit.
    fn now(&self, instance: usize) -> u64 {
        let this = &self.instances[instance];
        let done = this
            .next
            .checked_sub(1)
            .and_then(|last| this.work.hits.get(last));
        this.wall(done.map_or(0, |hit| hit.at))
    }

    fn outcome(self) -> Outcome {
        Outcome {
            runs: self.instances.iter().map(|this| this.done).collect(),
            coverage: self.coverage,
            known: self.known,
        }
    }
}

impl Instance<'_> {
    /// The time on the wall at which the run is at `own` of its own time.
    fn wall(&self, own: u64) -> u64 {
        let own = self.done.start.saturating_add(own);
        own.saturating_add(self.delay)
    }
}
