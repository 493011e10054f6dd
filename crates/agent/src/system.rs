//! System calls, without the C library: its wrappers set `errno`, which belongs to the program.

mod bases;
mod disk;
mod errno;
mod large;
mod tracing;

use core::arch::asm;
use core::ffi::{CStr, c_int, c_void};

use tomo_wire::PAGE;

pub(crate) use bases::{control_block, gs, has_bases, look_for_bases, set_gs};
pub(crate) use errno::{errno, lack};
pub(crate) use large::{
    bring_in_one_by_one, leave_out_of_dumps, list_as, map_nothing, mapped, name_memory,
    prefer_small_pages, reserve_anywhere, zeros,
};
use large::{note_mapped, note_unmapped};
pub(crate) use tracing::{TRACE_ME, be_traced, shares_memory_with};

/// The system's error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) u32);

const READ_AT: usize = 17;
const WRITE_AT: usize = 18;
const OPEN: usize = 2;
const CLOSE: usize = 3;
const STAT: usize = 4;
const STAT_OPEN: usize = 5;
const MAP: usize = 9;
const PROTECT: usize = 10;
const UNMAP: usize = 11;
const ADVISE: usize = 28;
const SIGNAL_ACTION: usize = 13;
const SIGNAL_MASK: usize = 14;
const YIELD: usize = 24;
const PROCESS: usize = 39;
const THREAD: usize = 186;
const USER: usize = 102;
const LIMIT: usize = 97;
const USAGE: usize = 98;
const GROUP: usize = 104;
const EFFECTIVE_USER: usize = 107;
const EFFECTIVE_GROUP: usize = 108;
const REMOVE: usize = 87;
const CONTROL: usize = 157;
const QUEUE_TO_THREAD: usize = 297;
const HANDLERS_STACK: usize = 131;
const MEMORY_FILE: usize = 319;
const COPY_FROM: usize = 310;
const SEND_TO_THREAD: usize = 234;
const SLEEP: usize = 35;

/// Makes a system call.
///
/// # Safety
/// What it does to memory is the caller's to argue.
unsafe fn call(number: usize, arguments: [usize; 6]) -> Result<usize, Errno> {
    let [a, b, c, d, e, f] = arguments;
    let result: isize;
    // SAFETY: the kernel changes rax, rcx, r11 and what the call is asked to change, which the
    // caller vouches for; the stack below the red zone is not touched.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    if (-4095..0).contains(&result) {
        Err(Errno(result.unsigned_abs() as u32))
    } else {
        Ok(result as usize)
    }
}

/// An open file, closed when it is dropped.
pub(crate) struct File(usize);

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the number is of a file that this value opened and that nobody else knows.
        let _ = unsafe { call(CLOSE, [self.0, 0, 0, 0, 0, 0]) };
    }
}

/// How a file is opened.
#[derive(Clone, Copy)]
pub(crate) enum Access {
    Read = 0,
    ReadWrite = 2,
}

const CLOSE_ON_EXEC: usize = 0o2_000_000;
const NO_FOLLOW: usize = 0o400_000;
const NO_TERMINAL: usize = 0o400;
const NO_WAIT: usize = 0o4_000;

/// Opens `path`, which is not to be a symbolic link unless `follow`.
pub(crate) fn open(path: &CStr, access: Access, follow: bool) -> Result<File, Errno> {
    let follow = if follow { 0 } else { NO_FOLLOW };
    let flags = access as usize | CLOSE_ON_EXEC | NO_TERMINAL | NO_WAIT | follow;
    // SAFETY: the path ends with a zero byte; the call reads it and changes nothing in memory.
    unsafe { call(OPEN, [path.as_ptr() as usize, flags, 0, 0, 0, 0]) }.map(File)
}

/// Makes a file for this user alone, which must not be there.
pub(crate) fn create(path: &CStr) -> Result<File, Errno> {
    const CREATE_NEW: usize = 0o300;
    const PRIVATE: usize = 0o600;
    let flags = Access::ReadWrite as usize | CLOSE_ON_EXEC | NO_FOLLOW | CREATE_NEW;
    // SAFETY: the path ends with a zero byte; the call reads it and changes nothing in memory.
    unsafe { call(OPEN, [path.as_ptr() as usize, flags, PRIVATE, 0, 0, 0]) }.map(File)
}

