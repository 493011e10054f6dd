//! What this process has used.

/// The most memory that this process has had at once (`VmHWM` of `/proc/self/status`), in bytes.
#[must_use]
pub fn peak_memory_bytes() -> Option<u64> {
    peak_in(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// The same, read in the text of that file.
fn peak_in(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_found() {
        assert_eq!(
            peak_in("Name:\ttomo\nVmHWM:\t    5288 kB\nVmRSS:\t 1 kB\n"),
            Some(5288 * 1024)
        );
        assert_eq!(peak_in("VmHWM:\t x kB\n"), None);
        assert!(peak_memory_bytes().is_some_and(|bytes| bytes > 100_000));
    }
}
