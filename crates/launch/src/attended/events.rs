//! What happens to the threads of a program that is attended.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::rc::Rc;

use nix::libc;
use nix::sys::ptrace;
use nix::unistd::Pid;
use tomo_weave::Breakpoint;

use super::Attended;
use super::calm::{Answer, Calming, Lane, Renamed};
use super::space::{Space, Wanted};
use super::system::{self, Go, Status};
use super::tracks::{Keep, Tracks};
use crate::Ended;
use crate::about::{field, has_signal};

type Shared<'p> = Rc<RefCell<Space<'p>>>;

/// A thread.
struct Thread<'p> {
    process: i32,
    space: Option<Shared<'p>>,
    track: Option<usize>,
    /// Whether it runs, or may at any moment.
    runs: bool,
    /// Whether it waits for a child made by `vfork`, and would not stop if it was told to.
    waits: bool,
    /// The instruction before which it is about to enter a handler.
    enters: Option<u64>,
    /// What it is answered, where it is calmed.
    lane: Lane,
    /// What it opens meanwhile in place of something else.
    renamed: Option<Renamed>,
}

/// A run in progress.
pub(super) struct Attending<'p, 'k> {
    first: i32,
    wanted: Option<Wanted<'p>>,
    calming: Option<Calming>,
    threads: HashMap<i32, Thread<'p>>,
    /// Threads that were heard of before whoever made them said so.
    early: HashSet<i32>,
    /// What happened while something else was waited for.
    later: VecDeque<(i32, Status)>,
    tracks: Tracks<'k>,
    handlers: Vec<u64>,
    ended: Option<Ended>,
    /// Why nobody attends any more.
    problem: Option<io::Error>,
}

/// A system call that failed since the thread was killed meanwhile is none of ours: its end comes by itself.
fn unless_gone<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err(error) => Err(error),
    }
}

fn go(thread: i32, how: Go, signal: i32) -> io::Result<()> {
    unless_gone(system::go(thread, how, signal)).map(|_| ())
}

fn registers(thread: i32) -> io::Result<Option<libc::user_regs_struct>> {
    unless_gone(ptrace::getregs(Pid::from_raw(thread)).map_err(io::Error::from))
}

/// Why a signal came, as the kernel says it.
fn code(thread: i32) -> Option<i32> {
    let info = ptrace::getsiginfo(Pid::from_raw(thread));
    info.ok().map(|info| info.si_code)
}

/// Whether a thread has trapped because it made a step.
fn is_by_step(thread: i32) -> bool {
    code(thread).is_some_and(|code| BY_STEP.contains(&code))
}

/// Whether a thread has trapped because it has stepped over the instruction at `place`, which may trap by itself: then the
/// signal is the program's.
fn has_stepped(thread: i32, place: u64) -> bool {
    const INT1: u8 = 0xf1;
    let begins = || ptrace::read(Pid::from_raw(thread), place as ptrace::AddressType);
    let is_own = || begins().is_ok_and(|word| word.to_le_bytes()[0] == INT1);
    is_by_step(thread) && (code(thread) == Some(libc::TRAP_TRACE) || !is_own())
}

/// Of signals by the kernel itself: an `int3` was executed.
const BY_KERNEL: i32 = 0x80;
/// A step was made. Of some million on a virtual machine one comes without the processor's word for why it trapped, which the
/// kernel then takes for a debugger's instruction (`int1`).
const BY_STEP: [i32; 2] = [libc::TRAP_TRACE, libc::TRAP_BRKPT];
/// A system call is over.
const CALL: i32 = libc::SIGTRAP | 0x80;

impl<'p, 'k> Attending<'p, 'k> {
    pub(super) fn new(
        first: i32,
        wanted: Option<Wanted<'p>>,
        calming: Option<Calming>,
        keep: Keep<'k>,
    ) -> Self {
        let mut attending = Self {
            first,
            wanted,
            calming,
            threads: HashMap::new(),
            early: HashSet::new(),
            later: VecDeque::new(),
            tracks: Tracks::new(keep),
            handlers: Vec::new(),
            ended: None,
            problem: None,
        };
        let thread = Thread::of(first, Lane::first());
        attending.threads.insert(first, thread);
        attending
    }

