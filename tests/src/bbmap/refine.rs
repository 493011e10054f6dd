//! From a compiler's map of one function to a flow graph at the grain of instructions.
//!
//! A machine basic block of LLVM may have several terminators (`jcc`, `jcc`, `jmp` for a
//! floating-point comparison) and so stand for several blocks. Instead of blurring the model's
//! blocks until they look like LLVM's, which would hide a wrong branch inside one, LLVM's are
//! *split*: the compiler says from where to where a block's instructions run, so one straight decode
//! of those bytes finds every jump in it; a piece ends behind each jump and begins at each target.
//! The successors are then shared out: direct jumps take theirs by their own targets, an indirect
//! jump takes all others, and so does what control runs into. That sharing must come out even: each
//! stated successor is taken by something and each target is stated. Where it does not, the map
//! contradicts the bytes of its own program; that is an [`Oddity`], never silently corrected. The
//! graph then follows the bytes, the oddity is reported, and the test must know it by name.
//!
//! Blocks of no bytes are contracted into what physically follows. Whether a call returns is for the
//! compiler to say: a block that ends with a call has an edge to what follows only if the map has it
//! (an empty block without successors is not one: that is how `unreachable` looks).

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};

use super::{
    decode::{MapBlock, MapFunction},
    graph::{Edge, Graph},
};

/// A place where a map and the bytes it describes contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Oddity {
    /// A stated successor that no instruction of the block can reach.
    Stale {
        /// Start of the block.
        block: u64,
        /// The stated successor.
        successor: u64,
    },
    /// A direct jump to a block that is not stated as a successor.
    Unstated {
        /// Start of the block.
        block: u64,
        /// Where the jump leads.
        target: u64,
    },
    /// Control runs over the end of a block into one that is not stated as a successor.
    RunsOn {
        /// Start of the block.
        block: u64,
        /// The block that follows.
        next: u64,
    },
    /// Control runs over the end of the function.
    RunsOut {
        /// Start of the block.
        block: u64,
    },
    /// A stated landing pad of a block without a call.
    PadWithoutCall {
        /// Start of the block.
        block: u64,
        /// The landing pad.
        pad: u64,
    },
    /// A direct jump into the middle of an instruction.
    InsideInstruction {
        /// Where the jump leads.
        target: u64,
    },
    /// Bytes that are no instruction, or an instruction that crosses the end of its block.
    Undecodable {
        /// Where.
        address: u64,
    },
    /// The map has the end of a call (or tail call) where the bytes have none.
    NoCall {
        /// The stated end.
        address: u64,
    },
}

impl Oddity {
    /// The block where it is, or the address that it is about.
    #[must_use]
    pub fn address(self) -> u64 {
        match self {
            Self::Stale { block, .. }
            | Self::Unstated { block, .. }
            | Self::RunsOn { block, .. }
            | Self::RunsOut { block }
            | Self::PadWithoutCall { block, .. } => block,
            Self::InsideInstruction { target } => target,
            Self::Undecodable { address } | Self::NoCall { address } => address,
        }
    }
}

/// A function's flow graph by the compiler's word, with what else its instructions tell.
#[derive(Clone, Debug, Default)]
pub struct Refined {
    /// The graph; blocks that the entry does not reach are still in it.
    pub graph: Graph,
    /// Its calls by the address behind them, with whom they call where that is fixed.
    pub calls: BTreeMap<u64, Option<u64>>,
    /// Starts of the blocks that end with a return.
    pub returning: BTreeSet<u64>,
    /// Starts of the blocks that end with a trap.
    pub trapping: BTreeSet<u64>,
    /// The addresses behind calls that the compiler knows not to return, where it put code all the
    /// same: without optimisation a jump to an empty unreachable block.
    pub dead_code_behind: BTreeSet<u64>,
    /// Blocks that leave by a jump to another function, with the target where it is fixed.
    pub jumps_out: Vec<(u64, Option<u64>)>,
    /// Starts of the landing pads.
    pub pads: BTreeSet<u64>,
    /// Where map and bytes disagree.
    pub oddities: Vec<Oddity>,
}

/// What ends a piece of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Nothing: control runs on.
    Open,
    /// A call.
    Call,
    /// A jump to a fixed place, which may also not be taken.
    Jump { target: u64, conditional: bool },
    /// A jump through a register or memory.
    Indirect,
    /// A return.
    Return,
    /// A trap.
    Stop,
}

