//! The C library's functions on signals, kept from hiding SIGTRAP.
//!
//! An `int3` that is met while SIGTRAP is blocked ends the program. So these functions stand before the C library's of the
//! same names: they take SIGTRAP out of every set of signals that is to be blocked, and keep what
//! the program wants done on SIGTRAP instead of telling the kernel; everything else goes
//! on to the functions of the C library. Without an armed image they change nothing. Beside them stand those that execute another
//! program, which is to find SIGTRAP as without us, those that fork, a few functions after which text is to be the program's
//! own again (`given.rs`), and some before which what is ours is to be told from what is the program's (`limits.rs`,
//! `preloaded.rs`); and `syscall`, which makes any system call (`numbered.rs`).
//!
//! Not seen: masks that a program sets by system calls of its own, or in the saved context of a signal.

use core::arch::naked_asm;
use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::ahead;
use crate::arguments::keeping_arguments;
use crate::closed;
use crate::contexts::{SET, SWAP};
use crate::executing::{hand_on, hand_on_own};
use crate::fatal;
use crate::forked::{self, Begin};
use crate::given;
use crate::handlers;
use crate::limits::{self, Limit};
use crate::notified::{self, Event};
use crate::numbered::SYSCALL;
use crate::pointed;
use crate::postponed;
use crate::preloaded;
use crate::slabs;
use crate::stacks;
use crate::symbols;
use crate::system::{self, SIGTRAP, SIGTRAP_BIT, Stack};
use crate::tracks;
use crate::trap::{DEFAULT, Disposition, IGNORE, NO_DEFER, RESET};

/// Whether traps may be met, now or later.
pub(crate) static WATCHING: AtomicBool = AtomicBool::new(false);

/// From now on SIGTRAP stays deliverable; whether it did not before.
pub(crate) fn watch() -> bool {
    !WATCHING.swap(true, Ordering::Relaxed)
}

pub(crate) fn is_watching() -> bool {
    WATCHING.load(Ordering::Relaxed)
}

/// `sigset_t` of the C libraries.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Set([u64; 16]);

/// `struct sigaction` of the C libraries.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Action {
    handler: usize,
    mask: Set,
    flags: c_int,
    restorer: usize,
}

impl Action {
    /// As the system has it.
    pub(crate) fn words(&self) -> [usize; 4] {
        let (flags, mask) = (self.flags as u32 as usize, self.mask.0[0] as usize);
        [self.handler, flags, self.restorer, mask]
    }

    /// That of [`Self::words`].
    pub(crate) fn of([handler, flags, restorer, signals]: [usize; 4]) -> Self {
        let mut mask = Set([0; 16]);
        mask.0[0] = signals as u64;
        Self {
            handler,
            mask,
            flags: flags as c_int,
            restorer,
        }
    }
}

/// Calls `with` with the set at `set`, without SIGTRAP if there may be traps.
///
/// # Safety
/// `set` is null or points at a set.
unsafe fn without_trap<R>(set: *const Set, with: impl FnOnce(*const Set) -> R) -> R {
    if set.is_null() || !is_watching() {
        return with(set);
    }
    // SAFETY: the caller's.
    let mut copy = unsafe { *set };
    copy.0[0] &= !SIGTRAP_BIT;
    with(&raw const copy)
}

/// The same for who waits with this set, which is for the system alone to read: it says where that cannot be.
fn for_a_wait<R>(set: *const Set, with: impl FnOnce(*const Set) -> R) -> R {
    let told = is_watching()
        .then(|| pointed::words(set as usize))
        .flatten();
    let Some([signals]) = told else {
        return with(set);
    };
    let mut copy = Set([0; 16]);
    copy.0[0] = signals as u64 & !SIGTRAP_BIT;
    with(&raw const copy)
}

/// The next definition of a function after ours, looked up before the program's own start.
pub(crate) struct Real {
    name: symbols::Name,
    pub(crate) address: AtomicUsize,
}