    /// Attends to it until its first process has ended; as it is, where that was not allowed.
    pub(super) fn complete(mut self, refused: Option<io::Error>) -> io::Result<Attended> {
        if refused.is_some() {
            // Nobody attends to it, so nobody stops it.
            self.calming = None;
        }
        self.problem = refused;
        let ended = loop {
            // Who is calmed cannot do without answers.
            if let Some(ended) = self.ended
                && (self.calming.is_none() || self.threads.is_empty())
            {
                break ended;
            }
            let (thread, status) = match self.later.pop_front() {
                Some(happened) => happened,
                None => self.wait()?,
            };
            if let Err(error) = self.happens(thread, status) {
                self.problem.get_or_insert(error);
                self.give_up_after(thread);
            }
        };
        self.give_up();
        self.tracks.finish();
        self.handlers.sort_unstable();
        self.handlers.dedup();
        Ok(Attended {
            ended,
            handlers: self.handlers,
            problem: self.tracks.failed.or(self.problem),
        })
    }

    /// Waits for what happens next.
    fn wait(&self) -> io::Result<(i32, Status)> {
        let is_alone = self.problem.is_some() && self.calming.is_none();
        system::wait(is_alone.then_some(self.first))
    }

    /// Attends no longer, since something went wrong with a thread; but for what a calmed program cannot do without.
    fn give_up_after(&mut self, thread: i32) {
        if self.calming.is_none() {
            self.give_up();
            return;
        }
        for known in self.threads.values_mut() {
            if let Some(space) = known.space.take() {
                let _ = space.borrow().disarm();
            }
        }
        self.wanted = None;
        let _ = self.resume(thread, Go::On, 0);
    }

    fn happens(&mut self, thread: i32, status: Status) -> io::Result<()> {
        if let Some(known) = self.threads.get_mut(&thread) {
            known.runs = false;
        } else if !matches!(status, Status::Exited(_) | Status::Killed(_)) {
            // Stopped before it runs anything: it goes on when whoever made it says that it did.
            self.early.insert(thread);
            return Ok(());
        }
        match status {
            Status::Exited(code) => self.ends(thread, Ended::Exited(code)),
            Status::Killed(signal) => self.ends(thread, Ended::Killed(signal)),
            Status::Event(event, signal) => return self.event(thread, event, signal),
            Status::Signal(libc::SIGTRAP) => return self.trap(thread),
            Status::Signal(CALL) => return self.has_called(thread),
            Status::Signal(signal) => return self.deliver(thread, signal),
        }
        Ok(())
    }

    fn ends(&mut self, thread: i32, ended: Ended) {
        if let Some(track) = self.threads.remove(&thread).and_then(|one| one.track) {
            self.tracks.hand_on(track);
        }
        if thread == self.first {
            self.ended = Some(ended);
        }
    }

    fn resume(&mut self, thread: i32, how: Go, signal: i32) -> io::Result<()> {
        if let Some(known) = self.threads.get_mut(&thread) {
            known.runs = true;
        }
        go(thread, how, signal)
    }