/// Removes the file at `path`.
pub(crate) fn remove(path: &CStr) {
    // SAFETY: the path ends with a zero byte; the call reads it and changes nothing in memory.
    let _ = unsafe { call(REMOVE, [path.as_ptr() as usize, 0, 0, 0, 0, 0]) };
}

/// Makes a file that has no place in the file system.
pub(crate) fn memory_file(name: &CStr) -> Result<File, Errno> {
    const CLOSE_ON_EXEC: usize = 1;
    // SAFETY: the name ends with a zero byte; the call reads it and changes nothing in memory.
    unsafe {
        call(
            MEMORY_FILE,
            [name.as_ptr() as usize, CLOSE_ON_EXEC, 0, 0, 0, 0],
        )
    }
    .map(File)
}

/// The number of the process namespace in which this process is, if the system says.
pub(crate) fn namespace() -> Option<u64> {
    let file = open(c"/proc/self/ns/pid", Access::Read, true).ok()?;
    Some(file.status().ok()?.inode)
}

/// What the system tells of a file; as `struct stat` of x86-64 has it.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Status {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) links: u64,
    pub(crate) mode: u32,
    pub(crate) user: u32,
    group: u32,
    padding: u32,
    pub(crate) special: u64,
    pub(crate) length: i64,
    block: i64,
    blocks: i64,
    accessed: [i64; 2],
    pub(crate) modified: [i64; 2],
    pub(crate) changed: [i64; 2],
    reserved: [i64; 3],
}

impl File {
    pub(crate) fn status(&self) -> Result<Status, Errno> {
        let mut status = Status::default();
        let to = (&raw mut status) as usize;
        // SAFETY: the kernel fills one `struct stat`, which has this type's size and layout.
        unsafe { call(STAT_OPEN, [self.0, to, 0, 0, 0, 0]) }.map(|_| status)
    }

    /// Reads from `offset` as much as there is, at most the length of `buffer`.
    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
        let to = buffer.as_mut_ptr() as usize;
        // SAFETY: the kernel writes at most `buffer.len()` bytes into the buffer, which is ours.
        unsafe { call(READ_AT, [self.0, to, buffer.len(), offset as usize, 0, 0]) }
    }

    /// Reads from `offset` to `address` as much as there is, at most `length` bytes, where the kernel lets this process write.
    ///
    /// # Safety
    /// If the program could write there, it must be able to do with these bytes.
    pub(crate) unsafe fn read_to(
        &self,
        address: usize,
        length: usize,
        offset: u64,
    ) -> Result<usize, Errno> {
        // SAFETY: the caller's.
        unsafe { call(READ_AT, [self.0, address, length, offset as usize, 0, 0]) }
    }

    /// Writes all of `bytes` at `offset`.
    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        may_grow_to(offset.saturating_add(bytes.len() as u64))?;
        let mut rest = bytes;
        let mut to = offset as usize;
        while !rest.is_empty() {
            let from = rest.as_ptr() as usize;
            // SAFETY: the kernel reads at most `rest.len()` bytes, which are ours to read.
            let written = unsafe { call(WRITE_AT, [self.0, from, rest.len(), to, 0, 0]) }?;
            rest = rest.get(written..).filter(|_| written > 0).ok_or(FULL)?;
            to = to.wrapping_add(written);
        }
        Ok(())
    }
}

/// Whether this process may make files of `length` bytes. The kernel would end it by a signal if it tried
/// and may not.
fn may_grow_to(length: u64) -> Result<(), Errno> {
    const FILE_SIZE: usize = 1;
    const TOO_LARGE: Errno = Errno(27);
    let [most, _] = limit(FILE_SIZE)?;
    match length <= most {
        true => Ok(()),
        false => Err(TOO_LARGE),
    }
}

/// A limit of this process, and up to where it may raise that.
pub(crate) fn limit(resource: usize) -> Result<[u64; 2], Errno> {
    let mut limits = [0_u64; 2];
    let to = (&raw mut limits) as usize;
    // SAFETY: the kernel fills one `struct rlimit`, which is two words.
    unsafe { call(LIMIT, [resource, to, 0, 0, 0, 0]) }?;
    Ok(limits)
}

