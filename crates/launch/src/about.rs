//! What the system tells of a process or thread (`/proc/PID/status` in `proc(5)`), whatever that calls itself: a name is cut after
//! fifteen bytes, perhaps in the midst of a letter.

use std::fs;

/// What is said behind this `name` of a process or thread, if that is there.
pub(crate) fn field(process: i32, name: &str) -> Option<String> {
    let status = fs::read(format!("/proc/{process}/status")).ok()?;
    let mut lines = status.split(|byte| *byte == b'\n');
    let value = lines.find_map(|line| line.strip_prefix(name.as_bytes()))?;
    Some(str::from_utf8(value).ok()?.trim().to_owned())
}

/// Whether a signal is among those of this `name`, as of those that a process handles or ignores.
pub(crate) fn has_signal(process: i32, name: &str, signal: i32) -> bool {
    let mask = field(process, name).and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 != 0)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::process::{Command, Stdio};

    use super::field;

    #[test]
    fn a_process_is_told_of_though_its_name_is_no_text() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join(OsStr::from_bytes(b"\xff"));
        std::fs::copy("/bin/cat", &program).expect("copied");
        let mut program = Command::new(program);
        let mut waits = program.stdin(Stdio::piped()).spawn().expect("started");
        let number = waits.id().cast_signed();
        assert_eq!(field(number, "Tgid:"), Some(number.to_string()));
        drop(waits.stdin.take());
        assert!(waits.wait().expect("ended").success());
    }
}
