//! How a function is observed so that what tells of its branches vanishes.
//!
//! A way of a branch is observed in place where nobody comes but who goes it: in the displacement of the branch, or in the
//! block to which it leads, if there is no other way into that. Such a probe is that of coverage (`place.rs`) and is gone
//! once it was hit. A displacement that is fetched in two parts is never restored: who takes the branch goes by way of the
//! mark each time.
//!
//! Where a way has no place of its own, as those of loops, the end of its block is executed elsewhere, up to the branch. If
//! only one way is to be told there alone, it restores the window over that end once it was gone, and all is as it
//! was; up to then the way taken, which the displacement tells of in place, is told there too. If both are told there and
//! nobody looks at the flags behind the branch, whichever comes last restores it.
//!
//! A short branch has its displacement changed where filling of the function's own is near enough; else the end of its block
//! must do. Whoever leads by way of a mark for good had better not be taken often, so loops are told at the ends of blocks.
//!
//! A result is told by the branch behind its call, if that looks at it (`branched.rs`). Else what is to be looked at each
//! time stays: the block behind the call. It marks on the ways of its branch, too, and what is told by the block itself.
//!
//! What is moved may take another's place away, so more is moved until all have one. Where that does not come to
//! an end soon, all of the function is moved.

use std::collections::{HashMap, HashSet};

use tomo_program::{Address, BlockView, EdgeKind, EdgeView, FunctionView};
use tomo_wire::predicates::Kind;

use super::branched::{self, Cases};
use super::first_row;
use super::places::{Named, Place, Places};
use super::sites::Site;
use crate::choose::{Choice, Fate};
use crate::hops;
use crate::place::{Placed, Surroundings, Unit, chosen};
use crate::staying::action::What;
use crate::staying::code::{Code, Wants};
use crate::staying::split::Split;
use crate::staying::whole::MovedBlocks;
use crate::tactics::{hop, retarget};
use crate::window::{JUMP_BYTES, in_one_fetch};

/// Where the way of a branch is observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Behind the branch, which is executed elsewhere.
    Branch,
    /// Where this displacement of a branch leads for good, on the way to its target.
    Lead(Address, Address),
    /// Behind the branch, once: what is executed elsewhere is so only up to then.
    Once,
    /// The same of both ways: until either was gone.
    Both,
    /// At the start of this block, which is executed elsewhere.
    Start(usize),
    /// By the unit of this number, which vanishes.
    Unit(usize),
}

/// How a function is observed.
pub(super) struct Spread {
    /// What is executed elsewhere as a whole.
    pub(super) moved: MovedBlocks,
    /// The units, and filling.
    pub(super) placed: Placed,
    /// By site and case.
    pub(super) ways: HashMap<(usize, u8), Way>,
    /// Sites whose way taken is told by the displacement, and as well where the branch is executed elsewhere.
    pub(super) also: HashSet<usize>,
    /// Results of which a branch tells, by site.
    pub(super) told: HashMap<usize, ByBranch>,
}

/// How a result is told by the branch behind its call.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByBranch {
    /// The site of the branch, and its first row.
    pub(super) branch: usize,
    pub(super) row: u32,
    /// The block that ends in it.
    pub(super) block: usize,
    /// What its ways are: taken, not taken.
    pub(super) ways: [Cases; 2],
    /// Where two cases that are one way are told apart.
    pub(super) look: Look,
}

/// Where two cases are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// At the start of this block, which is executed elsewhere.
    Start(usize),
    /// Where this displacement of the branch leads for good, on the way to its target.
    Lead(Address, Address),
    /// Behind the branch, which is executed elsewhere, on its way.
    Way,
}

/// A function with what is asked of it.
pub(super) struct Subject<'s, 'f> {
    pub(super) around: (&'s Surroundings<'s>, &'s Named),
    pub(super) function: &'s FunctionView<'s>,
    pub(super) codes: &'s [Code<'f>],
    pub(super) sites: &'s [Site],
    /// The cases of sites that are to be observed.
    pub(super) needs: &'s dyn Fn(usize, u8) -> bool,
}

