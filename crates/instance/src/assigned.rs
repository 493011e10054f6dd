//! What the collector says is to be observed, checked against the program that is here.
//!
//! An assignment names plans and units, and nothing else of it is used. It is accepted as a whole or not at
//! all: each plan must be the one that weaving the program's own file gives here, and each unit one of its
//! probes. So the most that a collector can bring about is that fewer probes are armed than are safe.

use tomo_launch::How;
use tomo_protocol::{AssignedModule, Assignment, CHAINS, News, PATHS, Units, is_counted, paths};
use tomo_weave::Placement;
use tomo_wire::plan::Level;
use tomo_wire::report::name_of_plans;
use zerocopy::little_endian::U64;

/// Modules of one assignment at most.
const MOST_MODULES: usize = 256;

/// Why an assignment is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAccepted {
    /// It contradicts itself, or holds what none holds.
    #[error("the collector's assignment is none: {0}")]
    Hostile(&'static str),
    /// The program has no module of this build.
    #[error(
        "the campaign observes another build: the program loads no module {0} at its start; a build of its own has a campaign of its own (`tomo campaign new`), and a module that comes later is to be named (--module PATH)"
    )]
    OtherBuild(String),
    /// It may have, but one of its modules could not be looked at.
    #[error("whether the program is of the campaign's build cannot be told: {0}")]
    Unread(String),
    /// The module is the one, but woven otherwise.
    #[error(
        "the plan of {0} is not the collector's: the campaign was made with another version of tomo than this one, {version}; begin one with this version (`tomo campaign new`), or run the program with that one",
        version = env!("CARGO_PKG_VERSION")
    )]
    OtherVersion(String),
    /// Nothing is there in the program that would do it.
    #[error(
        "the campaign takes an agent in the program, and none can be loaded into one that is linked statically; in such programs functions, blocks and edges are observed (`tomo campaign new --level`)"
    )]
    TakesAgent,
}

/// What is observed of a module.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// Its functions, blocks or edges.
    Probes(How),
    /// Its predicates.
    Predicates,
    /// How often its acyclic paths run.
    Paths,
    /// By which chains of calls its functions are called.
    Chains,
}

impl What {
    /// Whether it is no matter of the image alone.
    pub(crate) fn takes_agent(&self) -> bool {
        !matches!(self, Self::Probes(_))
    }
}

/// An assignment that says nothing impossible.
#[derive(Clone, Debug)]
pub(crate) struct Sound {
    /// What is observed of each module.
    pub(crate) what: Vec<What>,
    /// Units of the campaign.
    pub(crate) units: u32,
}

/// Checks all that can be checked without the program.
pub(crate) fn check(assignment: &Assignment) -> Result<Sound, NotAccepted> {
    let hostile = |what| Err(NotAccepted::Hostile(what));
    let modules = &assignment.modules;
    if modules.is_empty() || modules.len() > MOST_MODULES {
        return hostile("it has no modules, or too many");
    }
    if !modules.iter().all(|module| paths::is_stem(&module.stem)) {
        return hostile("it names a module by no build");
    }
    let names: Vec<U64> = modules.iter().map(|module| module.plan.0.into()).collect();
    if name_of_plans(&names) != assignment.plans.0 {
        return hostile("its plans have another name");
    }
    let add = |sum: u32, module: &AssignedModule| sum.checked_add(module.probes);
    let Some(units) = modules.iter().try_fold(0, add) else {
        return hostile("it has too many units");
    };
    if !assignment.units.are_below(units) {
        return hostile("it assigns units that there are not");
    }
    let what: Option<Vec<What>> = modules.iter().map(what).collect();
    let Some(what) = what else {
        return hostile("it observes what cannot be observed");
    };
    if what.len() > 1 && modules.iter().any(|one| is_counted(&one.level)) {
        return hostile("it counts in several modules");
    }
    Ok(Sound { what, units })
}

fn what(module: &AssignedModule) -> Option<What> {
    match (module.level.as_str(), module.placement.as_str()) {
        ("predicate", "all") => Some(What::Predicates),
        (PATHS, "all") => Some(What::Paths),
        (CHAINS, "all") => Some(What::Chains),
        _ => how(module).map(What::Probes),
    }
}

fn how(module: &AssignedModule) -> Option<How> {
    let level = Level::ALL
        .into_iter()
        .find(|one| one.name() == module.level);
    let placements = [Placement::All, Placement::Reduced].into_iter();
    let mut placement = placements.filter(|one| one.name() == module.placement);
    Some(How {
        level: level?,
        placement: placement.next()?,
        stays: false,
    })
}

/// The units in `news`, if there are so many units; `None` where it names others.
pub(crate) fn units_of(news: &News, units: u32) -> Option<&Units> {
    news.units.are_below(units).then_some(&news.units)
}

#[cfg(test)]
mod tests {
    use super::{NotAccepted, check};
    use tomo_protocol::{AssignedModule, Assignment, CampaignId, Name, News, Policy, Units};
    use tomo_wire::report::name_of_plans;

    fn assignment() -> Assignment {
        let module = |plan, probes| AssignedModule {
            stem: format!("{plan:016x}-00"),
            level: "block".into(),
            placement: "all".into(),
            plan: Name(plan),
            probes,
        };
        Assignment {
            campaign: CampaignId([1; 16]),
            plans: Name(name_of_plans(&[5.into(), 6.into()])),
            modules: vec![module(5, 10), module(6, 20)],
            variant: 3,
            units: Units::of([0, 9, 29]),
            policy: Policy::default(),
            interval_ms: 1000,
            news: News {
                epoch: Name(0),
                upto: 0,
                units: Units::default(),
            },
        }
    }

    #[test]
    fn a_sound_assignment_is_accepted() {
        let sound = check(&assignment()).unwrap();
        assert_eq!((sound.units, sound.what.len()), (30, 2));
    }

    #[test]
    fn whatever_is_impossible_is_refused() {
        type Change = fn(&mut Assignment);
        let changes: [Change; 9] = [
            |a| {
                a.modules[1].level = "path".into();
            },
            |a| a.units = Units::of([30]),
            |a| a.units = Units::below(u32::MAX),
            |a| a.modules.clear(),
            |a| a.modules[0].stem = "../../etc".into(),
            |a| a.modules[0].level = "everything".into(),
            |a| a.modules[1].placement = String::new(),
            |a| a.plans = Name(1),
            |a| a.modules[0].probes = u32::MAX,
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut changed = assignment();
            change(&mut changed);
            let refused = check(&changed).unwrap_err();
            assert!(matches!(refused, NotAccepted::Hostile(_)), "{number}");
        }
    }
}
