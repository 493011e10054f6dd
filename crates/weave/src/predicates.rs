//! Which predicates a program has, and what observes each (ABI §2.1): branches, and the signs of results.
//!
//! Where it is asked whether they were ever true, branches are observed by probes that vanish, and as little is executed
//! elsewhere as can be (`predicates/vanishing.rs`). Where they are counted, and in modules that may not trap, a function
//! with predicates that are asked for is executed elsewhere as a whole, with counters, or marks, on the ways
//! of its branches and behind its calls; one in which few are asked for stays in place if each of them finds
//! room there. What cannot be observed has its row nevertheless, with the reason.

mod branched;
mod implied;
pub(crate) mod looks;
mod places;
mod sites;
mod vanishing;
mod weaver;

use std::collections::{HashMap, HashSet};

use rayon::prelude::*;
use tomo_program::{Address, FunctionView, Graphs, Range, Status};
use tomo_wire::plan::Tactic;
use tomo_wire::predicates::{Kind, Recorded, Row, Told};

use crate::place::{Surroundings, Unit};
use crate::settle::settle;
use crate::staying::action::{Action, Once, What};
use crate::staying::class::Class;
use crate::staying::code::{Code, Wants};
use crate::staying::live::{Liveness, Set};
use crate::staying::region::{Call, Passage, Region};
use crate::staying::split::Split;
use crate::staying::whole::MovedBlocks;
use crate::tactics::hop;
use crate::window::Window;
use looks::Widths;
use places::{Named, Place, Places};
use sites::Site;
use vanishing::{ByBranch, Look, Spread, Subject, Way};
pub use weaver::{PredicateWeaver, WovenPredicates};

/// Which predicates are asked for: all, or some by kind, site and case.
#[derive(Clone, Debug, Default)]
pub enum Asked {
    /// All of them.
    #[default]
    All,
    /// These.
    Some(HashSet<(Kind, u64, u8)>),
}

impl Asked {
    fn has(&self, site: &Site, case: u8) -> bool {
        match self {
            Self::All => true,
            Self::Some(some) => some.contains(&(site.kind, site.address.0, case)),
        }
    }

    fn has_any(&self, site: &Site) -> bool {
        (0..site.kind.cases()).any(|case| self.has(site, case))
    }

    /// Where the sites are that are asked for, if it is not all of them.
    fn sites(&self) -> Option<HashSet<u64>> {
        match self {
            Self::All => None,
            Self::Some(some) => Some(some.iter().map(|(_, site, _)| *site).collect()),
        }
    }
}

/// What is to be recorded of which predicates.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Which ones.
    pub asked: Asked,
    /// What of them.
    pub recorded: Recorded,
}

/// The predicates of some functions.
#[derive(Debug, Default)]
pub(crate) struct Planned {
    pub(crate) rows: Vec<Row>,
    pub(crate) regions: Vec<Region>,
    pub(crate) calls: Vec<Call>,
    /// Probes that vanish; theirs are the first marks.
    pub(crate) units: Vec<Unit>,
    /// Marks or counters.
    pub(crate) probes: u32,
    /// The row of which each unit tells, by what the unit names.
    told: Vec<usize>,
    /// Rows of which another one's mark tells, and which row that is.
    shared: Vec<(usize, usize)>,
    /// Filling that units may have.
    gaps: Vec<Range>,
}

impl Planned {
    fn append(&mut self, other: Self) {
        let (rows, probes) = (self.rows.len() as u32, self.probes);
        self.rows.extend(other.rows.into_iter().map(|mut row| {
            row.by = match row.told() {
                Some(Told::Itself) => row.by.get() + probes,
                Some(Told::BySite) => row.by.get() + rows,
                _ => 0,
            }
            .into();
            row
        }));
        let units = self.told.len() as u32;
        for mut region in other.regions {
            region.renumber(probes);
            region.mark_units(|unit| Some(What::Also(units + unit)));
            self.regions.push(region);
        }
        self.calls.extend(other.calls);
        self.probes += other.probes;
        let units = other.units.into_iter().map(|unit| Unit {
            tells: unit.tells + units,
            ..unit
        });
        self.units.extend(units);
        let told = other.told.into_iter().map(|row| rows as usize + row);
        self.told.extend(told);
        let shared = other.shared.into_iter();
        let first = rows as usize;
        self.shared
            .extend(shared.map(|(row, by)| (first + row, first + by)));
        self.gaps.extend(other.gaps);
    }

