//! The tree of calls of a thread (`tomo_wire::chains` says what it looks like), where woven code does not go on in it
//! by itself: new chains, tail calls, what outside code calls, signals, exceptions.
//!
//! **Invariant.** Whenever control is in an observed function that is no leaf, *now* is the node of its
//! activation, and the nodes from there up are those of all activations under way, each with its slot, innermost
//! first. A function sets it when it is entered, and sets it back when it is left, so that whoever comes in between
//! (a signal's handler may, at any instruction) leaves it as it was.
//!
//! **What else may happen.** Frames that were left without a return (exceptions, `longjmp`) are noticed by the
//! stack pointer: a slot below it is nobody's any more. On another stack (coroutines) nothing of this holds; then return
//! addresses do not fit to the functions of the tree, which whoever reads it sees, and says.
//!
//! Everything here may be interrupted by a handler that does the same on the same tree: places are taken by one
//! instruction, lists are changed by compare and exchange, and *now* comes last.

use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use tomo_wire::chains::{
    END, ENTER, FIRST, JUMP, LAND, LEAVE, LOST, MARK, NAME, NODE, NONE, NOW, ROOT, SELF, TOP,
    WAY_BITS, Way, field, way_of,
};
use tomo_wire::counting::Contents;
use tomo_wire::crash::register;

use crate::frame::Frame;
use crate::system::Stack;
use crate::{armed, closed, origins, passage, pointed, slabs, system};

/// The slab of a thread.
#[derive(Clone, Copy)]
struct Tree(usize);

impl Tree {
    /// A number `at` bytes into it, where four bytes are.
    fn small(&self, at: u32) -> &AtomicU32 {
        let inside = (at as usize).saturating_add(4) <= slabs::size() as usize;
        let at = if inside { at & !3 } else { ROOT };
        // SAFETY: a slab is mapped for as long as the process lives, whole; the place is inside and aligned. Others
        // than this thread do not change it but by whole words.
        unsafe { &*((self.0 + at as usize) as *const AtomicU32) }
    }

    /// A number `at` bytes into it, where eight bytes are.
    fn large(&self, at: u32) -> &AtomicU64 {
        let inside = (at as usize).saturating_add(8) <= slabs::size() as usize;
        let at = if inside { at & !7 } else { ROOT };
        // SAFETY: as above.
        unsafe { &*((self.0 + at as usize) as *const AtomicU64) }
    }

    fn part(&self, node: u32, field: u8) -> u32 {
        self.small(node.wrapping_add(field.into())).load(Relaxed)
    }

    fn set(&self, node: u32, field: u8, value: u32) {
        self.small(node.wrapping_add(field.into()))
            .store(value, Relaxed);
    }

    fn slot(&self, node: u32) -> u64 {
        self.large(node.wrapping_add(field::SLOT.into()))
            .load(Relaxed)
    }

    fn set_slot(&self, node: u32, slot: u64) {
        self.large(node.wrapping_add(field::SLOT.into()))
            .store(slot, Relaxed);
    }

    fn set_back(&self, node: u32, back: u64) {
        self.large(node.wrapping_add(field::BACK.into()))
            .store(back, Relaxed);
    }

    fn count(&self, node: u32) {
        self.large(node.wrapping_add(field::COUNT.into()))
            .fetch_add(1, Relaxed);
    }

    fn now(&self) -> u32 {
        self.small(NOW).load(Relaxed)
    }

    fn set_now(&self, node: u32) {
        self.small(NOW).store(node, Relaxed);
    }
}

/// Makes the slab of `room` bytes at `place` a tree in which nothing is under way; what is in it stays.
pub(crate) fn begin(place: usize, room: usize) {
    let tree = Tree(place);
    if tree.small(TOP).load(Relaxed) == 0 {
        tree.small(END).store(room as u32, Relaxed);
        tree.small(TOP).store(FIRST, Relaxed);
        tree.set(ROOT, field::AFTER, ROOT);
        tree.set(ROOT, field::PARENT, ROOT);
        tree.set(ROOT, field::FUNCTION, NONE);
        tree.set(LOST, field::AFTER, ROOT);
        tree.set(LOST, field::PARENT, ROOT);
        tree.set(LOST, field::FUNCTION, NONE);
    }
    tree.set_slot(ROOT, u64::MAX);
    tree.set(ROOT, field::OUT, 0);
    let routines: [(u32, extern "C" fn()); 4] = [
        (ENTER, passage::enter),
        (LEAVE, passage::leave),
        (LAND, passage::land),
        (JUMP, passage::jump),
    ];
    install(tree, routines);
    tree.set_now(ROOT);
}