/// What is executed elsewhere.
struct Elsewhere {
    /// Blocks as a whole, if they can be.
    whole: Vec<bool>,
    /// Blocks from somewhere in them to their ends.
    ends: Vec<bool>,
    /// Those of them that mark that they start, by what is executed elsewhere.
    starts: Vec<bool>,
    /// Ways that are told at their branch.
    own: HashSet<(usize, u8)>,
    /// Results that are looked at behind their calls, since nothing else can tell of them.
    looked: HashSet<usize>,
}

/// Who finds no place as it is.
#[derive(Default)]
struct Lacking {
    /// Blocks that are to be moved.
    whole: Vec<usize>,
    /// Blocks whose ends may do.
    ends: Vec<usize>,
    /// Blocks whose ends are moved, and no window is before them.
    starts: Vec<usize>,
    /// Ways that no unit tells.
    own: Vec<(usize, u8)>,
    /// Results of which no branch tells.
    looked: Vec<usize>,
}

impl Lacking {
    fn is_empty(&self) -> bool {
        let blocks = [&self.whole, &self.ends, &self.starts];
        let no_more = blocks.iter().all(|blocks| blocks.is_empty());
        no_more && self.own.is_empty() && self.looked.is_empty()
    }
}

/// How often more is moved at most.
const ROUNDS: usize = 16;

impl Subject<'_, '_> {
    /// How all that is needed is observed; `None` where that is not found.
    pub(super) fn spread(&self) -> Option<Spread> {
        let count = self.codes.len();
        let mut elsewhere = Elsewhere {
            whole: vec![false; count],
            ends: vec![false; count],
            starts: vec![false; count],
            own: HashSet::new(),
            looked: HashSet::new(),
        };
        for _ in 0..ROUNDS {
            match self.attempt(&elsewhere) {
                Ok(spread) => return Some(spread),
                Err(lacking) => self.move_more(&mut elsewhere, &lacking)?,
            }
        }
        None
    }

    /// Everything with this much elsewhere, or who finds no place then.
    fn attempt(&self, elsewhere: &Elsewhere) -> Result<Spread, Lacking> {
        let (around, _) = self.around;
        let moved = MovedBlocks::among(around, self.function, self.codes, &elsewhere.whole);
        let mut trying = Trying::of(self, elsewhere, &moved);
        trying.results();
        let each = self.sites.iter().enumerate();
        for (number, site) in each.filter(|(_, site)| site.kind == Kind::Branch) {
            for case in (0..2).filter(|case| (self.needs)(number, *case)) {
                trying.way(number, site, case);
            }
        }
        trying.ends_get_along();
        let choice = Choice {
            blocks: std::mem::take(&mut trying.choice.blocks),
            edges: std::mem::take(&mut trying.choice.edges),
        };
        let mut placed = chosen(around, self.function, choice, &trying.ceilings);
        hops::give_own(&mut placed);
        for (number, unit) in placed.units.iter().enumerate() {
            trying.placed(number, unit);
        }
        trying.ends_vanish();
        let Trying {
            lacking,
            ways,
            also,
            told,
            ..
        } = trying;
        match lacking.is_empty() {
            true => Ok(Spread {
                moved,
                placed,
                ways,
                also,
                told,
            }),
            false => Err(lacking),
        }
    }

    /// Nothing where there is no more to move.
    fn move_more(&self, elsewhere: &mut Elsewhere, lacking: &Lacking) -> Option<()> {
        let mut more = false;
        for &block in &lacking.ends {
            let fits = || self.codes[block].parts(&on_ways()).is_some();
            if !elsewhere.whole[block] && !elsewhere.ends[block] && fits() {
                elsewhere.ends[block] = true;
                more = true;
            } else {
                more |= self.move_whole(elsewhere, block);
            }
        }
        for &block in &lacking.whole {
            more |= self.move_whole(elsewhere, block);
        }
        for &block in &lacking.starts {
            more |= !std::mem::replace(&mut elsewhere.starts[block], true);
        }
        for &way in &lacking.own {
            more |= elsewhere.own.insert(way);
        }
        for &site in &lacking.looked {
            more |= elsewhere.looked.insert(site);
        }
        more.then_some(())
    }