    /// Gives all units their windows, and numbers marks: first those of units, by window.
    fn settle(&mut self) {
        self.gaps.sort_unstable_by_key(|gap| gap.start());
        let kept = self.kept();
        let units = settle(&mut self.units, &self.gaps, &kept, true);
        let vanishes: HashSet<usize> = self.told.iter().copied().collect();
        for (at, row) in self.rows.iter_mut().enumerate() {
            if row.told() == Some(Told::Itself) && !vanishes.contains(&at) {
                row.by = (row.by.get() + units as u32).into();
            }
        }
        for (mark, unit) in (0..).zip(&self.units) {
            let row = &mut self.rows[self.told[unit.tells as usize]];
            let (told, by) = match (mark as usize) < units {
                true => (Told::Itself, mark),
                false => (Told::NoPlace, 0),
            };
            (row.told, row.by) = (told as u8, by.into());
        }
        for &(row, by) in &self.shared {
            (self.rows[row].told, self.rows[row].by) = (self.rows[by].told, self.rows[by].by);
        }
        self.units.truncate(units);
        let marks = (0..).zip(&self.units);
        let marks: HashMap<u32, u32> = marks.map(|(mark, unit)| (unit.tells, mark)).collect();
        for region in &mut self.regions {
            region.renumber(units as u32);
            region.mark_units(|unit| marks.get(&unit).map(|mark| What::Mark(*mark)));
        }
        self.probes += units as u32;
    }

    /// What is changed for good, by address.
    fn kept(&self) -> Vec<Window> {
        let entrances = self.regions.iter().flat_map(|region| &region.entrances);
        let entrances = entrances.flat_map(|entrance| match entrance.by {
            None => [Some(Window::new(entrance.at, Tactic::Staying)), None],
            Some(by) => [
                Some(Window::new(entrance.at, hop::tactic(entrance.at))),
                Some(Window::new(by, Tactic::Staying)),
            ],
        });
        let calls = self.calls.iter();
        let calls = calls.map(|call| Window::new(call.address, Tactic::Staying));
        let leads = self.regions.iter().flat_map(|region| &region.leads);
        let leads = leads.map(|lead| Window::new(lead.from, Tactic::Retarget));
        let mut kept: Vec<Window> = entrances.flatten().chain(calls).chain(leads).collect();
        kept.sort_unstable_by_key(|window| window.start);
        kept
    }
}

/// What is the same for all that can be asked of a module.
pub(crate) struct Common<'g> {
    live: Liveness<'g>,
    named: Named,
    /// Of each function, in order.
    functions: Vec<Sites>,
}

/// The sites of a function, and its rows where nobody asks for any.
struct Sites {
    sites: Vec<Site>,
    unasked: Vec<Row>,
}

impl<'g> Common<'g> {
    /// That of this module. Linear, on all processors.
    pub(crate) fn of(around: &Surroundings<'_>, graphs: &Graphs<'g>) -> Self {
        let widths = Widths::of(around.text, graphs);
        let functions: Vec<_> = graphs.functions().collect();
        let functions = functions.par_iter().with_min_len(64);
        let functions = functions.map(|function| {
            let sites = sites::of(around.text, function, &widths);
            Sites {
                unasked: unobserved(&sites, |_| Told::Unasked).rows,
                sites,
            }
        });
        Self {
            live: Liveness::of(around.text, graphs),
            named: Named::of(around.binary),
            functions: functions.collect(),
        }
    }
}

/// The predicates of all functions, in order. `traps`: whether an `int3` may be met in the module.
pub(crate) fn all(
    around: &Surroundings<'_>,
    graphs: &Graphs<'_>,
    common: &Common<'_>,
    wanted: &Wanted,
    traps: bool,
) -> Planned {
    let planner = Planner {
        around,
        live: &common.live,
        named: &common.named,
        wanted,
        vanish: traps && wanted.recorded == Recorded::Marks,
    };
    let named = wanted.asked.sites();
    let is_asked = |site: &Site| {
        named
            .as_ref()
            .is_none_or(|sites| sites.contains(&site.address.0))
    };
    let functions: Vec<_> = graphs.functions().zip(&common.functions).collect();
    let chunks = functions.par_chunks(64).map(|functions| {
        let mut planned = Planned::default();
        for (function, known) in functions {
            match known.sites.iter().any(is_asked) {
                true => planned.append(planner.function(function, &known.sites)),
                false => planned.rows.extend_from_slice(&known.unasked),
            }
        }
        planned
    });
    let mut all = Planned::default();
    for chunk in chunks.collect::<Vec<Planned>>() {
        all.append(chunk);
    }
    all.settle();
    all
}