/// A part of a machine basic block with one way in and one way out.
#[derive(Clone, Copy)]
struct Piece {
    start: u64,
    end: u64,
    how: End,
}

/// Makes the flow graph of `function`, whose instructions `code` yields (the bytes from an address
/// on, up to the end of their section).
pub fn refine<'data>(function: &MapFunction, code: impl Fn(u64) -> Option<&'data [u8]>) -> Refined {
    let layout = Layout::of(function);
    let mut refined = Refined::default();
    refined.graph.entry = function.entry;
    let mut instructions = BTreeSet::new();
    let mut blocks = Vec::new();
    for &block in &layout.solid {
        let bytes = code(block.start).and_then(|bytes| bytes.get(..block.size as usize));
        let pieces = decode(
            block,
            bytes.unwrap_or_default(),
            &mut instructions,
            &mut refined,
        );
        blocks.push((block, pieces));
    }
    let targets: BTreeSet<u64> = blocks
        .iter()
        .flat_map(|(_, pieces)| pieces)
        .filter_map(target)
        .collect();
    let inside = targets
        .iter()
        .filter(|&&at| layout.contains(at) && !instructions.contains(&at));
    refined
        .oddities
        .extend(inside.map(|&target| Oddity::InsideInstruction { target }));
    for (block, pieces) in blocks {
        let thrower = layout.thrower(block, &refined);
        let cuts = targets.iter().copied().chain(thrower).collect();
        let pieces: Vec<_> = pieces.iter().flat_map(|piece| cut(*piece, &cuts)).collect();
        Connection {
            layout: &layout,
            block,
            thrower,
            refined: &mut refined,
        }
        .connect(&pieces);
    }
    let pads = function
        .blocks
        .iter()
        .filter(|block| block.metadata.is_landing_pad());
    refined.pads = pads.filter_map(|pad| layout.landing(pad.start)).collect();
    refined
}

/// The blocks of a function by address, without those of no bytes.
struct Layout<'map> {
    solid: Vec<&'map MapBlock>,
    empty: BTreeSet<u64>,
    by_id: BTreeMap<u32, &'map MapBlock>,
}

impl<'map> Layout<'map> {
    fn of(function: &'map MapFunction) -> Self {
        let mut solid: Vec<_> = function
            .blocks
            .iter()
            .filter(|block| block.size > 0)
            .collect();
        solid.sort_by_key(|block| block.start);
        let empty = function.blocks.iter().filter(|block| block.size == 0);
        Self {
            solid,
            empty: empty.map(|block| block.start).collect(),
            by_id: function
                .blocks
                .iter()
                .map(|block| (block.id, block))
                .collect(),
        }
    }

    /// The first block with bytes at or behind `address`.
    fn landing(&self, address: u64) -> Option<u64> {
        let at = self.solid.partition_point(|block| block.start < address);
        self.solid.get(at).map(|block| block.start)
    }

    fn contains(&self, address: u64) -> bool {
        let at = self.solid.partition_point(|block| block.start <= address);
        at > 0 && address < self.solid[at - 1].end()
    }

    /// Where a jump to `address` arrives, if that is in this function.
    fn arrival(&self, address: u64) -> Option<u64> {
        if self.contains(address) {
            Some(address)
        } else if self.empty.contains(&address) {
            self.landing(address)
        } else {
            None
        }
    }

    /// The address behind the call that may throw to the block's landing pads: its last one. An
    /// invocation ends its block in LLVM's intermediate code; what is merged in front of it later
    /// does not throw there, and behind it come only moves and jumps.
    fn thrower(&self, block: &MapBlock, refined: &Refined) -> Option<u64> {
        let own = (Bound::Excluded(block.start), Bound::Included(block.end()));
        let call = refined.calls.range(own).next_back().map(|(&end, _)| end);
        call.filter(|_| !self.successors(block, true, |_| true).is_empty())
    }

    /// The stated successors other than landing pads at which control can arrive: an empty block
    /// without successors is how `unreachable` looks.
    fn possible(&self, block: &MapBlock) -> BTreeSet<u64> {
        self.successors(block, false, |next| {
            next.size > 0 || !next.successors.is_empty()
        })
    }