    /// A block that cannot be moved by itself, perhaps can be with those around it, or with those around them.
    fn move_whole(&self, elsewhere: &mut Elsewhere, block: usize) -> bool {
        if !std::mem::replace(&mut elsewhere.whole[block], true) {
            return true;
        }
        let next = block + 1;
        let ahead = self.edges().filter(|(_, to)| *to == next);
        let ahead: Vec<usize> = ahead.map(|(from, _)| from).chain([next]).collect();
        let mut more = false;
        for other in ahead.iter().filter(|other| **other < self.codes.len()) {
            more |= !std::mem::replace(&mut elsewhere.whole[*other], true);
        }
        if more {
            return true;
        }
        let mut near = HashSet::from([block]);
        loop {
            let edges = self.edges();
            let around: HashSet<usize> = edges
                .flat_map(|(from, to)| [(from, to), (to, from)])
                .filter(|(one, other)| near.contains(one) && !near.contains(other))
                .map(|(_, other)| other)
                .collect();
            if around.is_empty() {
                return false;
            }
            let mut more = false;
            for &other in &around {
                more |= !std::mem::replace(&mut elsewhere.whole[other], true);
            }
            if more {
                return true;
            }
            near.extend(around);
        }
    }

    /// The edges between blocks of the function, but behind calls.
    fn edges(&self) -> impl Iterator<Item = (usize, usize)> {
        let inner = |edge: EdgeView| {
            let from = self.function.position_of(edge.from)?;
            let to = self.function.position_of(edge.block()?)?;
            (edge.kind != EdgeKind::CallFallthrough).then_some((from, to))
        };
        self.function.edges().filter_map(inner)
    }
}

/// Something on both ways of a branch.
fn on_ways() -> Wants {
    Wants {
        taken: vec![What::Mark(0)],
        not_taken: vec![What::Mark(0)],
        ..Wants::default()
    }
}

/// What is asked of a unit.
#[derive(Clone, Copy)]
struct Asked {
    way: (usize, u8),
    /// The block that it is about.
    block: usize,
}

/// An attempt in the making.
struct Trying<'t, 's, 'f> {
    subject: &'t Subject<'s, 'f>,
    elsewhere: &'t Elsewhere,
    places: Places<'t, 'f>,
    blocks: Vec<BlockView<'s>>,
    /// How many ways lead into each block.
    ways_in: Vec<u32>,
    /// The number of the first edge out of each block.
    first_edges: Vec<usize>,
    choice: Choice,
    /// From where on no unit may change bytes of a block.
    ceilings: Vec<Option<Address>>,
    /// What is to be marked where blocks are executed elsewhere.
    wants: Vec<Wants>,
    /// For which way each unit is, by the block that it leaves and the one that it enters.
    asked: HashMap<(u64, u64), Asked>,
    ways: HashMap<(usize, u8), Way>,
    also: HashSet<usize>,
    told: HashMap<usize, ByBranch>,
    /// Sites of branches whose displacements lead to where a result is told.
    leads: HashSet<usize>,
    lacking: Lacking,
}