struct Planner<'p> {
    around: &'p Surroundings<'p>,
    live: &'p Liveness<'p>,
    named: &'p Named,
    wanted: &'p Wanted,
    /// Whether what tells of branches is to vanish.
    vanish: bool,
}

/// A function stays in place where at most one in so many blocks has a site that is asked for.
const FEW: usize = 8;

impl Planner<'_> {
    fn function(&self, function: &FunctionView<'_>, sites: &[Site]) -> Planned {
        let asked = |site: &&Site| self.wanted.asked.has_any(site);
        let count = sites.iter().filter(asked).count();
        if count == 0 {
            return unobserved(sites, |_| Told::Unasked);
        }
        let exact = function.status() == Status::Exact;
        let blocks = function
            .blocks()
            .map(|block| Code::of(self.around, self.live, &block));
        let codes: Option<Vec<Code<'_>>> = blocks.collect();
        let Some(codes) = codes.filter(|_| exact) else {
            return unobserved(sites, |site| match asked(&site) {
                true => Told::Unknown,
                false => Told::Unasked,
            });
        };
        let around = (self.around, self.named);
        let placed = |places: &Places<'_, '_>| -> Vec<Option<Place>> {
            let place = |site| places.place(site).filter(|_| asked(&site));
            sites.iter().map(place).collect()
        };
        if !self.vanish && count * FEW <= codes.len() {
            let none = MovedBlocks::none(codes.len());
            let places = Places::of(around, function, &codes, &none);
            let placed = placed(&places);
            if placed.iter().flatten().count() == count {
                return self.observed(function, sites, &places, &placed);
            }
        }
        let moved = MovedBlocks::of(self.around, function, &codes);
        let places = Places::of(around, function, &codes, &moved);
        let placed = placed(&places);
        match self.vanish {
            true => self.vanishing(function, sites, &places, placed),
            false => self.observed(function, sites, &places, &placed),
        }
    }

    /// The predicates of a function that can be touched, each observed by what stays.
    fn observed(
        &self,
        function: &FunctionView<'_>,
        sites: &[Site],
        places: &Places<'_, '_>,
        placed: &[Option<Place>],
    ) -> Planned {
        let implied = self.implied(function, sites, places, placed);
        let observing = Observing {
            sites,
            placed,
            implied: &implied,
            asked: &self.wanted.asked,
        };
        observing.all(Made::of(self.wanted.recorded, places, None))
    }

    /// The predicates of a function that can be touched, where branches are observed by what vanishes. `places` are those
    /// there are if all of it is moved.
    fn vanishing(
        &self,
        function: &FunctionView<'_>,
        sites: &[Site],
        places: &Places<'_, '_>,
        placed: Vec<Option<Place>>,
    ) -> Planned {
        let implied = self.implied(function, sites, places, &placed);
        let needs = |number: usize, case: u8| {
            let asked = |site: &Site| match site.kind {
                Kind::Branch => self.wanted.asked.has(site, case),
                Kind::Result => self.wanted.asked.has_any(site),
            };
            let told = implied.contains_key(&(number, case.into()));
            placed[number].is_some() && asked(&sites[number]) && !told
        };
        let subject = Subject {
            around: (self.around, self.named),
            function,
            codes: places.codes,
            sites,
            needs: &needs,
        };
        let spread = subject.spread();
        let observing = |placed| Observing {
            sites,
            placed,
            implied: &implied,
            asked: &self.wanted.asked,
        };
        let Some(spread) = spread else {
            let made = Made::of(self.wanted.recorded, places, None);
            return observing(&placed).all(made);
        };
        let around = (self.around, self.named);
        let fewer = Places::of(around, function, places.codes, &spread.moved);
        let each = sites.iter().zip(&placed);
        let placed: Vec<Option<Place>> = each
            .enumerate()
            .map(|(number, (site, place))| match site.kind {
                Kind::Branch => *place,
                Kind::Result if spread.told.contains_key(&number) => Some(Place::Branch),
                Kind::Result => place.and_then(|_| fewer.place(site)),
            })
            .collect();
        let made = Made::of(self.wanted.recorded, &fewer, Some(&spread));
        observing(&placed).all(made)
    }

    /// What needs no probe, since another site tells.
    fn implied(
        &self,
        function: &FunctionView<'_>,
        sites: &[Site],
        places: &Places<'_, '_>,
        placed: &[Option<Place>],
    ) -> Implied {
        // What is cut short could be one off; each is counted by itself.
        if self.wanted.recorded == Recorded::Counts {
            return Implied::default();
        }
        let whole = |number: usize| {
            let site = &sites[number];
            let mut cases = 0..site.kind.cases();
            cases.all(|case| self.wanted.asked.has(site, case)) && placed[number].is_some()
        };
        implied::told((self.around.ways, places), function, sites, whole)
    }
}