/// What the system tells of the file at `path`, links followed.
pub(crate) fn status(path: &CStr) -> Result<Status, Errno> {
    let mut status = Status::default();
    let to = (&raw mut status) as usize;
    // SAFETY: the path ends with a zero byte; the kernel fills one `struct stat`.
    unsafe { call(STAT, [path.as_ptr() as usize, to, 0, 0, 0, 0]) }.map(|_| status)
}

/// What may be done with mapped memory.
#[derive(Clone, Copy)]
pub(crate) enum Protection {
    None = 0,
    Read = 1,
    ReadWrite = 3,
    ReadExecute = 5,
}

const SHARED: usize = 0x01;
const PRIVATE: usize = 0x02;
const FIXED: usize = 0x10;
const ANONYMOUS: usize = 0x20;
const NO_RESERVE: usize = 0x4000;
const FIXED_NO_REPLACE: usize = 0x10_0000;
/// The kernel's word for "something is there already".
pub(crate) const EXISTS: Errno = Errno(17);
/// Its word for "there is no room".
pub(crate) const FULL: Errno = Errno(28);

/// Copies the words from `address` on, until `words` is full or there is no memory to be read; gives
/// how many. Of each page the kernel is asked first.
pub(crate) fn peek(address: usize, words: &mut [usize]) -> Result<usize, Errno> {
    const BYTES: usize = PAGE as usize;
    for (number, word) in words.iter_mut().enumerate() {
        let at = address.wrapping_add(number * size_of::<usize>());
        let last = at.wrapping_add(size_of::<usize>() - 1);
        let is_new = number == 0 || last / BYTES != at.wrapping_sub(1) / BYTES;
        if is_new && !can_be_read(at)? {
            return Ok(number);
        }
        // SAFETY: the kernel has read these eight bytes just now, or others of each page on which they are.
        *word = unsafe { (at as *const usize).read_unaligned() };
    }
    Ok(words.len())
}

/// Takes `length` bytes at `address`, none of which may be mapped, so that nothing else gets them.
pub(crate) fn reserve(address: usize, length: usize) -> Result<(), Errno> {
    let flags = PRIVATE | ANONYMOUS | NO_RESERVE | FIXED_NO_REPLACE;
    let none = Protection::None as usize;
    // SAFETY: the kernel refuses to map over anything; new memory that nobody knows harms nobody.
    let got = unsafe { call(MAP, [address, length, none, flags, usize::MAX, 0]) }?;
    if got == address {
        note_mapped(length);
        return Ok(());
    }
    // A kernel before 4.17 takes the address for a hint.
    // SAFETY: the memory was mapped by the call above and is known to nobody.
    let _ = unsafe { call(UNMAP, [got, length, 0, 0, 0, 0]) };
    Err(EXISTS)
}

/// Maps memory of zeros over what is at `address`.
///
/// # Safety
/// What is mapped there may be replaced.
pub(crate) unsafe fn map_nothing_over(address: usize, length: usize) -> Result<(), Errno> {
    let flags = PRIVATE | ANONYMOUS | NO_RESERVE | FIXED;
    let access = Protection::ReadWrite as usize;
    // SAFETY: the caller's.
    unsafe { call(MAP, [address, length, access, flags, usize::MAX, 0]) }.map(|_| ())
}

/// Maps `length` bytes of `file` from `offset` over what is at `address`.
///
/// # Safety
/// What is mapped there may be replaced: by the caller's own reservation, or for text by bytes
/// that run as the old ones would.
pub(crate) unsafe fn map_over(
    address: usize,
    length: usize,
    protection: Protection,
    file: &File,
    offset: u64,
) -> Result<(), Errno> {
    // SAFETY: the caller's.
    unsafe { map_as(SHARED, address, length, protection, file, offset) }
}

/// The same, but that what is stored there is this process's alone.
///
/// # Safety
/// As for [`map_over`].
pub(crate) unsafe fn map_privately_over(
    address: usize,
    length: usize,
    protection: Protection,
    file: &File,
    offset: u64,
) -> Result<(), Errno> {
    // SAFETY: the caller's.
    unsafe { map_as(PRIVATE, address, length, protection, file, offset) }
}