/// Makes the slab at `place` one in which nothing is noted, whatever is called.
pub(crate) fn begin_nowhere(place: usize) {
    let tree = Tree(place);
    install(
        tree,
        [ENTER, LEAVE, LAND, JUMP].map(|at| (at, passage::pass as extern "C" fn())),
    );
    // Its slot is 0, below every stack: all that is entered asks.
    tree.set_now(ROOT);
}

/// Where the slab of the calling thread is; slabs must hold trees.
pub(crate) fn own() -> usize {
    let place: usize;
    // SAFETY: reads a word of the slab to which the base points.
    unsafe {
        core::arch::asm!(
            "mov {}, gs:[{own}]",
            out(reg) place,
            own = const SELF,
            options(nostack, preserves_flags, readonly),
        );
    }
    place
}

fn install(tree: Tree, routines: [(u32, extern "C" fn()); 4]) {
    for (at, routine) in routines {
        tree.large(at).store(routine as usize as u64, Relaxed);
    }
    tree.large(SELF).store(tree.0 as u64, Relaxed);
}

/// A function as it says who it is, and where its return address is.
#[derive(Clone, Copy)]
struct Said {
    number: u32,
    leaf: bool,
    depth: u32,
    slot: u64,
    back: u64,
}

/// A chain as its last step is known.
#[derive(Clone, Copy)]
struct Step {
    way: Way,
    site: u32,
}

/// Whether this happened in chains for which there was no room: then nothing is known of the one that is under
/// way, nor need be.
fn is_in_lost(tree: Tree, slot: u64) -> bool {
    tree.now() == LOST && tree.slot(LOST) > slot
}

/// The function with the number `said` is entered, its return address being in `slot`.
pub(crate) extern "C" fn enter(said: u64, slot: u64, slab: usize, depth: u64) {
    let tree = Tree(slab);
    if is_in_lost(tree, slot) {
        tree.set(LOST, field::OUT, 0);
        return tree.count(LOST);
    }
    // SAFETY: there a function finds its return address when it is entered; it has one, be it that of nobody.
    let back = unsafe { (slot as *const u64).read_volatile() };
    let said = Said {
        number: said as u32 & !MARK,
        leaf: said as u32 & MARK != 0,
        depth: depth as u32,
        slot,
        back,
    };
    let module = module_of(back);
    let now = tree.now();
    if module.is_none() && is_restorer(back as usize) {
        let step = Step {
            way: Way::Signal,
            site: 0,
        };
        let interrupted = not_left(tree, now, slot);
        return go_on(tree, interrupted, interrupted, step, said);
    }
    let under_way = live(tree, now, slot);
    if tree.slot(under_way) == slot {
        return follow(tree, under_way, said);
    }
    let (way, site) = match module {
        Some(origin) => (Way::Call, back.wrapping_sub(origin) as u32),
        None => (Way::Outside, called(tree, under_way, slot)),
    };
    go_on(tree, under_way, under_way, Step { way, site }, said);
}

/// To where the call returns that the function of `node` has under way, when a function was entered with its return
/// address in `slot`; 0 if that is unknown.
fn called(tree: Tree, node: u32, slot: u64) -> u32 {
    const PAGE: u64 = 4096;
    let depth = u64::from(tree.part(node, field::DEPTH));
    if depth == 0 {
        let out = tree.part(node, field::OUT);
        return if out & MARK == 0 { out } else { 0 };
    }
    let place = tree.slot(node).wrapping_sub(depth);
    if node == ROOT || place < slot {
        return 0;
    }
    let mut words = [0];
    if place / PAGE == slot / PAGE {
        // SAFETY: on a page of which a word was read just now; return addresses are aligned, or nearly.
        words = unsafe { [(place as *const usize).read_unaligned()] };
    } else if closed::is_closed() || system::peek(place as usize, &mut words) != Ok(1) {
        return 0;
    }
    let [back] = words;
    let origin = module_of(back as u64);
    origin.map_or(0, |origin| (back as u64).wrapping_sub(origin) as u32)
}

/// The innermost node from `node` up whose function was not left when a signal came, to whose handler's return address
/// `slot` points. The frame there tells where the stack was, and whether handlers have one of their own (Linux,
/// `struct rt_sigframe`).
fn not_left(tree: Tree, node: u32, slot: u64) -> u32 {
    const DISABLED: usize = Stack::NONE as usize;
    let frame = slot as usize;
    let own = frame.wrapping_add(Frame::STACK);
    let pointer = frame.wrapping_add(Frame::REGISTERS + 8 * register::RSP);
    let read = pointed::words(own).zip(pointed::words(pointer));
    let Some(([start, flags, size], [pointer])) = read else {
        return node;
    };
    let is_on_own =
        |address: u64| flags & DISABLED == 0 && (address as usize).wrapping_sub(start) < size;
    let pointer = pointer as u64;
    let mut node = node;
    while node != ROOT {
        let at = tree.slot(node);
        let is_left = match is_on_own(at) == is_on_own(pointer) {
            true => at < pointer,
            false => is_on_own(at),
        };
        if !is_left {
            break;
        }
        node = tree.part(node, field::AFTER);
    }
    node
}