/// The site that tells, by site and side.
type Implied = HashMap<(usize, implied::Side), usize>;

/// How each of a function's predicates is told.
struct Observing<'o> {
    sites: &'o [Site],
    placed: &'o [Option<Place>],
    implied: &'o Implied,
    asked: &'o Asked,
}

impl Observing<'_> {
    /// All of them, and what is `made` for them.
    fn all(&self, mut made: Made<'_, '_>) -> Planned {
        let mut planned = Planned::default();
        for (number, site) in self.sites.iter().enumerate() {
            debug_assert_eq!(planned.rows.len(), first_row(self.sites, number) as usize);
            made.site(site, self.placed[number], planned.probes);
            for case in 0..site.kind.cases() {
                let (told, by) = self.told(number, case);
                let by = match told {
                    Told::Itself => made.case((number, site), case, &mut planned),
                    _ => by,
                };
                planned.rows.push(row(site, case, (told, by)));
            }
        }
        made.finish(&mut planned);
        planned
    }

    fn told(&self, number: usize, case: u8) -> (Told, u32) {
        let site = &self.sites[number];
        let by_site = self.implied.get(&(number, case.into()));
        match (self.placed[number], by_site) {
            _ if !self.asked.has(site, case) && site.kind == Kind::Branch => (Told::Unasked, 0),
            _ if !self.asked.has_any(site) => (Told::Unasked, 0),
            (None, _) => (Told::NoPlace, 0),
            (_, Some(&by)) => (Told::BySite, first_row(self.sites, by)),
            _ => (Told::Itself, 0),
        }
    }
}

/// The number of a site's first row.
fn first_row(sites: &[Site], number: usize) -> u32 {
    let before = sites.iter().take(number);
    before.map(|site| u32::from(site.kind.cases())).sum()
}

fn unobserved(sites: &[Site], why: impl Fn(&Site) -> Told) -> Planned {
    let rows = sites.iter().flat_map(|site| {
        let why = why(site);
        (0..site.kind.cases()).map(move |case| row(site, case, (why, 0)))
    });
    Planned {
        rows: rows.collect(),
        ..Planned::default()
    }
}

fn row(site: &Site, case: u8, (told, by): (Told, u32)) -> Row {
    Row {
        site: site.address.0.into(),
        block: site.start.0.into(),
        by: by.into(),
        kind: site.kind as u8,
        case,
        width: site.width,
        told: told as u8,
    }
}

/// What is made so that a function's predicates are observed.
struct Made<'p, 'f> {
    recorded: Recorded,
    places: &'p Places<'p, 'f>,
    /// Where what vanishes is, if it is to.
    spread: Option<&'p Spread>,
    wants: Vec<Wants>,
    passages: Vec<Passage>,
    leads: Vec<Passage>,
}

impl<'p, 'f> Made<'p, 'f> {
    fn of(recorded: Recorded, places: &'p Places<'p, 'f>, spread: Option<&'p Spread>) -> Self {
        Self {
            recorded,
            places,
            spread,
            wants: vec![Wants::default(); places.codes.len()],
            passages: Vec::new(),
            leads: Vec::new(),
        }
    }

    /// The passage of a result, whose marks or counters are numbered from `first` on.
    fn site(&mut self, site: &Site, place: Option<Place>, first: u32) {
        let codes = self.places.codes;
        let behind = codes.iter().find(|code| code.start() == site.address);
        let (from, to, live) = match (place, behind) {
            (Some(Place::Entrance), Some(code)) => {
                (site.address, site.address, code.live_at_start())
            }
            (Some(Place::Call { address, callee }), Some(code)) => {
                (address, callee, code.live_at_call())
            }
            _ => return,
        };
        let what = What::Class(Class {
            bits: 8 << (site.width & 3),
            first,
            counts: self.recorded == Recorded::Counts,
        });
        self.passages.push(Passage {
            from,
            to,
            actions: vec![Action::of(what, live)],
        });
    }