impl<'t, 's, 'f> Trying<'t, 's, 'f> {
    fn of(subject: &'t Subject<'s, 'f>, elsewhere: &'t Elsewhere, moved: &'t MovedBlocks) -> Self {
        let (function, codes) = (subject.function, subject.codes);
        let mut ways_in = vec![0; codes.len()];
        let into = function.edges().filter_map(|edge| edge.block());
        for block in into.filter_map(|block| function.position_of(block)) {
            ways_in[block] += 1;
        }
        let blocks: Vec<BlockView<'s>> = function.blocks().collect();
        let mut edges = 0;
        let first_edges = blocks.iter().map(|block| {
            let first = edges;
            edges += block.successors().count();
            first
        });
        let first_edges = first_edges.collect();
        Self {
            subject,
            elsewhere,
            places: Places::of(subject.around, function, codes, moved),
            ways_in,
            first_edges,
            blocks,
            choice: Choice {
                blocks: vec![Fate::Ignore; codes.len()],
                edges: vec![Fate::Ignore; edges],
            },
            ceilings: (0..codes.len())
                .map(|block| match (moved.has(block), elsewhere.ends[block]) {
                    (true, _) => Some(codes[block].start()),
                    (false, true) => codes[block].window_at_end().map(|window| window.0),
                    (false, false) => None,
                })
                .collect(),
            wants: vec![Wants::default(); codes.len()],
            asked: HashMap::new(),
            ways: HashMap::new(),
            also: HashSet::new(),
            told: HashMap::new(),
            leads: HashSet::new(),
            lacking: Lacking::default(),
        }
    }

    /// Results are told by the branches behind them, or on passages.
    fn results(&mut self) {
        let sites = self.subject.sites.iter().enumerate();
        let branches = sites.filter(|(_, site)| site.kind == Kind::Branch);
        let branches: HashMap<usize, usize> = branches
            .map(|(number, site)| (site.block, number))
            .collect();
        let each = self.subject.sites.iter().enumerate();
        for (number, site) in each {
            if site.kind != Kind::Result || !(self.subject.needs)(number, 0) {
                continue;
            }
            let Some(behind) = self.places.behind(site) else {
                continue;
            };
            let branch = branches.get(&behind).copied();
            let told = branch.and_then(|branch| self.by_branch((number, site), branch, behind));
            if let Some(told) = told {
                if let Look::Lead(..) = told.look {
                    self.leads.insert(told.branch);
                }
                self.told.insert(number, told);
                continue;
            }
            match self.places.place(site) {
                Some(Place::Call { .. }) => {
                    self.ceilings[behind] = Some(self.subject.codes[behind].start());
                }
                Some(_) => {}
                None => {
                    let moved = self.places.moved;
                    let edges = self.subject.edges();
                    let into = edges.filter(|(from, to)| *to == behind && !moved.has(*from));
                    self.lacking.whole.extend(into.map(|(from, _)| from));
                    if !moved.has(behind) {
                        self.lacking.whole.push(behind);
                    }
                }
            }
        }
    }

    /// How the branch at the end of the block `behind` a call tells what came back.
    fn by_branch(
        &mut self,
        (number, site): (usize, &Site),
        branch: usize,
        behind: usize,
    ) -> Option<ByBranch> {
        if self.elsewhere.looked.contains(&number) {
            return None;
        }
        self.places.is_value_site(site)?;
        let ways = branched::ways(&self.subject.codes[behind], 8 << (site.width & 3))?;
        let own = |case: u8| (self.subject.needs)(branch, case);
        let (one, both) = match ways[0].count() {
            1 => (0, 1),
            _ => (1, 0),
        };
        let look = own(one).then(|| self.look_on_way((number, branch), behind, both))??;
        Some(ByBranch {
            branch,
            row: first_row(self.subject.sites, branch),
            block: behind,
            ways,
            look,
        })
    }

    /// Where two cases of a result are told apart that are one way of the branch behind.
    fn look_on_way(
        &mut self,
        (number, branch): (usize, usize),
        behind: usize,
        way: u8,
    ) -> Option<Look> {
        if self.places.moved.has(behind) || self.elsewhere.ends[behind] {
            let wants = &mut self.wants[behind];
            let on_way = match way {
                0 => &mut wants.taken,
                _ => &mut wants.not_taken,
            };
            on_way.push(What::Split(Split::default()));
            return Some(Look::Way);
        }
        let to = self.only_entered(behind, way);
        let to = to.filter(|to| !self.subject.codes[*to].jumps_at_once());
        if let Some(to) = to.filter(|to| self.places.moved.has(*to)) {
            return Some(Look::Start(to));
        }
        if let Some(to) = to.filter(|to| !self.elsewhere.whole[*to]) {
            self.lacking.whole.push(to);
            return Some(Look::Start(to));
        }
        let clear = way == 0 && (self.subject.needs)(branch, 0);
        match self.lead(behind).filter(|_| clear) {
            Some(Way::Lead(from, to)) => Some(Look::Lead(from, to)),
            _ if self.subject.codes[behind].parts(&on_ways()).is_some() => {
                self.lacking.ends.push(behind);
                Some(Look::Way)
            }
            _ => {
                self.lacking.looked.push(number);
                None
            }
        }
    }

