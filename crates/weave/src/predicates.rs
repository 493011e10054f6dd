//! Which predicates a program has, and what observes each (ABI §2.1): branches, and the signs of results.
//!
//! A function with predicates that are asked for is executed elsewhere as a whole, with marks, or counters, on the ways
//! of its branches and behind its calls. One in which few are asked for stays in place if each of them finds
//! room there. What cannot be observed has its row nevertheless, with the reason.

mod implied;
pub(crate) mod looks;
mod places;
mod sites;

use std::collections::HashSet;

use rayon::prelude::*;
use tomo_program::{FunctionView, Graphs, Status};
use tomo_wire::predicates::{Kind, Recorded, Row, Told};

use crate::place::Surroundings;
use crate::staying::action::{Action, What};
use crate::staying::class::Class;
use crate::staying::code::{Code, Wants};
use crate::staying::live::Liveness;
use crate::staying::region::{Call, Passage, Region};
use crate::staying::whole::MovedBlocks;
use looks::Widths;
use places::{Named, Place, Places};
use sites::Site;

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
    /// Marks or counters.
    pub(crate) probes: u32,
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
        for mut region in other.regions {
            region.renumber(probes);
            self.regions.push(region);
        }
        self.calls.extend(other.calls);
        self.probes += other.probes;
    }
}

/// The predicates of all functions, in order.
pub(crate) fn all(around: &Surroundings<'_>, graphs: &Graphs<'_>, wanted: &Wanted) -> Planned {
    let live = Liveness::of(around.text, graphs);
    let widths = Widths::of(around.text, graphs);
    let named = Named::of(around.binary);
    let planner = Planner {
        around,
        live: &live,
        widths: &widths,
        named: &named,
        wanted,
    };
    let functions: Vec<_> = graphs.functions().collect();
    let chunks = functions.par_chunks(64).map(|functions| {
        let mut planned = Planned::default();
        for function in functions {
            planned.append(planner.function(function));
        }
        planned
    });
    let mut all = Planned::default();
    for chunk in chunks.collect::<Vec<Planned>>() {
        all.append(chunk);
    }
    all
}

struct Planner<'p> {
    around: &'p Surroundings<'p>,
    live: &'p Liveness<'p>,
    widths: &'p Widths,
    named: &'p Named,
    wanted: &'p Wanted,
}

/// A function stays in place where at most one in so many blocks has a site that is asked for.
const FEW: usize = 8;

impl Planner<'_> {
    fn function(&self, function: &FunctionView<'_>) -> Planned {
        let sites = sites::of(self.around.text, function, self.widths);
        let asked = |site: &&Site| self.wanted.asked.has_any(site);
        let count = sites.iter().filter(asked).count();
        if count == 0 {
            return unobserved(function, &sites, |_| Told::Unasked);
        }
        let exact = function.status() == Status::Exact;
        let blocks = function
            .blocks()
            .map(|block| Code::of(self.around, self.live, &block));
        let codes: Option<Vec<Code<'_>>> = blocks.collect();
        let Some(codes) = codes.filter(|_| exact) else {
            return unobserved(function, &sites, |site| match asked(&site) {
                true => Told::Unknown,
                false => Told::Unasked,
            });
        };
        let around = (self.around, self.named);
        if count * FEW <= codes.len() {
            let none = MovedBlocks::none(codes.len());
            let places = Places::of(around, function, &codes, &none);
            let mut wanted = sites.iter().filter(asked);
            if wanted.all(|site| places.place(site).is_some()) {
                return self.observed(function, &sites, &places);
            }
        }
        let moved = MovedBlocks::of(self.around, function, &codes);
        let places = Places::of(around, function, &codes, &moved);
        self.observed(function, &sites, &places)
    }

    /// The predicates of a function that can be touched.
    fn observed(
        &self,
        function: &FunctionView<'_>,
        sites: &[Site],
        places: &Places<'_, '_>,
    ) -> Planned {
        let asked = &self.wanted.asked;
        let placed: Vec<Option<Place>> = sites
            .iter()
            .map(|site| places.place(site).filter(|_| asked.has_any(site)))
            .collect();
        let told = match self.wanted.recorded {
            // What is cut short could be one off; each is counted by itself.
            Recorded::Counts => Default::default(),
            Recorded::Marks => {
                let whole = |site: usize| {
                    let all =
                        (0..sites[site].kind.cases()).all(|case| asked.has(&sites[site], case));
                    all && placed[site].is_some()
                };
                let around = (self.around.ways, places);
                implied::told(around, function, sites, whole)
            }
        };
        let mut made = Made::of(self.wanted.recorded, places);
        let mut planned = Planned::default();
        for (number, (site, place)) in sites.iter().zip(&placed).enumerate() {
            let first = planned.rows.len() as u32;
            debug_assert_eq!(first, first_row(sites, number));
            made.site(site, *place, planned.probes);
            for case in 0..site.kind.cases() {
                let by_site = told.get(&(number, case.into()));
                let (told, by) = match (place, by_site) {
                    _ if !asked.has(site, case) && site.kind == Kind::Branch => (Told::Unasked, 0),
                    _ if !asked.has_any(site) => (Told::Unasked, 0),
                    (None, _) => (Told::NoPlace, 0),
                    (_, Some(&by)) => (Told::BySite, first_row(sites, by)),
                    _ => (Told::Itself, planned.probes),
                };
                if told == Told::Itself {
                    made.case(site, case, planned.probes);
                    planned.probes += 1;
                }
                planned.rows.push(row(function, site, case, (told, by)));
            }
        }
        made.finish(&mut planned);
        planned
    }
}

/// The number of a site's first row.
fn first_row(sites: &[Site], number: usize) -> u32 {
    let before = sites.iter().take(number);
    before.map(|site| u32::from(site.kind.cases())).sum()
}

fn unobserved(function: &FunctionView<'_>, sites: &[Site], why: impl Fn(&Site) -> Told) -> Planned {
    let rows = sites.iter().flat_map(|site| {
        let why = why(site);
        (0..site.kind.cases()).map(move |case| row(function, site, case, (why, 0)))
    });
    Planned {
        rows: rows.collect(),
        ..Planned::default()
    }
}

fn row(function: &FunctionView<'_>, site: &Site, case: u8, (told, by): (Told, u32)) -> Row {
    let block = function.blocks().nth(site.block);
    Row {
        site: site.address.0.into(),
        block: block.map_or(0, |block| block.address().0).into(),
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
    wants: Vec<Wants>,
    passages: Vec<Passage>,
}

impl<'p, 'f> Made<'p, 'f> {
    fn of(recorded: Recorded, places: &'p Places<'p, 'f>) -> Self {
        Self {
            recorded,
            places,
            wants: vec![Wants::default(); places.codes.len()],
            passages: Vec::new(),
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

    /// The action of a branch's way.
    fn case(&mut self, site: &Site, case: u8, number: u32) {
        let what = match self.recorded {
            Recorded::Marks => What::Mark(number),
            Recorded::Counts => What::Count(number),
        };
        match (site.kind, case) {
            (Kind::Result, _) => {}
            (Kind::Branch, 0) => self.wants[site.block].taken.push(what),
            (Kind::Branch, _) => self.wants[site.block].not_taken.push(what),
        }
    }

    fn finish(self, planned: &mut Planned) {
        let nothing = self.wants.iter().all(|wants| *wants == Wants::default());
        if nothing && self.passages.is_empty() {
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
        region.passages = self.passages;
        planned.regions.push(region);
        planned.calls.extend(codes.iter().filter_map(Code::call));
    }
}