    /// What observes the next predicate of the plan: the mark or counter, but for units, which are numbered later.
    fn case(&mut self, (number, site): (usize, &Site), case: u8, planned: &mut Planned) -> u32 {
        let way = self.spread.and_then(|spread| {
            let way = spread.ways.get(&(number, case))?;
            Some((spread, *way))
        });
        if let Some((spread, Way::Unit(unit))) = way {
            let tells = planned.told.len() as u32;
            if spread.also.contains(&number) && case == 0 {
                self.wants[site.block].taken.push(What::Also(tells));
            }
            planned.units.push(Unit {
                tells,
                ..spread.placed.units[unit]
            });
            planned.told.push(planned.rows.len());
            return 0;
        }
        let told = self.spread.and_then(|spread| spread.told.get(&number));
        if let Some(told) = told {
            return self.by_branch(told, case, planned);
        }
        let mark = planned.probes;
        planned.probes += 1;
        let window = self.places.codes[site.block].window_at_end();
        let what = match (self.recorded, way, window) {
            (Recorded::Marks, Some((_, Way::Once | Way::Both)), Some((window, original))) => {
                // The two ways of a branch are numbered one behind the other, the taken one first.
                let other = || if case == 0 { mark + 1 } else { mark - 1 };
                let both = way.is_some_and(|(_, way)| way == Way::Both);
                What::Once(Once {
                    mark,
                    other: both.then(other),
                    window,
                    original,
                })
            }
            (Recorded::Marks, ..) => What::Mark(mark),
            (Recorded::Counts, ..) => What::Count(mark),
        };
        match (site.kind, case, way) {
            (Kind::Result, ..) => {}
            (_, _, Some((_, Way::Start(block)))) => self.wants[block].start.push(what),
            (_, _, Some((spread, Way::Lead(from, to)))) => {
                self.lead((from, to), what);
                if spread.also.contains(&number) {
                    self.wants[site.block].taken.push(what);
                }
            }
            (Kind::Branch, 0, _) => self.wants[site.block].taken.push(what),
            (Kind::Branch, ..) => self.wants[site.block].not_taken.push(what),
        }
        mark
    }

    /// What observes a case of a result of which a branch tells: a mark, unless it is that of a row which stands for it.
    fn by_branch(&mut self, told: &ByBranch, case: u8, planned: &mut Planned) -> u32 {
        let [taken, not_taken] = told.ways;
        let (way, cases) = match taken.has(case) {
            true => (0, taken),
            false => (1, not_taken),
        };
        if cases.count() == 1 {
            let by = told.row as usize + way;
            planned.shared.push((planned.rows.len(), by));
            return 0;
        }
        let mark = planned.probes;
        planned.probes += 1;
        let what = What::Split(Split {
            by_sign: cases.has(0),
            first: mark,
        });
        match told.look {
            _ if case != cases.first() => {}
            Look::Start(block) => self.wants[block].first.push(what),
            Look::Way if way == 0 => self.wants[told.block].taken.insert(0, what),
            Look::Way => self.wants[told.block].not_taken.insert(0, what),
            Look::Lead(from, to) => self.lead((from, to), what),
        }
        mark
    }

    /// Something is done where the displacement at `from` leads, before it goes on to its target.
    fn lead(&mut self, (from, to): (Address, Address), what: What) {
        let action = Action::of(what, Set::ALL);
        match self.leads.iter_mut().find(|lead| lead.from == from) {
            // Only the first finds the flags of the branch.
            Some(lead) if matches!(what, What::Split(_)) => lead.actions.insert(0, action),
            Some(lead) => lead.actions.push(action),
            None => self.leads.push(Passage {
                from,
                to,
                actions: vec![action],
            }),
        }
    }

    fn finish(mut self, planned: &mut Planned) {
        if let Some(spread) = self.spread {
            planned.gaps.extend(&spread.placed.gaps);
        }
        let nothing = self.wants.iter().all(|wants| *wants == Wants::default());
        if nothing && self.passages.is_empty() && self.leads.is_empty() {
            return;
        }
        let mut region = Region::default();
        let (codes, moved) = (self.places.codes, self.places.moved);
        for (block, (code, wants)) in codes.iter().zip(&self.wants).enumerate() {
            if moved.has(block) {
                region.pieces.push(code.whole(wants));
                region.entrances.extend(moved.entrance(block));
            } else if *wants != Wants::default() {
                // It was asked before whether there are any.
                let parts = code.parts(wants).unwrap_or_default();
                planned.regions.extend(parts.into_iter().map(Region::of));
            }
        }
        self.passages.sort_unstable_by_key(|passage| passage.from);
        let by = |call: &Call| {
            let passages = &self.passages;
            passages.binary_search_by_key(&call.address, |one| one.from)
        };
        let calls = codes.iter().filter_map(Code::call);
        // The rest is entered where it begins: that is changed in fewer places.
        let calls = calls.filter(|call| self.spread.is_none() || by(call).is_ok());
        planned.calls.extend(calls);
        region.passages = self.passages;
        region.leads = self.leads;
        planned.regions.push(region);
    }
}