impl Real {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self {
            name: symbols::Name::of(name),
            address: AtomicUsize::new(0),
        }
    }

    pub(crate) fn address(&self) -> usize {
        let known = self.address.load(Ordering::Relaxed);
        if known == 0 {
            // Somebody calls before our start: another library that was asked to be the first.
            look_up();
            return self.address.load(Ordering::Relaxed);
        }
        known
    }
}

/// Looks everything up that no earlier call has.
pub(crate) fn look_up() {
    let names = REALS.map(|real| &real.name);
    symbols::after_ours(&names, |number, address, module| {
        let Some(real) = REALS.get(number) else {
            return;
        };
        real.address.store(address, Ordering::Relaxed);
        if core::ptr::eq(*real, &raw const SIGACTION) {
            handlers::told_by_others(!symbols::is_c_librarys(module));
        }
    });
}

/// Defines the functions: how each changes its arguments before the real one gets them.
macro_rules! stand_before {
    (besides $($other:ident),*; $($(#[$attribute:meta])* $real:ident: $name:ident($($argument:ident: $type:ty),*) -> $result:ty = $failed:expr, |$call:ident| $body:expr)*) => {
        $(static $real: Real = Real::new(
            // SAFETY: one zero byte, at the end.
            unsafe { CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes()) }
        );)*
        static REALS: [&Real; [$(stringify!($other),)* $(stringify!($real)),*].len()] = [$(&$other,)* $(&$real),*];
        $(
            /// Stands before the C library's function of this name.
            $(#[$attribute])*
            #[cfg_attr(feature = "carried", unsafe(no_mangle))]
            pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> $result {
                type Function = unsafe extern "C" fn($($type),*) -> $result;
                let address = $real.address();
                let $call = |$($argument: $type),*| {
                    if address == 0 {
                        system::lack();
                        return $failed;
                    }
                    // SAFETY: the C library's function of this name has this type, and gets what
                    // the program gave, or a copy of it that lives during the call.
                    unsafe { transmute::<usize, Function>(address)($($argument),*) }
                };
                $body
            }
        )*
    };
}

pub(crate) const BLOCK_OR_SET: [c_int; 2] = [0, 2];
/// What `sigset` is told of a signal that it is to block.
const HOLD: usize = 2;
const ERROR: usize = usize::MAX;

/// Takes SIGTRAP out of a set unless it is to be unblocked.
///
/// # Safety
/// As for [`without_trap`].
unsafe fn masked<R>(how: c_int, set: *const Set, with: impl FnOnce(*const Set) -> R) -> R {
    if BLOCK_OR_SET.contains(&how) {
        // SAFETY: the caller's.
        unsafe { without_trap(set, with) }
    } else {
        with(set)
    }
}

/// What the program wants done on SIGTRAP, instead of what it wanted before.
fn exchange(wanted: &Disposition) -> usize {
    let before = Disposition::get().handler;
    wanted.set();
    before
}

/// `sigaction` for SIGTRAP.
///
/// # Safety
/// Both are null or point at actions.
unsafe fn trap_action(new: *const Action, old: *mut Action) -> c_int {
    let before = Disposition::get();
    if !new.is_null() {
        // SAFETY: the caller's.
        let new = unsafe { &*new };
        let wanted = Disposition {
            handler: new.handler,
            flags: new.flags as u32 as u64,
            mask: new.mask.0[0],
        };
        wanted.set();
    }
    if !old.is_null() {
        let mut mask = Set([0; 16]);
        mask.0[0] = before.mask;
        // SAFETY: the caller's.
        unsafe {
            (*old).handler = before.handler;
            (*old).mask = mask;
            (*old).flags = before.flags as c_int;
        }
    }
    0
}

/// `sigaction` for any signal.
///
/// # Safety
/// Both are null or point at actions.
pub(crate) unsafe fn any_action(
    signal: c_int,
    new: *const Action,
    old: *mut Action,
    real: impl FnOnce(*const Action, *mut Action) -> c_int,
) -> c_int {
    // SAFETY: the caller's.
    if let Some(new) = unsafe { new.as_ref() } {
        tracks::note_handler(new.handler);
    }
    let real = |new: *const Action, old| {
        let result = real(new, old);
        // SAFETY: the caller's, or `action`'s copy of it.
        if let Some(new) = unsafe { new.as_ref() }.filter(|_| result == 0) {
            unmask_in_handler(signal, new.handler);
        }
        result
    };
    // SAFETY: the caller's.
    unsafe {
        match signal == SIGTRAP && is_watching() {
            true => trap_action(new, old),
            false => action(signal, new, old, real),
        }
    }
}

/// Takes SIGTRAP out of the signals that are blocked in the handler of this one, where who stands between us and the C library has
/// put it there: gcc's thread sanitizer has handlers run with all signals blocked.
fn unmask_in_handler(signal: c_int, handler: usize) {
    if matches!(handler, DEFAULT | IGNORE) || !is_watching() {
        return;
    }
    let Ok(mut action) = system::action_of(signal) else {
        return;
    };
    if action.mask & SIGTRAP_BIT != 0 {
        action.mask &= !SIGTRAP_BIT;
        // SAFETY: it is the action that the signal has, but for its mask.
        let _ = unsafe { system::set_action(signal, &action) };
    }
}

/// `sigaction` for any signal but SIGTRAP.
///
/// # Safety
/// Both are null or point at actions.
unsafe fn action(
    signal: c_int,
    new: *const Action,
    old: *mut Action,
    real: impl FnOnce(*const Action, *mut Action) -> c_int,
) -> c_int {
    // SAFETY: the caller's.
    let copy = unsafe { new.as_ref() }.map(|new| {
        let mut copy = *new;
        if is_watching() {
            copy.mask.0[0] &= !SIGTRAP_BIT;
        }
        copy
    });
    if copy.is_some_and(|new| fatal::asks_for_stack(new.handler, new.flags)) {
        fatal::take_stack_back();
    }
    let new = copy
        .as_ref()
        .map_or(core::ptr::null(), |new| &raw const *new);
    if !handlers::is_ours(signal) {
        return real(new, old);
    }
    let mut result = -1;
    let told = handlers::change(signal, !new.is_null(), || {
        result = real(new, old);
        result == 0
    });
    // SAFETY: the caller's.
    if let (Some(told), Some(old)) = (told, unsafe { old.as_mut() })
        && result == 0
        && let Some(handler) = told.handler(old.handler)
    {
        old.handler = handler;
        old.flags = told.flags(old.flags as u32 as u64) as c_int;
    }
    result
}

/// What `signal` asks of SIGTRAP; and what System V's has asked, whose handlers are called once.
const LASTING: u64 = 0;
const ONCE: u64 = RESET | NO_DEFER;

/// What `__sysv_signal` asks for: in other C libraries than glibc it is another name of `signal`.
fn of_system_v() -> u64 {
    match SYSV_SIGNAL_2.address() == SIGNAL.address() {
        true => LASTING,
        false => ONCE,
    }
}

/// `signal` and its kin, which ask for these flags: only SIGTRAP is ours.
fn simple(
    signal: c_int,
    handler: usize,
    flags: u64,
    real: impl FnOnce(c_int, usize) -> usize,
) -> usize {
    tracks::note_handler(handler);
    let real = |signal, handler| {
        let before = real(signal, handler);
        if before != ERROR {
            unmask_in_handler(signal, handler);
        }
        before
    };
    if handlers::is_ours(signal) {
        let mut result = ERROR;
        let told = handlers::change(signal, true, || {
            result = real(signal, handler);
            result != ERROR
        });
        return told.and_then(|told| told.handler(result)).unwrap_or(result);
    }
    if signal != SIGTRAP || !is_watching() {
        return real(signal, handler);
    }
    exchange(&Disposition {
        handler,
        flags,
        mask: 0,
    })
}

/// `sigaltstack`.
///
/// # Safety
/// Where `real` gives 0 it has filled what is at `old`, if that is not null.
pub(crate) unsafe fn name_stack(
    new: *const Stack,
    old: *mut Stack,
    real: impl FnOnce(*const Stack, *mut Stack) -> c_int,
) -> c_int {
    let wanted = is_watching()
        .then(|| pointed::words(new as usize))
        .flatten();
    let wanted = wanted.map(|[start, flags, length]: [usize; 3]| {
        let flags = flags as c_int;
        Stack {
            start,
            flags,
            length,
        }
    });
    if let Some(wanted) = wanted {
        stacks::before_naming(&wanted);
    }
    let result = real(new, old);
    if result == 0 {
        // SAFETY: the caller's.
        unsafe { fatal::hide_stack(old) };
        if wanted.is_some_and(|wanted| wanted.flags & Stack::NONE != 0) {
            stacks::forget();
        }
    }
    result
}

/// `mremap` with these flags, to so many bytes.
pub(crate) fn moved(flags: c_int, length: usize, real: impl FnOnce() -> usize) -> usize {
    const FIXED: c_int = 2;
    let place = real();
    if flags & FIXED != 0 && place != ERROR {
        given::after_moving(place, length);
    }
    place
}

stand_before! {
    besides SYSCALL, CLONE, CLONE_2, SET, SWAP;
    SIGACTION: sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int = -1, |real| {
        // SAFETY: what `sigaction` asks of its callers.
        unsafe { any_action(signal, new, old, |new, old| real(signal, new, old)) }
    }
    SIGACTION_2: __sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int = -1, |real| {
        // SAFETY: as above: another name of it.
        unsafe { any_action(signal, new, old, |new, old| real(signal, new, old)) }
    }
    SIGNAL: signal(signal: c_int, handler: usize) -> usize = ERROR, |real| simple(signal, handler, LASTING, real)
    SSIGNAL: ssignal(signal: c_int, handler: usize) -> usize = ERROR, |real| simple(signal, handler, LASTING, real)
    BSD_SIGNAL: bsd_signal(signal: c_int, handler: usize) -> usize = ERROR, |real| simple(signal, handler, LASTING, real)
    SYSV_SIGNAL: sysv_signal(signal: c_int, handler: usize) -> usize = ERROR, |real| simple(signal, handler, ONCE, real)
    SYSV_SIGNAL_2: __sysv_signal(signal: c_int, handler: usize) -> usize = ERROR, |real| simple(signal, handler, of_system_v(), real)
    SIGSET: sigset(signal: c_int, handler: usize) -> usize = ERROR, |real| {
        // To hold it is to block it, which nobody can; what is done with it stays as it is.
        match signal == SIGTRAP && handler == HOLD && is_watching() {
            true => Disposition::get().handler,
            false => simple(signal, handler, LASTING, real),
        }
    }
    SIGIGNORE: sigignore(signal: c_int) -> c_int = -1, |real| {
        let ignore = |signal, _| match real(signal) {
            0 => 0,
            _ => ERROR,
        };
        match simple(signal, IGNORE, LASTING, ignore) {
            ERROR => -1,
            _ => 0,
        }
    }
    SIGPROCMASK: sigprocmask(how: c_int, set: *const Set, old: *mut Set) -> c_int = -1, |real| {
        // SAFETY: what `sigprocmask` asks of its callers.
        unsafe { masked(how, set, |set| real(how, set, old)) }
    }
    PTHREAD_SIGMASK: pthread_sigmask(how: c_int, set: *const Set, old: *mut Set) -> c_int = 22, |real| {
        // SAFETY: what `pthread_sigmask` asks of its callers.
        unsafe { masked(how, set, |set| real(how, set, old)) }
    }
    SIGHOLD: sighold(signal: c_int) -> c_int = -1, |real| {
        if signal == SIGTRAP && is_watching() { 0 } else { real(signal) }
    }
    SIGBLOCK: sigblock(mask: c_int) -> c_int = -1, |real| {
        real(if is_watching() { mask & !(SIGTRAP_BIT as c_int) } else { mask })
    }
    SIGSETMASK: sigsetmask(mask: c_int) -> c_int = -1, |real| {
        real(if is_watching() { mask & !(SIGTRAP_BIT as c_int) } else { mask })
    }
    SIGPAUSE: __sigpause(what: c_int, is_signal: c_int) -> c_int = -1, |real| {
        let is_mask = is_signal == 0 && is_watching();
        real(if is_mask { what & !(SIGTRAP_BIT as c_int) } else { what }, is_signal)
    }
    SIGSUSPEND: sigsuspend(set: *const Set) -> c_int = -1, |real| for_a_wait(set, real)
    PPOLL: ppoll(files: *mut c_void, count: usize, time: *const c_void, set: *const Set) -> c_int = -1, |real| for_a_wait(set, |set| real(files, count, time, set))
    PPOLL_CHK: __ppoll_chk(files: *mut c_void, count: usize, time: *const c_void, set: *const Set, size: usize) -> c_int = -1, |real| {
        // The C library's headers have callers of `ppoll` call this.
        for_a_wait(set, |set| real(files, count, time, set, size))
    }
    PSELECT: pselect(count: c_int, read: *mut c_void, write: *mut c_void, other: *mut c_void, time: *const c_void, set: *const Set) -> c_int = -1, |real| for_a_wait(set, |set| real(count, read, write, other, time, set))
    EPOLL_PWAIT: epoll_pwait(file: c_int, events: *mut c_void, most: c_int, time: c_int, set: *const Set) -> c_int = -1, |real| for_a_wait(set, |set| real(file, events, most, time, set))
    EPOLL_PWAIT2: epoll_pwait2(file: c_int, events: *mut c_void, most: c_int, time: *const c_void, set: *const Set) -> c_int = -1, |real| for_a_wait(set, |set| real(file, events, most, time, set))
    SIGALTSTACK: sigaltstack(new: *const Stack, old: *mut Stack) -> c_int = -1, |real| {
        // SAFETY: what `sigaltstack` asks of its callers.
        unsafe { name_stack(new, old, real) }
    }
    PTHREAD_CREATE: pthread_create(thread: *mut c_void, attributes: *const c_void, start: usize, argument: *mut c_void) -> c_int = 11, |real| {
        slabs::create(|start, argument| real(thread, attributes, start, argument), start, argument)
    }
    THRD_CREATE: thrd_create(thread: *mut c_void, start: usize, argument: *mut c_void) -> c_int = 2, |real| {
        slabs::create(|start, argument| real(thread, start, argument), start, argument)
    }
    TIMER_CREATE: timer_create(clock: c_int, event: *const Event, timer: *mut c_void) -> c_int = -1, |real| {
        // SAFETY: what `timer_create` asks of its callers.
        unsafe { notified::by_door(event, |event| real(clock, event, timer)) }
    }
    MQ_NOTIFY: mq_notify(queue: c_int, event: *const Event) -> c_int = -1, |real| {
        // SAFETY: what `mq_notify` asks of its callers.
        unsafe { notified::by_door(event, |event| real(queue, event)) }
    }
    GETADDRINFO_A: getaddrinfo_a(mode: c_int, list: *mut c_void, count: c_int, event: *const Event) -> c_int = -11, |real| {
        // SAFETY: what `getaddrinfo_a` asks of its callers.
        unsafe { notified::by_door(event, |event| real(mode, list, count, event)) }
    }
    MPROTECT: mprotect(address: usize, length: usize, protection: c_int) -> c_int = -1, |real| {
        given::before_protecting(address, length, protection);
        real(address, length, protection)
    }
    PKEY_MPROTECT: pkey_mprotect(address: usize, length: usize, protection: c_int, key: c_int) -> c_int = -1, |real| {
        given::before_protecting(address, length, protection);
        real(address, length, protection, key)
    }
    MREMAP: mremap(old: usize, old_length: usize, length: usize, flags: c_int, new: usize) -> usize = ERROR, |real| {
        moved(flags, length, || real(old, old_length, length, flags, new))
    }
    MUNMAP: munmap(address: usize, length: usize) -> c_int = -1, |real| {
        if is_watching() {
            stacks::before_unmapping(address, length);
        }
        real(address, length)
    }
    PTRACE: ptrace(request: usize, process: usize, address: usize, data: usize) -> usize = ERROR, |real| {
        postponed::asking(request as u32 as usize, || real(request, process, address, data))
    }
    PRCTL: prctl(option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int = -1, |real| {
        closed::controlling(option, || real(option, a, b, c, d))
    }
    SETUID: setuid(user: u32) -> c_int = -1, |real| {
        ahead::before_becoming(user);
        real(user)
    }
    SETEUID: seteuid(user: u32) -> c_int = -1, |real| {
        ahead::before_becoming(user);
        real(user)
    }
    SETREUID: setreuid(user: u32, effective: u32) -> c_int = -1, |real| {
        ahead::before_becoming(effective);
        real(user, effective)
    }
    SETRESUID: setresuid(user: u32, effective: u32, saved: u32) -> c_int = -1, |real| {
        ahead::before_becoming(effective);
        real(user, effective, saved)
    }
    #[cfg_attr(not(feature = "carried"), expect(non_snake_case, reason = "it is called so"))]
    FORK: _Fork() -> c_int = -1, |real| forked::forking(|| real() as isize) as c_int
    EXECVE: execve(path: usize, arguments: usize, environment: usize) -> c_int = -1, |real| {
        hand_on(environment, |environment| real(path, arguments, environment))
    }
    EXECV: execv(path: usize, arguments: usize) -> c_int = -1, |real| {
        // SAFETY: what `execv` asks of its callers.
        hand_on_own(|| real(path, arguments), |other| unsafe { execve(path, arguments, other) })
    }
    EXECVP: execvp(path: usize, arguments: usize) -> c_int = -1, |real| {
        // SAFETY: what `execvp` asks of its callers.
        hand_on_own(|| real(path, arguments), |other| unsafe { execvpe(path, arguments, other) })
    }
    EXECVPE: execvpe(path: usize, arguments: usize, environment: usize) -> c_int = -1, |real| {
        hand_on(environment, |environment| real(path, arguments, environment))
    }
    FEXECVE: fexecve(file: c_int, arguments: usize, environment: usize) -> c_int = -1, |real| {
        hand_on(environment, |environment| real(file, arguments, environment))
    }
    EXECVEAT: execveat(folder: c_int, path: usize, arguments: usize, environment: usize, flags: c_int) -> c_int = -1, |real| {
        hand_on(environment, |environment| real(folder, path, arguments, environment, flags))
    }
    SPAWN: posix_spawn(child: usize, path: usize, actions: usize, attributes: usize, arguments: usize, environment: usize) -> c_int = 38, |real| {
        hand_on(environment, |environment| real(child, path, actions, attributes, arguments, environment))
    }
    SPAWNP: posix_spawnp(child: usize, path: usize, actions: usize, attributes: usize, arguments: usize, environment: usize) -> c_int = 38, |real| {
        hand_on(environment, |environment| real(child, path, actions, attributes, arguments, environment))
    }
    MLOCKALL: mlockall(flags: c_int) -> c_int = -1, |real| real(slabs::locked(flags))
    CHROOT: chroot(path: *const c_void) -> c_int = -1, |real| {
        ahead::look();
        let result = real(path);
        if result == 0 {
            preloaded::after_leaving_root();
        }
        result
    }
    SET_LIMIT: setrlimit(resource: c_int, new: *const Limit) -> c_int = -1, |real| {
        // SAFETY: what `setrlimit` asks of its callers.
        unsafe { limits::change(resource, new, null_mut(), |new, _| real(resource, new)) }
    }
    SET_LIMIT_64: setrlimit64(resource: c_int, new: *const Limit) -> c_int = -1, |real| {
        // SAFETY: as above: another name of it.
        unsafe { limits::change(resource, new, null_mut(), |new, _| real(resource, new)) }
    }
    LIMIT: getrlimit(resource: c_int, to: *mut Limit) -> c_int = -1, |real| {
        // SAFETY: what `getrlimit` asks of its callers.
        unsafe { limits::change(resource, null(), to, |_, to| real(resource, to)) }
    }
    LIMIT_64: getrlimit64(resource: c_int, to: *mut Limit) -> c_int = -1, |real| {
        // SAFETY: as above: another name of it.
        unsafe { limits::change(resource, null(), to, |_, to| real(resource, to)) }
    }
    CHANGE_LIMIT: prlimit(process: c_int, resource: c_int, new: *const Limit, old: *mut Limit) -> c_int = -1, |real| {
        if !limits::is_mine(process) {
            return real(process, resource, new, old);
        }
        // SAFETY: what `prlimit` asks of its callers.
        unsafe { limits::change(resource, new, old, |new, old| real(process, resource, new, old)) }
    }
    CHANGE_LIMIT_64: prlimit64(process: c_int, resource: c_int, new: *const Limit, old: *mut Limit) -> c_int = -1, |real| {
        if !limits::is_mine(process) {
            return real(process, resource, new, old);
        }
        // SAFETY: as above: another name of it.
        unsafe { limits::change(resource, new, old, |new, old| real(process, resource, new, old)) }
    }
    ATTRIBUTE_MASK: pthread_attr_setsigmask_np(attributes: *mut c_void, set: *const Set) -> c_int = 22, |real| {
        // SAFETY: what `pthread_attr_setsigmask_np` asks of its callers.
        unsafe { without_trap(set, |set| real(attributes, set)) }
    }
}

static CLONE: Real = Real::new(c"clone");
static CLONE_2: Real = Real::new(c"__clone");

/// Defines a name of `clone`.
macro_rules! clone {
    ($name:ident) => {
        /// Stands before the C library's function of this name.
        // SAFETY: called as the C library's function. What may be an argument is saved around the call, at which the stack is
        // aligned; it is left by a jump, so that whoever is called so finds what it would without us, or what is to be told.
        #[unsafe(naked)]
        #[cfg_attr(feature = "carried", unsafe(no_mangle))]
        unsafe extern "C" fn $name() {
            naked_asm!(
                keeping_arguments!("lea rdi, [rsp + 8]", "call {before}", "mov r11, rax"),
                "jmp r11",
                before = sym before_cloning,
            )
        }
    };
}

clone! { clone }
clone! { __clone }

/// What is to be called, and what it is to be told. It is glibc's if it has two names; other libraries have functions that are called
/// `clone`, too.
///
/// # Safety
/// As for `clone`, if it is that.
unsafe extern "C" fn before_cloning(arguments: &mut [usize; 6]) -> usize {
    let address = CLONE.address();
    if address == 0 {
        return fail as *const () as usize;
    }
    let [function, stack, flags, argument, ..] = arguments;
    if address == CLONE_2.address() {
        let told = Begin {
            function: *function,
            argument: *argument,
            stack: *stack,
        };
        // SAFETY: the caller's.
        let begin = unsafe { forked::before_cloning(told, *flags) };
        (*function, *argument, *stack) = (begin.function, begin.argument, begin.stack);
    }
    address
}

pub(crate) extern "C" fn fail() -> c_int {
    -1
}

const _: () = assert!(size_of::<Action>() == 152);
