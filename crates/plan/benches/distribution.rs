//! How long the distribution of probes takes, on events made like call chains: walks through a
//! random acyclic graph of locations, which share their beginnings and their ends.
//!
//! Prints one JSON object a line, with the promise that it is held against if there is one; seconds are
//! the processor's. Run by `cargo bench -p tomo-plan --bench distribution` (with `-- small` or
//! `-- large` only that case), and with all others by `cargo xtask bench plan`.

use tomo_plan::distribution::{
    Bound, Climb, Climbed, Climber, Packing, Repeats, UnitId, UnitSets, balanced_probes, greedy,
    random_sets,
};
use tomo_plan::random::Random;
use tomo_testkit::clock;

const SMALL: Case = Case {
    name: "5,000 events over 8,000 locations, 36 variants of 450 probes",
    events: 5_000,
    units: 8_000,
    variants: 36,
};
const LARGE: Case = Case {
    name: "100,000 events over 150,000 locations, 1,000 variants of 450 probes",
    events: 100_000,
    units: 150_000,
    variants: 1_000,
};
const PROBES: u64 = 450;
const SEED: u64 = 2006;

struct Case {
    name: &'static str,
    events: usize,
    units: usize,
    variants: usize,
}

fn main() {
    // Cargo passes --bench, and `cargo test --benches` passes nothing: then there is nothing to do.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let bound = Bound::probes(PROBES);
    let asked = |name: &str| std::env::args().any(|argument| argument == name);
    if !asked("large") {
        small(&bound);
    }
    if !asked("small") {
        large(&bound);
    }
}

fn small(bound: &Bound) {
    let events = SMALL.events();
    for (name, climb) in climbs() {
        let what = format!("hill climb {name}: {}", SMALL.name);
        let climbed = timed(&what, Some("< 10 s"), || SMALL.climb(&events, bound, climb));
        moves(&what, &climbed);
        let what = format!("Algorithm 2 alone, {name}: {}", SMALL.name);
        let climbed = timed(&what, Some("< 10 s"), || {
            SMALL.algorithm_2(&events, bound, climb)
        });
        moves(&what, &climbed);
    }
    let printed = Climb {
        packing: Packing::Printed,
        ..Climb::BALANCED_PACKED
    };
    let what = format!(
        "hill climb Balanced-Packed, PACKING as printed: {}",
        SMALL.name
    );
    timed(&what, None, || SMALL.algorithm_2(&events, bound, printed));
    others(&SMALL, &events, bound);
}

fn large(bound: &Bound) {
    let events = LARGE.events();
    for (name, climb) in climbs() {
        let what = format!("hill climb {name}: {}", LARGE.name);
        let climbed = timed(&what, Some("< 300 s"), || {
            LARGE.climb(&events, bound, climb)
        });
        moves(&what, &climbed);
    }
    others(&LARGE, &events, bound);
    line(
        &format!("peak memory of all: {}", LARGE.name),
        peak_megabytes(),
        "MB",
        Some("< 2000 MB"),
    );
}

fn climbs() -> [(&'static str, Climb); 3] {
    [
        ("Balanced", Climb::BALANCED),
        ("Packed", Climb::PACKED),
        ("Balanced-Packed", Climb::BALANCED_PACKED),
    ]
}

fn others(case: &Case, events: &UnitSets, bound: &Bound) {
    let variants = case.variants;
    timed(&format!("random events: {}", case.name), None, || {
        random_sets(events, bound, variants, SEED).expect("a sound case")
    });
    timed(&format!("balanced probes: {}", case.name), None, || {
        balanced_probes(case.units, bound, variants, SEED).expect("a sound case")
    });
    let what = format!("greedy: {}", case.name);
    let weights = vec![1 << 20; events.len()];
    let found = timed(&what, None, || {
        greedy(events, &weights, bound, variants, Repeats::Halved).expect("a sound case")
    });
    line(
        &format!("proven share of the optimum, {what}"),
        found.proven_share(),
        "",
        None,
    );
}

impl Case {
    fn events(&self) -> UnitSets {
        let mut random = Random::new(SEED);
        let reach = self.units / 4;
        let successors: Vec<[usize; 3]> = (0..self.units)
            .map(|from| [(); 3].map(|()| from + 1 + random.below(reach)))
            .collect();
        let events = (0..self.events).map(|_| {
            let mut at = random.below(self.units / 20);
            let mut walk = Vec::new();
            while at < self.units {
                walk.push(UnitId(at as u32));
                at = successors[at][random.below(3)];
            }
            walk
        });
        UnitSets::new(self.units, events).expect("walks stay inside")
    }

    /// A climb from a greedy start, which counts.
    fn climb(&self, events: &UnitSets, bound: &Bound, climb: Climb) -> Climbed {
        let weights = vec![1 << 20; events.len()];
        let start = greedy(events, &weights, bound, self.variants, Repeats::Halved);
        let start = start.expect("a sound case").distribution;
        let climber = Climber::from(&start, events, bound, climb, SEED);
        climber.expect("a sound case").run()
    }

    /// A climb as Algorithm 2 has it: from a random start, by drawn moves alone.
    fn algorithm_2(&self, events: &UnitSets, bound: &Bound, climb: Climb) -> Climbed {
        let climb = Climb {
            look_after: None,
            ..climb
        };
        let climber = Climber::new(events, bound, self.variants, climb, SEED);
        climber.expect("a sound case").run()
    }
}

fn moves(what: &str, climbed: &Climbed) {
    line(
        &format!("moves of the {what}"),
        climbed.moves as f64,
        "",
        None,
    );
    line(
        &format!("good ones of the {what}"),
        climbed.good_moves as f64,
        "",
        None,
    );
    line(
        &format!("cost after the {what}"),
        climbed.cost.value(),
        "",
        None,
    );
}

fn timed<T>(what: &str, promise: Option<&str>, run: impl FnOnce() -> T) -> T {
    let (result, seconds) = clock::timed(run).expect("the kernel tells");
    line(what, seconds, "s", promise);
    result
}

fn line(what: &str, value: f64, unit: &str, promise: Option<&str>) {
    let promise = promise.map_or_else(|| "null".into(), |promise| format!("\"{promise}\""));
    println!(
        r#"{{"bench":"distribution","what":"{what}","value":{value},"unit":"{unit}","promise":{promise}}}"#
    );
}

/// The most memory that this process has held, by the kernel's word.
fn peak_megabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.and_then(|peak| peak.trim().strip_suffix(" kB"));
    kilobytes
        .and_then(|number| number.trim().parse::<f64>().ok())
        .expect("a number")
        / 1024.0
}