    /// A way of a branch.
    fn way(&mut self, number: usize, site: &Site, case: u8) {
        let (block, way) = (site.block, (number, case));
        let start = |block: usize| self.subject.codes[block].start().0;
        let is_moved = self.places.moved.has(block);
        let only_here = is_moved || self.elsewhere.own.contains(&way);
        if let Some(Way::Lead(from, to)) = self.lead(block)
            && self.leads.contains(&number)
            && case == 0
        {
            self.ways.insert(way, Way::Lead(from, to));
            self.ceilings[block] = Some(from);
            return;
        }
        let edge = self.displacement(block).filter(|_| case == 0 && !only_here);
        if let Some((edge, target)) = edge {
            if self.elsewhere.ends[block] {
                self.wants[block].taken.push(What::Also(0));
                self.also.insert(number);
            }
            self.choice.edges[edge] = Fate::Probe;
            let asked = Asked { way, block };
            self.asked.insert((start(block), target.0), asked);
            return;
        }
        match self.only_entered(block, case).filter(|_| !only_here) {
            Some(to) if self.marks_start(to) => {
                self.wants[to].start.push(What::Mark(0));
                self.ways.insert(way, Way::Start(to));
            }
            Some(to) if !self.places.moved.has(to) => {
                self.choice.blocks[to] = Fate::Probe;
                let asked = Asked { way, block: to };
                self.asked.insert((start(to), 0), asked);
            }
            _ if case == 0 && self.leads_well(block) => {
                self.ways.extend(self.lead(block).map(|lead| (way, lead)));
                if self.elsewhere.ends[block] {
                    self.wants[block].taken.push(What::Also(0));
                    self.also.insert(number);
                } else if let Some(Way::Lead(from, _)) = self.lead(block) {
                    self.ceilings[block] = Some(from);
                }
            }
            _ if is_moved || self.elsewhere.ends[block] => {
                let wants = &mut self.wants[block];
                match case {
                    0 => wants.taken.push(What::Mark(0)),
                    _ => wants.not_taken.push(What::Mark(0)),
                }
                self.ways.insert(way, Way::Branch);
            }
            _ => self.lacking.ends.push(block),
        }
    }

    /// The displacement of a branch that may lead to a mark for good: that of one which is executed in place, if not at once
    /// then once the window over the block's end is gone.
    fn lead(&self, block: usize) -> Option<Way> {
        let code = &self.subject.codes[block];
        let last = code.last_instruction()?;
        let from = retarget::displacement(last)?;
        let clear = !self.elsewhere.ends[block]
            || code.window_at_end().is_some_and(|(start, _)| {
                in_one_fetch(start)
                    && start.wrapping_add(JUMP_BYTES) <= from
                    && !self.elsewhere.starts[block]
            });
        let entered = &self.subject.around.0.ways.entered;
        let alone = !entered.has(from) && !entered.has_inside(from, retarget::BYTES);
        let leads = clear && alone && !self.places.moved.has(block);
        leads.then(|| Way::Lead(from, Address(last.near_branch_target())))
    }

    /// Whether a way is told where the displacement leads, and not by the end of the block: that of a loop is gone often, so
    /// it had better vanish, and where a result is told at the end nothing may pass it.
    fn leads_well(&self, block: usize) -> bool {
        let code = &self.subject.codes[block];
        let last = code.last_instruction();
        let loops = last.is_some_and(|last| last.near_branch_target() < last.ip());
        let stays = loops && code.parts(&on_ways()).is_some();
        let splits = |what: &What| matches!(what, What::Split(_));
        let told = self.wants[block].taken.iter().any(splits);
        let told = told || self.wants[block].not_taken.iter().any(splits);
        self.lead(block).is_some() && !stays && !told
    }