    /// The stated successors, landing pads or the others, that `wanted` accepts.
    fn successors(
        &self,
        block: &MapBlock,
        pads: bool,
        wanted: impl Fn(&MapBlock) -> bool,
    ) -> BTreeSet<u64> {
        let stated = block.successors.iter().filter_map(|id| self.by_id.get(id));
        stated
            .filter(|next| next.metadata.is_landing_pad() == pads && wanted(next))
            .filter_map(|next| self.landing(next.start))
            .collect()
    }
}

/// Decodes one block straight through, cut behind each jump.
fn decode(
    block: &MapBlock,
    bytes: &[u8],
    instructions: &mut BTreeSet<u64>,
    refined: &mut Refined,
) -> Vec<Piece> {
    let mut decoder = Decoder::with_ip(64, bytes, block.start, DecoderOptions::NONE);
    let mut pieces = Vec::new();
    let mut piece = Piece {
        start: block.start,
        end: block.start,
        how: End::Open,
    };
    for instruction in &mut decoder {
        if instruction.is_invalid() {
            break;
        }
        instructions.insert(instruction.ip());
        piece.end = instruction.next_ip();
        piece.how = how_it_ends(&instruction);
        if piece.how == End::Call {
            refined.calls.insert(piece.end, near_target(&instruction));
        } else if piece.how != End::Open {
            let next = Piece {
                start: piece.end,
                end: piece.end,
                how: End::Open,
            };
            pieces.push(std::mem::replace(&mut piece, next));
        }
    }
    if piece.end < block.end() {
        refined
            .oddities
            .push(Oddity::Undecodable { address: piece.end });
        piece.how = End::Stop;
    }
    if piece.end > piece.start {
        pieces.push(piece);
    }
    let tail = block.metadata.has_tail_call().then_some(block.end());
    let is_call = |end: &u64| refined.calls.contains_key(end) || tail == Some(*end);
    let missing = block.call_ends.iter().filter(|end| !is_call(end));
    refined
        .oddities
        .extend(missing.map(|&address| Oddity::NoCall { address }));
    pieces
}

fn how_it_ends(instruction: &Instruction) -> End {
    match instruction.flow_control() {
        FlowControl::Call if instruction.is_call_near() => End::Call,
        FlowControl::IndirectCall => End::Call,
        FlowControl::UnconditionalBranch => jump(instruction, false),
        FlowControl::ConditionalBranch => jump(instruction, true),
        FlowControl::IndirectBranch => End::Indirect,
        FlowControl::Return => End::Return,
        FlowControl::Exception => End::Stop,
        _ if instruction.mnemonic() == Mnemonic::Hlt => End::Stop,
        _ => End::Open,
    }
}

fn jump(instruction: &Instruction, conditional: bool) -> End {
    near_target(instruction).map_or(End::Indirect, |target| End::Jump {
        target,
        conditional,
    })
}

fn near_target(instruction: &Instruction) -> Option<u64> {
    (instruction.op0_kind() == OpKind::NearBranch64).then(|| instruction.near_branch_target())
}

fn target(piece: &Piece) -> Option<u64> {
    match piece.how {
        End::Jump { target, .. } => Some(target),
        _ => None,
    }
}

/// Cuts a piece where a direct jump of the same function lands inside it (inline assembly).
fn cut(piece: Piece, targets: &BTreeSet<u64>) -> Vec<Piece> {
    let inside = (Bound::Excluded(piece.start), Bound::Excluded(piece.end));
    let mut pieces = Vec::new();
    let mut start = piece.start;
    for &end in targets.range(inside) {
        pieces.push(Piece {
            start,
            end,
            how: End::Open,
        });
        start = end;
    }
    pieces.push(Piece { start, ..piece });
    pieces
}

/// The sharing out of one block's stated successors among its pieces.
struct Connection<'a, 'map> {
    layout: &'a Layout<'map>,
    block: &'a MapBlock,
    thrower: Option<u64>,
    refined: &'a mut Refined,
}

