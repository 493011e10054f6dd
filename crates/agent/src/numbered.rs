//! System calls that a program makes by number, with the C library's `syscall`. Those of which a function of their own is stood
//! before are changed as that changes them; what the C library does with its arguments besides is not done.
//!
//! A program may give this function any numbers. What it points at is read where it can be read; otherwise the system finds
//! what is wrong with it.

use core::arch::naked_asm;
use core::ffi::c_int;
use core::mem::{offset_of, transmute};
use core::ptr::null;

use crate::arguments::keeping_arguments;
use crate::closed;
use crate::executing::hand_on;
use crate::forked::{self, CLONE, CLONE_3, FORK};
use crate::given;
use crate::pointed::words;
use crate::postponed;
use crate::signals::{Action, BLOCK_OR_SET, Real, any_action, is_watching, moved, name_stack};
use crate::stacks;
use crate::system::{SIGTRAP_BIT, Stack};
use crate::trap;

pub(crate) static SYSCALL: Real = Real::new(c"syscall");

const PROTECT: usize = 10;
const UNMAP: usize = 11;
const SIGNAL_ACTION: usize = 13;
const SIGNAL_MASK: usize = 14;
const REMAP: usize = 25;
const EXECUTE: usize = 59;
const TRACE: usize = 101;
const SUSPEND: usize = 130;
const HANDLERS_STACK: usize = 131;
const CONTROL: usize = 157;
const SELECT: usize = 270;
const POLL: usize = 271;
const WAIT: usize = 281;
const SANDBOX: usize = 317;
const EXECUTE_AT: usize = 322;
const PROTECT_BY_KEY: usize = 329;
const WAIT_2: usize = 441;

/// The calls of which something is to be known or changed, one bit each.
static OURS: [u64; 7] = bits(&[
    PROTECT,
    UNMAP,
    SIGNAL_ACTION,
    SIGNAL_MASK,
    REMAP,
    CLONE,
    FORK,
    EXECUTE,
    TRACE,
    SUSPEND,
    HANDLERS_STACK,
    CONTROL,
    SELECT,
    POLL,
    WAIT,
    SANDBOX,
    EXECUTE_AT,
    PROTECT_BY_KEY,
    CLONE_3,
    WAIT_2,
]);

const fn bits(numbers: &[usize]) -> [u64; 7] {
    let mut bits = [0; 7];
    let mut next = 0;
    while next < numbers.len() {
        bits[numbers[next] / 64] |= 1 << (numbers[next] % 64);
        next += 1;
    }
    bits
}

/// Stands before the C library's function of this name, and goes on there with everything as it was, unless the call is one
/// of [`OURS`].
// SAFETY: called as the C library's function. What may be an argument is saved around the call, at which the stack is aligned; it is
// left by a jump, so that the C library's function finds what it would without us, as does a child that comes back elsewhere.
#[unsafe(naked)]
#[cfg_attr(feature = "carried", unsafe(no_mangle))]
unsafe extern "C" fn syscall() {
    naked_asm!(
        "cmp rdi, {numbers}",
        "jae 2f",
        "bt qword ptr [rip + {ours}], rdi",
        "jnc 2f",
        "cmp rdi, {clone}",
        "je 3f",
        "cmp rdi, {clone_3}",
        "je 3f",
        "jmp {changed}",
        "2: mov r11, [rip + {real} + {address}]",
        "test r11, r11",
        "jz 4f",
        "jmp r11",
        "3:",
        keeping_arguments!("call {forks}"),
        "test al, al",
        "jz 2b",
        "4: jmp {changed}",
        numbers = const 64 * OURS.len(),
        ours = sym OURS,
        clone = const CLONE,
        clone_3 = const CLONE_3,
        real = sym SYSCALL,
        address = const offset_of!(Real, address),
        forks = sym forks,
        changed = sym changed,
    )
}

extern "C" fn forks(number: usize, first: usize, second: usize) -> bool {
    forked::forks(number, first, second)
}