/// The innermost node from `node` up that is under way when a slot is at `slot`: it lies above, or there and announced
/// a tail call.
fn live(tree: Tree, node: u32, slot: u64) -> u32 {
    let mut node = node;
    while tree.slot(node) <= slot {
        let follows = tree.slot(node) == slot && tree.part(node, field::OUT) & MARK != 0;
        if follows {
            return node;
        }
        node = tree.part(node, field::AFTER);
    }
    node
}

/// A function is entered by the tail call that `node` announced. One that is in the same run of tail calls is
/// entered again.
fn follow(tree: Tree, node: u32, said: Said) {
    let site = tree.part(node, field::OUT);
    tree.set(node, field::OUT, 0);
    let after = tree.part(node, field::AFTER);
    if node == LOST {
        tree.count(LOST);
        if said.leaf {
            tree.set_now(after);
        }
        return;
    }
    let mut run = node;
    loop {
        if tree.part(run, field::FUNCTION) == said.number {
            // Who jumps to its own entry goes on, and is not called.
            if run != node {
                tree.count(run);
            }
            return arrive(tree, run, after, said);
        }
        if tree.part(run, field::WAY) != Way::Tail as u32 {
            break;
        }
        run = tree.part(run, field::PARENT);
    }
    let step = Step {
        way: Way::Tail,
        site,
    };
    go_on(tree, node, after, step, said);
}

/// The chain of `parent` goes on by `step`, and is `after` again when that is over.
fn go_on(tree: Tree, parent: u32, after: u32, step: Step, said: Said) {
    let Some(node) = child(tree, parent, after, step, said) else {
        tree.count(LOST);
        if !said.leaf {
            tree.set(LOST, field::AFTER, after);
            tree.set_slot(LOST, said.slot);
        }
        return tree.set_now(if said.leaf { after } else { LOST });
    };
    tree.set_back(node, said.back);
    if matches!(step.way, Way::Call | Way::Tail) {
        let back = match step.way {
            Way::Tail => step.site as u8,
            _ => said.back as u8,
        };
        let way = (back ^ way_of(said.number)) & WAY_BITS;
        let at = u32::from(field::WAYS) + u32::from(way);
        tree.small(parent.wrapping_add(at)).store(node, Relaxed);
    }
    tree.count(node);
    arrive(tree, node, after, said);
}

/// The function of `node` begins.
fn arrive(tree: Tree, node: u32, after: u32, said: Said) {
    if said.leaf {
        return tree.set_now(after);
    }
    tree.set_slot(node, said.slot);
    tree.set_now(node);
}

/// The child of `parent` by this step, made if it is not there; `None` where there is no room.
fn child(tree: Tree, parent: u32, after: u32, step: Step, said: Said) -> Option<u32> {
    let first = tree.part(parent, field::CHILD);
    let mut node = first;
    while node != 0 {
        let same = tree.part(node, field::FUNCTION) == said.number
            && tree.part(node, field::SITE) == step.site
            && tree.part(node, field::WAY) == step.way as u32;
        if same {
            return Some(node);
        }
        node = tree.part(node, field::SIBLING);
    }
    let room = tree.small(END).load(Relaxed).checked_sub(NODE)?;
    if tree.small(TOP).load(Relaxed) > room {
        return None;
    }
    let node = tree.small(TOP).fetch_add(NODE, Relaxed);
    if node > room {
        return None;
    }
    tree.set(node, field::FUNCTION, said.number);
    tree.set(node, field::DEPTH, said.depth);
    tree.set(node, field::AFTER, after);
    tree.set(node, field::PARENT, parent);
    tree.set(node, field::SITE, step.site);
    tree.set(node, field::WAY, step.way as u32);
    let children = tree.small(parent.wrapping_add(field::CHILD.into()));
    let mut before = first;
    loop {
        tree.set(node, field::SIBLING, before);
        match children.compare_exchange(before, node, Relaxed, Relaxed) {
            Ok(_) => return Some(node),
            Err(other) => before = other,
        }
    }
}

/// A function is left, while the stack pointer is at `slot`.
pub(crate) extern "C" fn leave(_: u64, slot: u64, slab: usize) {
    let tree = Tree(slab);
    if is_in_lost(tree, slot) {
        return;
    }
    let mut node = tree.now();
    while tree.slot(node) < slot {
        node = tree.part(node, field::AFTER);
    }
    if tree.slot(node) == slot {
        node = tree.part(node, field::AFTER);
    }
    tree.set_now(node);
}