unsafe fn map_as(
    kind: usize,
    address: usize,
    length: usize,
    protection: Protection,
    file: &File,
    offset: u64,
) -> Result<(), Errno> {
    let arguments = [
        address,
        length,
        protection as usize,
        kind | FIXED,
        file.0,
        offset as usize,
    ];
    // SAFETY: the caller's.
    unsafe { call(MAP, arguments) }.map(|_| ())
}

/// The same to be written at once: all its pages are there when this returns, if there is memory for them.
///
/// # Safety
/// As for [`map_over`].
pub(crate) unsafe fn map_filled_over(
    address: usize,
    length: usize,
    file: &File,
    offset: u64,
) -> Result<(), Errno> {
    const POPULATE: usize = 0x8000;
    let flags = SHARED | FIXED | POPULATE;
    let access = Protection::ReadWrite as usize;
    // SAFETY: the caller's.
    unsafe {
        call(
            MAP,
            [address, length, access, flags, file.0, offset as usize],
        )
    }
    .map(|_| ())
}

/// Maps `length` bytes of `file` from `offset` wherever there is room; never unmapped.
pub(crate) fn map(
    length: usize,
    protection: Protection,
    file: &File,
    offset: u64,
) -> Result<*mut u8, Errno> {
    let arguments = [
        0,
        length,
        protection as usize,
        SHARED,
        file.0,
        offset as usize,
    ];
    // SAFETY: the kernel chooses a place where nothing is.
    let address = unsafe { call(MAP, arguments) }?;
    note_mapped(length);
    Ok(address as *mut u8)
}

/// Moves what is mapped at `from` over what is at `address`.
///
/// # Safety
/// As for [`map_over`], and nothing may use what is at `from` there any more.
pub(crate) unsafe fn move_over(address: usize, length: usize, from: usize) -> Result<(), Errno> {
    const MOVE: usize = 25;
    const MAY_MOVE_TO: usize = 3;
    // SAFETY: the caller's.
    unsafe { call(MOVE, [from, length, length, MAY_MOVE_TO, address, 0]) }?;
    note_unmapped(length);
    Ok(())
}

/// Gives memory back.
///
/// # Safety
/// Nothing may use it any more.
pub(crate) unsafe fn unmap(address: usize, length: usize) {
    // SAFETY: the caller's.
    let _ = unsafe { call(UNMAP, [address, length, 0, 0, 0, 0]) };
    note_unmapped(length);
}

/// Changes what may be done with mapped pages.
///
/// # Safety
/// Nobody may be hindered: no thread runs in pages that are not executable from now on, or writes
/// where that is not allowed any more.
pub(crate) unsafe fn protect(
    address: usize,
    length: usize,
    protection: Protection,
) -> Result<(), Errno> {
    let arguments = [address, length, protection as usize, 0, 0, 0];
    // SAFETY: the caller's.
    unsafe { call(PROTECT, arguments) }.map(|_| ())
}

/// A signal's disposition as the kernel takes it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Action {
    pub(crate) handler: usize,
    pub(crate) flags: u64,
    pub(crate) restorer: usize,
    pub(crate) mask: u64,
}

pub(crate) const SIGTRAP: c_int = 5;
/// Bit of SIGTRAP in a kernel's signal mask.
pub(crate) const SIGTRAP_BIT: u64 = 1 << (SIGTRAP - 1);
/// Signals that a thread's own instructions raise, as a mask: SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV. Blocked, they would end it.
pub(crate) const FAULTS: u64 = 1 << 3 | SIGTRAP_BIT | 1 << 6 | 1 << 7 | 1 << 10;

/// Sets the disposition of a signal.
///
/// # Safety
/// The handler must be one for the flags, and may run at any time from now on.
pub(crate) unsafe fn set_action(signal: c_int, action: &Action) -> Result<(), Errno> {
    let new = (&raw const *action) as usize;
    // SAFETY: the kernel reads one action; the caller vouches for the handler.
    unsafe { call(SIGNAL_ACTION, [signal as usize, new, 0, 8, 0, 0]) }.map(|_| ())
}