    fn event(&mut self, thread: i32, event: i32, signal: i32) -> io::Result<()> {
        match event {
            libc::PTRACE_EVENT_EXEC => self.becomes(thread)?,
            libc::PTRACE_EVENT_SECCOMP => return self.asks(thread),
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                self.makes(thread, event)?;
            }
            libc::PTRACE_EVENT_VFORK_DONE => {
                if let Some(known) = self.threads.get_mut(&thread) {
                    known.waits = false;
                }
            }
            // The whole process is to stand still.
            libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => {
                return go(thread, Go::Stay, 0);
            }
            _ => {}
        }
        self.resume(thread, Go::On, 0)
    }

    /// A thread is about to ask the system for something that is to be alike in each run.
    fn asks(&mut self, thread: i32) -> io::Result<()> {
        let Some(mut registers) = registers(thread)? else {
            return Ok(());
        };
        let known = self.threads.get_mut(&thread);
        let Some((known, calming)) = known.zip(self.calming.as_mut()) else {
            return self.resume(thread, Go::On, 0);
        };
        let answer = calming.answer(thread, &mut known.lane, &mut registers);
        let how = match answer {
            Answer::Made => return self.resume(thread, Go::On, 0),
            Answer::Given(_) => Go::On,
            Answer::Renamed(renamed) => {
                known.renamed = Some(renamed);
                Go::Over
            }
        };
        let set = ptrace::setregs(Pid::from_raw(thread), registers);
        unless_gone(set.map_err(io::Error::from))?;
        self.resume(thread, how, 0)
    }

    /// A thread has made a call that was changed.
    fn has_called(&mut self, thread: i32) -> io::Result<()> {
        let renamed = self.threads.get_mut(&thread);
        let renamed = renamed.and_then(|known| known.renamed.take());
        if let Some((renamed, mut registers)) = renamed.zip(registers(thread)?) {
            renamed.over(&mut registers);
            let set = ptrace::setregs(Pid::from_raw(thread), registers);
            unless_gone(set.map_err(io::Error::from))?;
        }
        self.resume(thread, Go::On, 0)
    }

    /// The lane of the thread that has become another program, which it was under another number if it was not the first of
    /// its process.
    fn lane_of(&self, process: i32) -> Lane {
        let before = ptrace::getevent(Pid::from_raw(process));
        let before = before.map_or(process, |number| number as i32);
        let known = self.threads.get(&before).or(self.threads.get(&process));
        known.map_or_else(Lane::first, |known| known.lane)
    }

    /// A process has become another program; its other threads are gone.
    fn becomes(&mut self, process: i32) -> io::Result<()> {
        let mut lane = self.lane_of(process);
        if let Some((calming, registers)) = self.calming.as_ref().zip(registers(process)?) {
            calming.begins(process, &mut lane, &registers)?;
        }
        let is_other =
            |(number, one): (&i32, &Thread<'_>)| one.process == process && *number != process;
        let others: Vec<i32> = self
            .threads
            .iter()
            .filter(|one| is_other(*one))
            .map(|(number, _)| *number)
            .collect();
        for other in others.into_iter().chain([process]) {
            if let Some(track) = self.threads.remove(&other).and_then(|one| one.track) {
                self.tracks.hand_on(track);
            }
        }
        let mut thread = Thread::of(process, lane);
        let space = self.wanted.map(|wanted| Space::arm(process, wanted));
        if let Some(space) = space.transpose()?.flatten() {
            thread.space = Some(Rc::new(RefCell::new(space)));
            thread.track = Some(self.tracks.begin(process, process, None));
        }
        self.threads.insert(process, thread);
        Ok(())
    }

    /// A thread has made another one, or a process.
    fn makes(&mut self, parent: i32, event: i32) -> io::Result<()> {
        let number = ptrace::getevent(Pid::from_raw(parent)).map_err(io::Error::from);
        let Some(number) = unless_gone(number)?.map(|number| number as i32) else {
            return Ok(());
        };
        let lane = self.threads.get_mut(&parent);
        let lane = lane.map_or_else(Lane::first, |maker| maker.lane.next());
        let mut thread = Thread::of(number, lane);
        let mut origin = None;
        // Its first stop may have been seen before this was, and comes only once.
        thread.runs =
            !self.early.contains(&number) && !self.later.iter().any(|(other, _)| *other == number);
        if let Some(maker) = self.threads.get_mut(&parent) {
            thread.space = maker.space.clone();
            match event {
                libc::PTRACE_EVENT_VFORK => {
                    maker.waits = true;
                    thread.track = maker.track;
                }
                libc::PTRACE_EVENT_FORK => {
                    origin = maker.track;
                    let space = maker.space.as_ref();
                    let copied = space.map(|space| space.borrow().of_child(number));
                    thread.space = copied
                        .transpose()?
                        .map(|space| Rc::new(RefCell::new(space)));
                }
                _ => thread.process = process_of(number).unwrap_or(maker.process),
            }
        }
        if thread.track.is_none() && thread.space.is_some() {
            thread.track = Some(self.tracks.begin(thread.process, number, origin));
        }
        self.threads.insert(number, thread);
        match self.early.remove(&number) {
            true => self.resume(number, Go::On, 0),
            false => Ok(()),
        }
    }

    /// A trap: ours, or the program's own.
    fn trap(&mut self, thread: i32) -> io::Result<()> {
        if self.enters(thread)? {
            return self.resume(thread, Go::On, 0);
        }
        let Some(mut registers) = registers(thread)? else {
            return Ok(());
        };
        let space = self.threads.get(&thread).and_then(|one| one.space.clone());
        let place = registers.rip.wrapping_sub(1);
        let point = space.as_ref().and_then(|space| space.borrow().at(place));
        match (space, point) {
            (Some(space), Some(point)) if code(thread) == Some(BY_KERNEL) => {
                registers.rip = place;
                let set = ptrace::setregs(Pid::from_raw(thread), registers);
                unless_gone(set.map_err(io::Error::from))?;
                self.meets(thread, &space, point, &registers)
            }
            _ => self.deliver(thread, libc::SIGTRAP),
        }
    }

    /// Whether a thread stands at the start of a signal handler that it was to enter, which is noted.
    fn enters(&mut self, thread: i32) -> io::Result<bool> {
        let known = self.threads.get_mut(&thread);
        let Some((known, left)) = known.and_then(|known| {
            let left = known.enters.take()?;
            Some((known, left))
        }) else {
            return Ok(false);
        };
        if code(thread) == Some(BY_KERNEL) {
            return Ok(false);
        }
        if let Some((registers, space)) = registers(thread)?.zip(known.space.as_ref()) {
            let space = space.borrow();
            self.handlers.push(space.stated(registers.rip));
            let point = space.at(registers.rip);
            let is_told = point.is_some_and(|point| point.arrival.is_some());
            if let Some(track) = known.track.filter(|_| is_told) {
                self.tracks.interrupted(track, space.stated(left));
            }
        }
        Ok(true)
    }

    /// A thread stands at a breakpoint.
    fn meets(
        &mut self,
        thread: i32,
        space: &Shared<'p>,
        point: &Breakpoint,
        registers: &libc::user_regs_struct,
    ) -> io::Result<()> {
        let place = registers.rip;
        let held = self.hold_others(thread, space)?;
        space.borrow().show(place, false)?;
        let stepped = self.step_over(thread, place, point);
        if let Err(error) = space.borrow().show(place, true)
            && is_alive(thread)
        {
            return Err(error);
        }
        self.let_go(&held)?;
        let track = self.threads.get(&thread).and_then(|one| one.track);
        let (status, to) = stepped?;
        match (status, track) {
            (None, Some(track)) => {
                self.tracks.arrive(track, point, registers.rsp);
                let to = to.map_or(0, |to| space.borrow().stated(to));
                self.tracks.lead(track, point, to);
            }
            (Some(Status::Signal(signal)), Some(track)) if self.is_last(thread, signal) => {
                self.tracks.arrive(track, point, registers.rsp);
            }
            _ => {}
        }
        match status {
            None => self.resume(thread, Go::On, 0),
            Some(status) => {
                self.later.push_front((thread, status));
                Ok(())
            }
        }
    }

    /// Executes the instruction at `place`. What happened instead if it was not executed; else where that led.
    fn step_over(
        &mut self,
        thread: i32,
        place: u64,
        point: &Breakpoint,
    ) -> io::Result<(Option<Status>, Option<u64>)> {
        loop {
            go(thread, Go::Step, 0)?;
            let status = self.wait_for(thread)?;
            // It was told to stand still when it had done so by itself: that comes before anything is executed.
            let was_told = status == Status::Event(libc::PTRACE_EVENT_STOP, libc::SIGTRAP);
            let is_trap = status == Status::Signal(libc::SIGTRAP);
            let is_step = is_trap && has_stepped(thread, place);
            if !was_told && !is_step {
                return Ok((Some(status), None));
            }
            let at = registers(thread)?.map(|registers| registers.rip);
            if is_step && !(point.repeats && at == Some(place)) {
                return Ok((None, at));
            }
        }
    }

    /// Whether a signal is a fault of the instruction that was to be executed, and the thread's end.
    fn is_last(&self, thread: i32, signal: i32) -> bool {
        let faults = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];
        let by_itself = code(thread).is_some_and(|code| code > 0);
        faults.contains(&signal) && by_itself && !catches(thread, signal)
    }

    /// Lets all other threads stand still that have this memory, and that could run past a breakpoint; gives those that are
    /// to go on afterwards.
    fn hold_others(&mut self, thread: i32, space: &Shared<'p>) -> io::Result<Vec<i32>> {
        let is_other = |(number, one): &(&i32, &Thread<'p>)| {
            let same = one.space.as_ref().is_some_and(|own| Rc::ptr_eq(own, space));
            same && one.runs && !one.waits && **number != thread
        };
        let others = self.threads.iter().filter(is_other);
        let others: Vec<i32> = others.map(|(number, _)| *number).collect();
        self.stand_still(&others)
    }

    /// Lets threads stand still that run; gives those that do so for no other reason.
    fn stand_still(&mut self, threads: &[i32]) -> io::Result<Vec<i32>> {
        let mut awaited = HashSet::new();
        for &thread in threads {
            let asked = ptrace::interrupt(Pid::from_raw(thread)).map_err(io::Error::from);
            if unless_gone(asked)?.is_some() {
                awaited.insert(thread);
            }
        }
        let mut held = Vec::new();
        while !awaited.is_empty() {
            let (thread, status) = system::wait(None)?;
            let was_told = status == Status::Event(libc::PTRACE_EVENT_STOP, libc::SIGTRAP);
            match awaited.remove(&thread) && was_told {
                true => held.push(thread),
                false => self.later.push_back((thread, status)),
            }
            if let Some(known) = self.threads.get_mut(&thread) {
                known.runs = false;
            }
        }
        Ok(held)
    }

    /// Waits for what happens to one thread. The first of a process ends last: what happens to others meanwhile is seen to
    /// later.
    fn wait_for(&mut self, thread: i32) -> io::Result<Status> {
        loop {
            let (other, status) = system::wait(None)?;
            if let Some(known) = self.threads.get_mut(&other) {
                known.runs = false;
            }
            if other == thread {
                return Ok(status);
            }
            self.later.push_back((other, status));
        }
    }

    fn let_go(&mut self, held: &[i32]) -> io::Result<()> {
        held.iter()
            .try_for_each(|other| self.resume(*other, Go::On, 0))
    }

    /// Hands on a signal; notes its handler if there is one.
    fn deliver(&mut self, thread: i32, signal: i32) -> io::Result<()> {
        let known = self
            .threads
            .get_mut(&thread)
            .filter(|known| known.space.is_some());
        match known {
            Some(known) if catches(thread, signal) => {
                known.enters = registers(thread)?.map(|registers| registers.rip);
                self.resume(thread, Go::Step, signal)
            }
            _ => self.resume(thread, Go::On, signal),
        }
    }

    /// Lets all that is left run on as it would by itself.
    fn give_up(&mut self) {
        let threads: Vec<i32> = self.threads.keys().copied().collect();
        let runs = self
            .threads
            .iter()
            .filter(|(_, one)| one.runs && !one.waits);
        let runs: Vec<i32> = runs.map(|(thread, _)| *thread).collect();
        // Who cannot be told any more has ended.
        let _ = self.stand_still(&runs);
        let is_end = |status: &Status| matches!(status, Status::Exited(_) | Status::Killed(_));
        let ended: Vec<(i32, Status)> = self
            .later
            .iter()
            .copied()
            .filter(|(_, status)| is_end(status))
            .collect();
        for (thread, status) in ended {
            match status {
                Status::Exited(code) => self.ends(thread, Ended::Exited(code)),
                Status::Killed(signal) => self.ends(thread, Ended::Killed(signal)),
                _ => {}
            }
        }
        self.later.retain(|(_, status)| !is_end(status));
        for thread in self.threads.values() {
            if let Some(space) = &thread.space {
                let _ = space.borrow().disarm();
            }
        }
        for thread in threads {
            self.free(thread);
        }
    }

    /// Lets a stopped thread run on unattended.
    fn free(&mut self, thread: i32) {
        let at = self.later.iter().position(|(number, _)| *number == thread);
        let status = at
            .and_then(|at| self.later.remove(at))
            .map(|(_, status)| status);
        let signal = match status {
            Some(Status::Signal(libc::SIGTRAP)) => self.step_back(thread),
            Some(Status::Signal(signal)) => signal,
            _ => 0,
        };
        let _ = go(thread, Go::Free, signal);
        if thread != self.first {
            self.threads.remove(&thread);
        }
    }

    /// The signal to hand on to a thread that has trapped: none if it has met a breakpoint, before which it stands then.
    fn step_back(&mut self, thread: i32) -> i32 {
        let space = self.threads.get(&thread).and_then(|one| one.space.clone());
        let registers = registers(thread).ok().flatten();
        let (Some(space), Some(mut registers)) = (space, registers) else {
            return 0;
        };
        let place = registers.rip.wrapping_sub(1);
        if code(thread) != Some(BY_KERNEL) {
            return if is_by_step(thread) { 0 } else { libc::SIGTRAP };
        }
        if space.borrow().at(place).is_none() {
            return libc::SIGTRAP;
        }
        registers.rip = place;
        let _ = ptrace::setregs(Pid::from_raw(thread), registers);
        0
    }
}

impl Thread<'_> {
    /// A thread of which nothing is known, the first of its process.
    fn of(number: i32, lane: Lane) -> Self {
        Self {
            process: number,
            space: None,
            track: None,
            runs: true,
            waits: false,
            enters: None,
            lane,
            renamed: None,
        }
    }
}

fn process_of(thread: i32) -> Option<i32> {
    field(thread, "Tgid:")?.parse().ok()
}

/// Whether a thread is more than the memory of its end.
fn is_alive(thread: i32) -> bool {
    field(thread, "State:").is_some_and(|state| !state.starts_with(['Z', 'X']))
}

/// Whether the process of a thread has a handler for a signal.
fn catches(thread: i32, signal: i32) -> bool {
    has_signal(thread, "SigCgt:", signal)
}