impl Connection<'_, '_> {
    fn connect(mut self, pieces: &[Piece]) {
        let stated = self.layout.successors(self.block, false, |_| true);
        let mut taken = BTreeSet::new();
        for (index, piece) in pieces.iter().enumerate() {
            self.refined.graph.blocks.insert(piece.start, piece.end);
            self.jump(piece, &stated, &mut taken);
            match pieces.get(index + 1) {
                Some(_) if self.never_comes_back(piece) => {
                    self.refined.dead_code_behind.insert(piece.end);
                }
                Some(next) if runs_on(piece.how) => self.edge(piece.start, next.start),
                None if runs_on(piece.how) => self.run_on(piece, &stated, &mut taken),
                _ => {}
            }
        }
        self.share_rest(pieces, &stated, &taken);
        self.landing_pads();
    }

    /// Whether the piece ends with an invocation behind which the compiler knows only unreachable
    /// code: without optimisation it still jumps there.
    fn never_comes_back(&self, piece: &Piece) -> bool {
        self.thrower == Some(piece.end) && self.layout.possible(self.block).is_empty()
    }

    fn edge(&mut self, from: u64, to: u64) {
        self.refined.graph.edges.insert(Edge::plain(from, to));
    }

    /// Direct jumps take the successors to which they lead.
    fn jump(&mut self, piece: &Piece, stated: &BTreeSet<u64>, taken: &mut BTreeSet<u64>) {
        match piece.how {
            End::Return => {
                self.refined.returning.insert(piece.start);
            }
            End::Stop => {
                self.refined.trapping.insert(piece.start);
            }
            End::Jump { target, .. } => match self.layout.arrival(target) {
                Some(to) => {
                    self.edge(piece.start, to);
                    taken.insert(to);
                    if !stated.contains(&to) {
                        self.report(Oddity::Unstated {
                            block: self.block.start,
                            target: to,
                        });
                    }
                }
                None => self.leave(piece.start, Some(target)),
            },
            _ => {}
        }
    }

    fn leave(&mut self, block: u64, target: Option<u64>) {
        self.refined.graph.leaving.insert(block);
        self.refined.jumps_out.push((block, target));
    }

    fn report(&mut self, oddity: Oddity) {
        self.refined.oddities.push(oddity);
    }

    /// Control runs into the next block, executing what pads the two apart.
    fn run_on(&mut self, piece: &Piece, stated: &BTreeSet<u64>, taken: &mut BTreeSet<u64>) {
        let block = self.block.start;
        let next = self.layout.landing(self.block.end());
        match next {
            Some(next) if piece.how == End::Call => {
                taken.insert(next);
                if !self.layout.possible(self.block).contains(&next) {
                    return;
                }
            }
            Some(next) if !stated.contains(&next) => self.report(Oddity::RunsOn { block, next }),
            None if piece.how != End::Call => self.report(Oddity::RunsOut { block }),
            _ => {}
        }
        if let Some(next) = next {
            taken.insert(next);
            self.edge(piece.start, next);
            self.refined.graph.blocks.insert(piece.start, next);
        }
    }

    /// An indirect jump takes what nothing else took; without one, nothing may be left.
    fn share_rest(&mut self, pieces: &[Piece], stated: &BTreeSet<u64>, taken: &BTreeSet<u64>) {
        let indirect = pieces.iter().find(|piece| piece.how == End::Indirect);
        if let (Some(piece), true) = (indirect, stated.is_empty()) {
            self.leave(piece.start, None);
        }
        for &successor in stated.difference(taken) {
            match indirect {
                Some(piece) => self.edge(piece.start, successor),
                None => self.report(Oddity::Stale {
                    block: self.block.start,
                    successor,
                }),
            }
        }
    }

    fn landing_pads(&mut self) {
        let block = self.block.start;
        let from = self
            .thrower
            .and_then(|end| self.refined.graph.block_of(end - 1));
        for pad in self.layout.successors(self.block, true, |_| true) {
            match from {
                Some(from) => {
                    self.refined.graph.edges.insert(Edge {
                        from,
                        to: pad,
                        thrown_at: self.thrower,
                    });
                }
                None => self.report(Oddity::PadWithoutCall { block, pad }),
            }
        }
    }
}

/// Whether control may pass from a piece to what lies behind it.
fn runs_on(how: End) -> bool {
    matches!(
        how,
        End::Open
            | End::Call
            | End::Jump {
                conditional: true,
                ..
            }
    )
}