/// The disposition of a signal.
pub(crate) fn action_of(signal: c_int) -> Result<Action, Errno> {
    let mut action = Action {
        handler: 0,
        flags: 0,
        restorer: 0,
        mask: 0,
    };
    let to = (&raw mut action) as usize;
    // SAFETY: the kernel fills one action.
    unsafe { call(SIGNAL_ACTION, [signal as usize, 0, to, 8, 0, 0]) }.map(|_| action)
}

/// Where the handler of a signal returns to, if the kernel was ever told.
pub(crate) fn restorer_of(signal: usize) -> Option<usize> {
    const RESTORER: u64 = 0x0400_0000;
    let action = action_of(signal as c_int).ok()?;
    (action.flags & RESTORER != 0).then_some(action.restorer)
}

/// Where handlers of a thread run that ask for a stack of their own; `stack_t` of the C libraries.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Stack {
    pub(crate) start: usize,
    pub(crate) flags: c_int,
    pub(crate) length: usize,
}

impl Stack {
    /// The flag of none.
    pub(crate) const NONE: c_int = 2;
}

/// Where handlers of this thread run, if the kernel tells.
pub(crate) fn handlers_stack() -> Option<Stack> {
    let mut stack = Stack::default();
    let to = (&raw mut stack) as usize;
    // SAFETY: the kernel fills one `stack_t`.
    unsafe { call(HANDLERS_STACK, [0, to, 0, 0, 0, 0]) }.ok()?;
    Some(stack)
}

/// Lets handlers of this thread run there.
///
/// # Safety
/// Nobody else may use the memory, unless there is none.
pub(crate) unsafe fn set_handlers_stack(stack: &Stack) -> Result<(), Errno> {
    let from = (&raw const *stack) as usize;
    // SAFETY: the kernel reads one `stack_t`; the memory is the caller's.
    unsafe { call(HANDLERS_STACK, [from, 0, 0, 0, 0, 0]) }.map(|_| ())
}

/// Whether the eight bytes at `address` can be read, asked without effect: the kernel looks at the mask that is to be
/// set before it finds that the way to set it makes no sense. (The call is one that sandboxes allow.)
///
/// # Errors
/// Where this sandbox does not.
fn can_be_read(address: usize) -> Result<bool, Errno> {
    const NO_WAY: usize = 0x7fff_ffff;
    const NO_SENSE: Errno = Errno(22);
    const NO_MEMORY: Errno = Errno(14);
    // No mask at all makes sense.
    if address == 0 {
        return Ok(false);
    }
    // SAFETY: the kernel reads eight bytes, if it can, and changes nothing.
    match unsafe { call(SIGNAL_MASK, [NO_WAY, address, 0, 8, 0, 0]) } {
        Err(NO_SENSE) => Ok(true),
        Err(NO_MEMORY) => Ok(false),
        Err(errno) => Err(errno),
        // A sandbox answers for the kernel.
        Ok(_) => Err(NO_SENSE),
    }
}

/// The same by a call that makes sense but that sandboxes need not allow: the kernel copies them.
pub(crate) fn is_copied(address: usize) -> bool {
    let mut copy = 0_u64;
    let to = [(&raw mut copy) as usize, size_of::<u64>()];
    let from = [address, size_of::<u64>()];
    let [to, from] = [&to, &from].map(|part| part.as_ptr() as usize);
    // SAFETY: the kernel reads both parts and writes eight bytes, if it can read as many.
    let read = unsafe { call(COPY_FROM, [process() as usize, to, 1, from, 1, 0]) };
    read == Ok(size_of::<u64>())
}

/// Whether the eight bytes at `address` can be read, where nobody asks why not.
pub(crate) fn is_readable(address: usize) -> bool {
    can_be_read(address) == Ok(true)
}

/// How a thread's mask is changed.
#[derive(Clone, Copy)]
pub(crate) enum How {
    Block = 0,
    Unblock = 1,
    Set = 2,
}