/// Control arrives in the function with the number `said`, or in one that is not observed, by no return, while the stack pointer is `stack`.
pub(crate) extern "C" fn land(said: u64, stack: u64, slab: usize) {
    let tree = Tree(slab);
    if is_in_lost(tree, stack) {
        return;
    }
    let mut node = tree.now();
    while tree.slot(node) < stack {
        node = tree.part(node, field::AFTER);
    }
    // Out of a handler that has a stack of its own, above this one.
    let mut own = node;
    while own != ROOT && tree.part(own, field::FUNCTION) != said as u32 {
        own = tree.part(own, field::AFTER);
    }
    tree.set_now(if own == ROOT { node } else { own });
}

/// A function jumps to `target` from the site `said`, while the stack pointer is at `slot`.
pub(crate) extern "C" fn jump(said: u64, slot: u64, slab: usize, target: usize) {
    let tree = Tree(slab);
    if !is_observed(target) {
        return leave(0, slot, slab);
    }
    tree.set(tree.now(), field::OUT, said as u32 | MARK);
}

/// Where the text of the module starts in which `address` is, if it is observed.
fn module_of(address: u64) -> Option<u64> {
    let inside =
        |region: &&armed::Region| (address as usize).wrapping_sub(region.start) < region.length;
    armed::regions()
        .find(inside)
        .map(|region| region.origin as u64)
}

/// Whether an observed function begins at `address`: there a jump, or a short one to such a jump, leads to where it is
/// entered, in front of which stands its name. Who only jumps to one has another.
fn is_observed(address: usize) -> bool {
    const JUMP: u8 = 0xe9;
    const SHORT_JUMP: u8 = 0xeb;
    let holds = |region: &armed::Region, address: usize| {
        address.wrapping_sub(region.start) < region.length.saturating_sub(5)
    };
    let Some(region) = armed::regions().find(|region| holds(region, address)) else {
        return false;
    };
    // SAFETY: two bytes of text that is mapped and may be read.
    let [first, near] = unsafe { (address as *const [u8; 2]).read() };
    let jump = match first {
        SHORT_JUMP => address.wrapping_add_signed(2 + near.cast_signed() as isize),
        _ => address,
    };
    if !holds(region, jump) {
        return false;
    }
    // SAFETY: five bytes of text, as above.
    let (first, way) = unsafe {
        let first = (jump as *const u8).read();
        (first, ((jump + 1) as *const i32).read_unaligned())
    };
    let name_at = (jump + 5)
        .wrapping_add_signed(way as isize)
        .wrapping_sub(NAME);
    let leads = |other: &armed::Region| {
        let inside = name_at.wrapping_sub(other.companions);
        other.origin == region.origin && inside < other.companions_length.saturating_sub(NAME)
    };
    if first != JUMP || !armed::regions().any(leads) {
        return false;
    }
    // SAFETY: so many bytes of what is mapped for as long as its module is, and may be read.
    let name = unsafe { (name_at as *const u32).read_unaligned() };
    address.wrapping_sub(region.origin) == name as usize
}

/// Addresses of which is known that no handler returns there, and those where one does.
static OTHERS: [AtomicUsize; 64] = [const { AtomicUsize::new(0) }; 64];
static RESTORERS: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];

/// The program is about to close a sandbox, in which nobody asks what stands at an address: it is noted where the handlers that
/// are there return.
pub(crate) fn before_closing() {
    if slabs::size() == 0 || !slabs::have(Contents::Chains) {
        return;
    }
    for signal in 1..=64 {
        if let Some(address) = system::restorer_of(signal) {
            is_restorer(address);
        }
    }
}

/// Whether handlers of signals return to `address`: by our way, or where these bytes stand, by which unwinders and debuggers know that, too
/// (`mov rax, 15; syscall`).
fn is_restorer(address: usize) -> bool {
    const BYTES: [u64; 2] = [0x0f00_0000_0fc0_c748, 0x05];
    let is_known = RESTORERS.iter().any(|one| one.load(Relaxed) == address);
    if is_known || address == origins::way_back() {
        return true;
    }
    let other = OTHERS.get(address / 2 % OTHERS.len());
    let is_other = other.is_some_and(|other| other.load(Relaxed) == address);
    if is_other || closed::is_closed() {
        return false;
    }
    let mut words = [0; 2];
    let read = system::peek(address, &mut words).unwrap_or(0);
    let [first, second] = words;
    let is = read == 2 && first as u64 == BYTES[0] && second as u64 & 0xff == BYTES[1];
    if !is {
        if let Some(other) = other {
            other.store(address, Relaxed);
        }
        return false;
    }
    let free = RESTORERS.iter().find(|one| one.load(Relaxed) == 0);
    if let Some(free) = free {
        free.store(address, Relaxed);
    }
    true
}
