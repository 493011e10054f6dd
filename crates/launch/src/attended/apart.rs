//! A program whose process numbers are alike in each run: those of a namespace of its own.
//!
//! The process that is to become the program makes two others: the first of the namespace, which waits for all who lose
//! their parents there, and the program, which goes on. So the program is process 2, and its parent is 1. It gets a `/proc` of its own, which
//! knows these numbers. In the [`WINDOW`] there it finds the open files of the launcher, which it would have found in
//! the old one, and which it takes from nowhere else. Without privileges all that takes a namespace of users, too, in which the user keeps his number;
//! who is in one may not open the files of the launcher, so a program that has an agent in it stays where it is then.
//!
//! Everything here happens between fork and exec.

use std::ffi::{CStr, CString};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::ptr;

use nix::libc;
use nix::unistd::{getegid, geteuid};

/// The folder in which the program finds the open files of the launcher: one that every system has, and hardly a program looks
/// into.
pub(super) const WINDOW: &CStr = c"/proc/fs";

/// What is prepared before the fork.
#[derive(Clone, Debug)]
pub(super) struct Apart {
    /// Whether there may be a namespace of users.
    users: bool,
    /// Which users and groups there are, and what is written for that.
    maps: [(&'static str, String); 3],
    /// Where the launcher's open files are, and a folder through which they come into the new `/proc`.
    files: CString,
    passage: CString,
}

/// What a trial ends with that went well.
const WELL: i32 = libc::EALREADY;

impl Apart {
    /// If that is possible here, with a namespace of `users` if need be; `passage` is an empty folder.
    pub(super) fn possible(passage: &Path, users: bool) -> Option<Self> {
        let (user, group) = (geteuid(), getegid());
        let files = format!("/proc/{}/fd", std::process::id());
        let apart = Self {
            users,
            maps: [
                ("/proc/self/setgroups", "deny".into()),
                ("/proc/self/uid_map", format!("{user} {user} 1")),
                ("/proc/self/gid_map", format!("{group} {group} 1")),
            ],
            files: CString::new(files).ok()?,
            passage: CString::new(passage.as_os_str().as_bytes()).ok()?,
        };
        // It is tried by a process that becomes nothing.
        let mut trial = Command::new("/");
        let own = apart.clone();
        // SAFETY: as for the program itself, see `enter`.
        unsafe {
            trial.pre_exec(move || {
                own.enter()?;
                Err(io::Error::from_raw_os_error(WELL))
            });
        }
        let went = trial.spawn().err()?.raw_os_error();
        (went == Some(WELL)).then_some(apart)
    }

    /// Goes on as a process of a namespace of its own; gives the number that it has outside.
    ///
    /// Called between fork and exec. Only system calls are made, and memory that was there before is read.
    pub(super) fn enter(&self) -> io::Result<i32> {
        let flags = libc::CLONE_NEWPID | libc::CLONE_NEWNS;
        // SAFETY: these calls touch no memory but the strings that are given.
        unsafe {
            if !self.users {
                told(libc::unshare(flags))?;
            } else if libc::unshare(flags) != 0 {
                told(libc::unshare(flags | libc::CLONE_NEWUSER))?;
                self.map()?;
            }
            // What is mounted here is seen by nobody else.
            let private = libc::MS_REC | libc::MS_SLAVE;
            told(libc::mount(
                ptr::null(),
                c"/".as_ptr(),
                ptr::null(),
                private,
                ptr::null(),
            ))?;
            wait_below()?;
            wait_below()?;
        }
        let number = outer_number()?;
        // SAFETY: as above.
        unsafe {
            let (files, passage) = (self.files.as_ptr(), self.passage.as_ptr());
            let (name, place) = (c"proc".as_ptr(), c"/proc".as_ptr());
            let plain = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
            let nothing = ptr::null();
            told(libc::mount(
                files,
                passage,
                nothing,
                libc::MS_BIND,
                ptr::null(),
            ))?;
            told(libc::mount(name, place, name, plain, ptr::null()))?;
            let window = WINDOW.as_ptr();
            told(libc::mount(
                passage,
                window,
                nothing,
                libc::MS_MOVE,
                ptr::null(),
            ))?;
        }
        Ok(number)
    }

    fn map(&self) -> io::Result<()> {
        let mut maps = self.maps.iter();
        maps.try_for_each(|(path, text)| {
            fs::OpenOptions::new()
                .write(true)
                .open(path)?
                .write_all(text.as_bytes())
        })
    }
}

fn told(result: i32) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Goes on as a child of this process, which waits for all its children and ends.
///
/// # Safety
/// No other thread may be in this process.
unsafe fn wait_below() -> io::Result<()> {
    // SAFETY: the child is a copy of this process, whose only thread this is; what the parent does from here on touches no
    // memory but its own stack.
    unsafe {
        match libc::syscall(libc::SYS_fork) {
            -1 => Err(io::Error::last_os_error()),
            0 => Ok(()),
            _ => {
                let mut all = std::mem::zeroed();
                libc::sigfillset(&raw mut all);
                libc::sigprocmask(libc::SIG_BLOCK, &raw const all, ptr::null_mut());
                // Who waits for these to be closed waits for the program.
                libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0);
                while libc::waitpid(-1, ptr::null_mut(), libc::__WALL) > 0 {}
                libc::_exit(0)
            }
        }
    }
}

/// The number of this process as the old `/proc` knows it.
fn outer_number() -> io::Result<i32> {
    let mut text = [0_u8; 16];
    // SAFETY: the call writes no more than there is room for.
    let length =
        unsafe { libc::readlink(c"/proc/self".as_ptr(), text.as_mut_ptr().cast(), text.len()) };
    let digits = usize::try_from(length)
        .ok()
        .and_then(|length| text.get(..length));
    let number = digits.and_then(|digits| str::from_utf8(digits).ok()?.parse().ok());
    number.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
}