/// Changes this thread's signal mask; gives what it was.
pub(crate) fn change_mask(how: How, mask: u64) -> u64 {
    let mut old = 0_u64;
    let (new, to) = ((&raw const mask) as usize, (&raw mut old) as usize);
    // SAFETY: the kernel reads eight bytes and writes eight bytes, both on this stack.
    let _ = unsafe { call(SIGNAL_MASK, [how as usize, new, to, 8, 0, 0]) };
    old
}

fn number(call_number: usize) -> u32 {
    // SAFETY: these calls take nothing and touch no memory.
    unsafe { call(call_number, [0; 6]) }.unwrap_or(0) as u32
}

/// This process.
pub(crate) fn process() -> u32 {
    number(PROCESS)
}

/// This thread.
pub(crate) fn thread() -> u32 {
    number(THREAD)
}

/// Whether this process has one thread, as far as the system tells: each has a folder.
pub(crate) fn is_alone() -> bool {
    const OF_A_FOLDER: u64 = 2;
    status(c"/proc/self/task").is_ok_and(|folder| folder.links == OF_A_FOLDER + 1)
}

/// Whom files must belong to.
pub(crate) fn effective_user() -> u32 {
    number(EFFECTIVE_USER)
}

/// Whether user or group were raised.
pub(crate) fn is_raised() -> bool {
    number(USER) != number(EFFECTIVE_USER) || number(GROUP) != number(EFFECTIVE_GROUP)
}

/// Whether this process may make only some system calls: 0 if it may make all.
pub(crate) fn sandbox() -> usize {
    const GET: usize = 21;
    // SAFETY: touches no memory.
    unsafe { call(CONTROL, [GET, 0, 0, 0, 0, 0]) }.unwrap_or(0)
}

/// How often this process has given up the processor by itself: to wait, or because it was stopped.
pub(crate) fn pauses() -> u64 {
    /// `struct rusage` in words.
    const WORDS: usize = 18;
    const PAUSES: usize = 16;
    let mut usage = [0_u64; WORDS];
    let to = (&raw mut usage) as usize;
    // SAFETY: the kernel fills one `struct rusage`, which has this size.
    let told = unsafe { call(USAGE, [0, to, 0, 0, 0, 0]) };
    // Whoever is told nothing takes the worse for true.
    told.map_or(u64::MAX, |_| usage[PAUSES])
}

/// Lets others run.
pub(crate) fn give_way() {
    number(YIELD);
}

/// Sends a signal to this very thread, with the cause that `info` states.
pub(crate) fn send_again(signal: c_int, info: *const c_void) -> bool {
    let (process, thread) = (number(PROCESS) as usize, number(THREAD) as usize);
    let signal = signal as usize;
    // SAFETY: the kernel reads one `siginfo_t`, which the caller got from the kernel.
    let sent = unsafe {
        call(
            QUEUE_TO_THREAD,
            [process, thread, signal, info as usize, 0, 0],
        )
    };
    // SAFETY: touches no memory.
    sent.is_ok() || unsafe { call(SEND_TO_THREAD, [process, thread, signal, 0, 0, 0]) }.is_ok()
}

/// Ends the process.
pub(crate) fn exit(code: c_int) {
    const EXIT_GROUP: usize = 231;
    // SAFETY: nothing of it is there afterwards.
    let _ = unsafe { call(EXIT_GROUP, [code as usize, 0, 0, 0, 0, 0]) };
}

/// Lets so many nanoseconds, less than a second, pass.
pub(crate) fn pause(nanoseconds: u64) {
    let time = [0_u64, nanoseconds];
    let from = time.as_ptr() as usize;
    // SAFETY: the kernel reads one `struct timespec`, of two words.
    let _ = unsafe { call(SLEEP, [from, 0, 0, 0, 0, 0]) };
}

/// Whether a thread of a process lives, as far as can be told.
pub(crate) fn is_alive(process: u32, thread: u32) -> bool {
    const NO_SUCH_PROCESS: Errno = Errno(3);
    let none = 0;
    // SAFETY: signal 0 is sent to nobody.
    let asked = unsafe {
        call(
            SEND_TO_THREAD,
            [process as usize, thread as usize, none, 0, 0, 0],
        )
    };
    asked != Err(NO_SUCH_PROCESS)
}