/// `syscall` with a call of [`OURS`] that comes back here, in a child too.
///
/// # Safety
/// As for `syscall`.
unsafe extern "C" fn changed(
    number: usize,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> isize {
    let call = Call {
        number,
        arguments: [a, b, c, d, e, f],
    };
    match number {
        SIGNAL_ACTION => action(call),
        SIGNAL_MASK if BLOCK_OR_SET.contains(&(a as c_int)) => without_trap(call, 1),
        SUSPEND => without_trap(call, 0),
        POLL => without_trap(call, 3),
        WAIT | WAIT_2 => without_trap(call, 4),
        SELECT => select(call),
        HANDLERS_STACK => stack(call),
        PROTECT | PROTECT_BY_KEY => {
            given::before_protecting(a, b, c as c_int);
            call.make()
        }
        UNMAP => {
            if is_watching() {
                stacks::before_unmapping(a, b);
            }
            call.make()
        }
        REMAP => moved(d as c_int, c, || call.make().cast_unsigned()).cast_signed(),
        TRACE => postponed::asking(a, || call.make()),
        CONTROL => closed::controlling(a as c_int, || call.make()),
        // Others of its operations only ask.
        SANDBOX if matches!(a, 0 | 1) => closed::controlling(closed::SET_SANDBOX, || call.make()),
        EXECUTE => executed(call, 2),
        EXECUTE_AT => executed(call, 3),
        CLONE | FORK | CLONE_3 => begin(call),
        _ => call.make(),
    }
}

/// A system call that a program makes.
#[derive(Clone, Copy)]
struct Call {
    number: usize,
    arguments: [usize; 6],
}

impl Call {
    /// With this argument in place of its own.
    fn with(mut self, place: usize, argument: usize) -> Self {
        if let Some(own) = self.arguments.get_mut(place) {
            *own = argument;
        }
        self
    }

    fn make(self) -> isize {
        // SAFETY: (of its callers) whatever the numbers mean to the system is the program's to say.
        type Function =
            unsafe extern "C" fn(usize, usize, usize, usize, usize, usize, usize) -> isize;
        let address = SYSCALL.address();
        if address == 0 {
            return -1;
        }
        let [a, b, c, d, e, f] = self.arguments;
        // SAFETY: the C library's function of this name takes so many numbers at most, and gets what the program gave, or in place of
        // one the address of a copy that lives during the call.
        unsafe { transmute::<usize, Function>(address)(self.number, a, b, c, d, e, f) }
    }
}

/// Makes a call that executes another program in the environment at which its argument at `place` points.
fn executed(call: Call, place: usize) -> isize {
    let environment = call.arguments.get(place).copied().unwrap_or(0);
    hand_on(environment, |environment| {
        call.with(place, environment).make() as c_int
    }) as isize
}

/// Makes a call whose argument at `place` points at a set of signals to be blocked, without SIGTRAP if there may be traps.
fn without_trap(call: Call, place: usize) -> isize {
    let set = call.arguments.get(place).copied().unwrap_or(0);
    match words(set).filter(|_| is_watching()) {
        Some([set]) => {
            let set = set & !(SIGTRAP_BIT as usize);
            call.with(place, (&raw const set) as usize).make()
        }
        None => call.make(),
    }
}

/// The same for `pselect6`, whose last argument points at where the set is and at its size.
fn select(call: Call) -> isize {
    let [.., told] = call.arguments;
    let set = words(told).and_then(|[place, size]: [usize; 2]| Some((words(place)?, size)));
    match set.filter(|_| is_watching()) {
        Some(([set], size)) => {
            let set: usize = set & !(SIGTRAP_BIT as usize);
            let told = [(&raw const set) as usize, size];
            call.with(5, (&raw const told) as usize).make()
        }
        None => call.make(),
    }
}

/// `rt_sigaction`.
fn action(call: Call) -> isize {
    let [signal, new, old, size, ..] = call.arguments;
    let told = words(new).map(Action::of);
    let lacks = |address: usize, is_there: bool| address != 0 && !is_there;
    if size != size_of::<u64>() || lacks(new, told.is_some()) {
        return call.make();
    }
    // What cannot be told the program is not done for it, either.
    if lacks(old, words::<4>(old).is_some()) {
        return call.with(1, 0).make();
    }
    let real = |new: *const Action, old: *mut Action| {
        // SAFETY: null or what this function gives.
        let told = unsafe { new.as_ref() }.map(Action::words);
        let mut before = [0; 4];
        let from = told
            .as_ref()
            .map_or(0, |words| (&raw const *words) as usize);
        let result = call
            .with(1, from)
            .with(2, (&raw mut before) as usize)
            .make();
        // SAFETY: null or what this function gives.
        if let Some(old) = unsafe { old.as_mut() } {
            *old = Action::of(before);
        }
        result as c_int
    };
    let mut before = Action::of([0; 4]);
    let new = told.as_ref().map_or(null(), |told| &raw const *told);
    // SAFETY: null or an action; an action.
    let result = unsafe { any_action(signal as c_int, new, &raw mut before, real) };
    if result == 0 && old != 0 {
        // SAFETY: the program has asked for these four words there, where there is memory.
        unsafe { (old as *mut [usize; 4]).write_unaligned(before.words()) };
    }
    result as isize
}

/// `sigaltstack`.
fn stack(call: Call) -> isize {
    let [new, old, ..] = call.arguments;
    let real = |_: *const Stack, _: *mut Stack| call.make() as c_int;
    // SAFETY: what the system says.
    unsafe { name_stack(new as *const Stack, old as *mut Stack, real) as isize }
}

/// A call that makes a process.
fn begin(call: Call) -> isize {
    let Call { number, arguments } = call;
    let [a, b, ..] = arguments;
    let begins_without = forked::clears_handlers(number, a);
    if !forked::forks(number, a, b) {
        return call.make();
    }
    let result = forked::forking(|| call.make());
    if result == 0 && begins_without {
        trap::stand_again();
    }
    result
}