    /// Whether a block marks by what is executed elsewhere that it starts.
    fn marks_start(&self, block: usize) -> bool {
        let marks = self.places.moved.has(block) || self.elsewhere.starts[block];
        marks && !self.subject.codes[block].jumps_at_once()
    }

    /// The place that was found for a unit.
    fn placed(&mut self, number: usize, unit: &Unit) {
        let Some(&Asked { way, block }) = self.asked.get(&(unit.from, unit.to)) else {
            return;
        };
        let ends = unit.to == 0 && self.elsewhere.ends[block];
        if unit.window.tactic.is_probe() {
            self.ways.insert(way, Way::Unit(number));
        } else if ends && !self.elsewhere.starts[block] {
            self.lacking.starts.push(block);
        } else {
            self.lacking.own.push(way);
        }
    }

    /// What is told at the end of a block is told once, if it is one way alone, or both and nothing else.
    fn ends_vanish(&mut self) {
        for (&(site, _), way) in &mut self.ways {
            let block = self.subject.sites[site].block;
            let wants = &self.wants[block];
            let ways = wants.taken.iter().chain(&wants.not_taken);
            let own = ways.filter(|what| !matches!(what, What::Also(_)));
            let count = own.clone().count();
            let marks = own.clone().all(|what| matches!(what, What::Mark(_)));
            let code = &self.subject.codes[block];
            let once = match count {
                1 => Way::Once,
                2 if marks && code.frees_flags() => Way::Both,
                _ => continue,
            };
            let alone = wants.start.is_empty();
            let window = code.window_at_end();
            let at_once = window.is_some_and(|(start, _)| in_one_fetch(start));
            if *way == Way::Branch && !self.places.moved.has(block) && alone && at_once {
                *way = once;
            }
        }
    }

    /// The edge of a branch whose displacement can be changed, and where it leads.
    fn displacement(&self, block: usize) -> Option<(usize, Address)> {
        let code = &self.subject.codes[block];
        let last = code.last_instruction()?;
        let near = retarget::displacement(last).filter(|at| retarget::in_one_fetch(*at));
        let short = hop::short_displacement(last);
        let at = near.or(short.filter(|_| self.only_entered(block, 0).is_none()))?;
        let window = code.window_at_end().filter(|_| self.elsewhere.ends[block]);
        window
            .is_none_or(|(start, _)| start.wrapping_add(JUMP_BYTES) <= at)
            .then_some(())?;
        let target = Address(last.near_branch_target());
        let mut edges = self.blocks[block].successors();
        let taken = |edge: EdgeView| edge.address == target && edge.kind != EdgeKind::NotTaken;
        let number = edges.position(taken)?;
        Some((self.first_edges[block] + number, target))
    }

    /// The block into which the way of the branch leads, if it is entered by it alone.
    fn only_entered(&self, block: usize, case: u8) -> Option<usize> {
        let kind = match case {
            0 => EdgeKind::Taken,
            _ => EdgeKind::NotTaken,
        };
        let mut edges = self.blocks[block].successors();
        let edge = edges.find(|edge| edge.kind == kind)?;
        let to = self.subject.function.position_of(edge.block()?)?;
        let outer = &self.subject.around.0.ways.outer;
        (self.ways_in[to] == 1 && !outer.has(edge.address)).then_some(to)
    }

    /// Ends at which not all can be done that is wanted give way to the whole block.
    fn ends_get_along(&mut self) {
        for (block, wants) in self.wants.iter().enumerate() {
            let ends = *wants != Wants::default() && !self.places.moved.has(block);
            if ends && self.subject.codes[block].parts(wants).is_none() {
                self.lacking.whole.push(block);
            }
        }
    }
}
