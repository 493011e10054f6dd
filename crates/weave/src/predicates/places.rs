//! Where the predicates of a function can be observed.
//!
//! The ways of a branch, in a block that is executed elsewhere as a whole or in a window over its end. A result, on the
//! way from the jump over what is behind the call to where that is executed now, if nobody but the call's
//! return takes it; or on the way of a direct call that follows so soon that no jump fits in between, if what is in
//! between can neither fault nor change the result.

use std::collections::HashSet;

use tomo_program::{Address, Binary, EdgeKind, FunctionView};
use tomo_wire::predicates::Kind;

use super::sites::Site;
use crate::place::Surroundings;
use crate::staying::action::What;
use crate::staying::code::{Code, Wants};
use crate::staying::whole::MovedBlocks;

/// Addresses that the file names: somebody may come there from anywhere.
#[derive(Debug)]
pub(crate) struct Named(HashSet<Address>);

impl Named {
    pub(crate) fn of(binary: &Binary<'_>) -> Self {
        let symbols = binary.symbols().iter().map(|symbol| symbol.address);
        let slots = binary.pointer_slots().iter();
        let slots = slots.chain(binary.resolver_slots()).map(|slot| slot.1);
        Self(symbols.chain(slots).collect())
    }
}

/// How a site is observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On the ways of the branch.
    Ways,
    /// By the branch at the end of the block behind the call (`branched.rs`).
    Branch,
    /// On the way from the entrance behind the call.
    Entrance,
    /// On the way of the direct call at this address to its callee.
    Call { address: Address, callee: Address },
}

/// Who comes to a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Arrivals {
    /// By direct branches, or running on, from blocks of these kinds.
    from_moved: bool,
    from_unmoved: bool,
    /// Otherwise, but for the return from a call.
    otherwise: bool,
}

/// What is known of where a function's predicates can be observed, if these blocks are moved.
pub(crate) struct Places<'p, 'f> {
    pub(crate) codes: &'p [Code<'f>],
    pub(crate) moved: &'p MovedBlocks,
    arrivals: Vec<Arrivals>,
}

impl<'p, 'f> Places<'p, 'f> {
    pub(crate) fn of(
        (around, named): (&Surroundings<'_>, &Named),
        function: &FunctionView<'_>,
        codes: &'p [Code<'f>],
        moved: &'p MovedBlocks,
    ) -> Self {
        let mut arrivals: Vec<Arrivals> = codes
            .iter()
            .map(|code| Arrivals {
                otherwise: named.0.contains(&code.start())
                    || around.ways.foreign.has(code.start())
                    || code.start() == function.entry(),
                ..Arrivals::default()
            })
            .collect();
        for edge in function.edges() {
            let to = edge.block().and_then(|block| function.position_of(block));
            let from = function.position_of(edge.from);
            let (Some(to), Some(from)) = (to, from) else {
                continue;
            };
            let arrivals = &mut arrivals[to];
            match edge.kind {
                EdgeKind::CallFallthrough => {}
                EdgeKind::Fallthrough | EdgeKind::Taken | EdgeKind::NotTaken | EdgeKind::Jump => {
                    match moved.has(from) {
                        true => arrivals.from_moved = true,
                        false => arrivals.from_unmoved = true,
                    }
                }
                _ => arrivals.otherwise = true,
            }
        }
        Self {
            codes,
            moved,
            arrivals,
        }
    }

    /// Where a site is observed, if that can be.
    pub(crate) fn place(&self, site: &Site) -> Option<Place> {
        match site.kind {
            Kind::Branch => self.branch(site).then_some(Place::Ways),
            Kind::Result => self.result(site),
        }
    }

    fn branch(&self, site: &Site) -> bool {
        let code = &self.codes[site.block];
        if self.moved.has(site.block) {
            return code.has_branch();
        }
        let wants = Wants {
            taken: vec![What::Mark(0)],
            not_taken: vec![What::Mark(0)],
            ..Wants::default()
        };
        code.parts(&wants).is_some()
    }

    fn result(&self, site: &Site) -> Option<Place> {
        let behind = self.behind(site)?;
        let arrivals = self.arrivals[behind];
        if arrivals.otherwise || arrivals.from_unmoved {
            return None;
        }
        if self.moved.has(behind) {
            return self.moved.entrance(behind).map(|_| Place::Entrance);
        }
        let code = self.codes.get(behind)?;
        let call = code.call().filter(|_| !arrivals.from_moved)?;
        let callee = call.callee;
        code.brings_result_to_call().then_some(Place::Call {
            address: call.address,
            callee,
        })
    }

    /// The block behind the call.
    pub(super) fn behind(&self, site: &Site) -> Option<usize> {
        let found = self
            .codes
            .binary_search_by_key(&site.address, Code::start)
            .ok();
        found.filter(|&at| self.codes[at].start() == site.address)
    }

    /// Whether each run of the block behind the call is one in which the result is looked at.
    pub(crate) fn is_value_site(&self, site: &Site) -> Option<usize> {
        let behind = self.behind(site)?;
        (self.arrivals[behind] == Arrivals::default()).then_some(behind)
    }
}
