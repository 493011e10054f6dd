//! What a container allows this process (`cgroups(7)`; Linux, `Documentation/admin-guide/cgroup-v2.rst` and `cgroup-v1/memory.rst`): limits of the
//! groups that it is in, and of those around them, as far as they are mounted where they are everywhere. Asked by an allocator, so nothing is
//! allocated, and perhaps on a small stack, so what is read lies elsewhere.

use std::ffi::CStr;
use std::sync::{Mutex, PoisonError};

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::unistd;

/// Where groups are mounted.
const MOUNTED: &str = "/sys/fs/cgroup";
/// Groups that lie in each other and are looked at, at most.
const DEEPEST: usize = 16;

/// What the two versions call a controller's files.
struct Controller {
    /// The controller; the first version has a folder for each.
    name: &'static str,
    most: [&'static str; 2],
}

/// Bytes of memory that all groups still allow; `None` where there is no limit.
pub(crate) fn memory_left() -> Option<u64> {
    read(c"/proc/self/cgroup", &GROUPS, |groups| {
        left_in(MOUNTED, groups)
    })
}

/// Processes and threads that all groups allow; `None` where there is no limit.
pub(crate) fn processes() -> Option<u64> {
    read(c"/proc/self/cgroup", &GROUPS, |groups| {
        processes_in(MOUNTED, groups)
    })
}

const MEMORY: Controller = Controller {
    name: "memory",
    most: ["memory.max", "memory.limit_in_bytes"],
};
const PROCESSES: Controller = Controller {
    name: "pids",
    most: ["pids.max", "pids.max"],
};
/// What is taken of memory, and how much of that are pages of files, which are given back where memory is scarce.
const TAKEN: [&str; 2] = ["memory.current", "memory.usage_in_bytes"];
const OF_FILES: [[&str; 2]; 2] = [
    ["inactive_file", "active_file"],
    ["total_inactive_file", "total_active_file"],
];

fn left_in(mounted: &str, groups: &str) -> Option<u64> {
    let mut least: Option<u64> = None;
    MEMORY.each(mounted, groups, |version, group| {
        // The first version has so much where there is no limit.
        let most = group.number(MEMORY.most[version]);
        let Some(most) = most.filter(|most| *most < 1 << 62) else {
            return;
        };
        let taken = group.number(TAKEN[version]).unwrap_or(0);
        let [idle, busy] = OF_FILES[version].map(|name| group.stated("memory.stat", name));
        let held = taken.saturating_sub(idle.unwrap_or(0).saturating_add(busy.unwrap_or(0)));
        let left = most.saturating_sub(held);
        least = Some(least.map_or(left, |least| least.min(left)));
    });
    least
}

fn processes_in(mounted: &str, groups: &str) -> Option<u64> {
    let mut least: Option<u64> = None;
    PROCESSES.each(mounted, groups, |version, group| {
        let most = group.number(PROCESSES.most[version]);
        least = least.into_iter().chain(most).min();
    });
    least
}

impl Controller {
    /// Calls `visit` with the version and the folder of each group that the process is in, of this controller, and of those around it.
    fn each(&self, mounted: &str, groups: &str, mut visit: impl FnMut(usize, &Group<'_>)) {
        for line in groups.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
                continue;
            };
            let is_named = controllers.split(',').any(|name| name == self.name);
            let (version, folder) = match (controllers, is_named) {
                ("", _) => (0, ""),
                (_, true) => (1, self.name),
                _ => continue,
            };
            let mut path = path.trim_end_matches('/');
            for _ in 0..DEEPEST {
                let group = Group([mounted, "/", folder, path]);
                visit(version, &group);
                let Some(end) = path.rfind('/') else {
                    break;
                };
                path = path.get(..end).unwrap_or("");
            }
        }
    }
}

/// The folder of a group, in parts.
struct Group<'g>([&'g str; 4]);

impl Group<'_> {
    /// The number in a file of its; `None` where there is none, as where there is no limit.
    fn number(&self, file: &str) -> Option<u64> {
        self.read(file, |text| text.trim().parse().ok())
    }

    /// The number behind a name in a file of its.
    fn stated(&self, file: &str, name: &str) -> Option<u64> {
        let of_line = |line: &str| line.strip_prefix(name)?.trim().parse().ok();
        self.read(file, |text| text.lines().find_map(of_line))
    }

    fn read<T>(&self, file: &str, look: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let mut path = [0; PATH];
        let mut rest = &mut path[..];
        for part in self.0.iter().chain(&["/", file]) {
            let (here, behind) = rest.split_at_mut_checked(part.len())?;
            here.copy_from_slice(part.as_bytes());
            rest = behind;
        }
        read(CStr::from_bytes_until_nul(&path).ok()?, &FILE, look)
    }
}

/// Bytes of a file that are read at most, and of a path.
const TEXT: usize = 8192;
const PATH: usize = 512;

/// What the file about this process's groups says, and another one meanwhile.
static GROUPS: Mutex<[u8; TEXT]> = Mutex::new([0; TEXT]);
static FILE: Mutex<[u8; TEXT]> = Mutex::new([0; TEXT]);

/// What `look` finds in a file.
fn read<T>(
    path: &CStr,
    buffer: &Mutex<[u8; TEXT]>,
    look: impl FnOnce(&str) -> Option<T>,
) -> Option<T> {
    let file = open(path, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty()).ok()?;
    let mut buffer = buffer.lock().unwrap_or_else(PoisonError::into_inner);
    let length = unistd::read(&file, &mut *buffer).ok()?;
    // Cut where the buffer was too small, perhaps in the midst of a letter.
    look(buffer.get(..length)?.utf8_chunks().next()?.valid())
}

#[cfg(test)]
mod tests {
    use super::{left_in, processes_in};
    use std::fs;
    use std::path::Path;

    fn write(folder: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(folder).expect("a folder");
        for (name, text) in files {
            fs::write(folder.join(name), text).expect("written");
        }
    }

    #[test]
    fn the_least_limit_of_all_groups_counts_less_what_cannot_be_given_back() {
        let root = tempfile::tempdir().expect("a folder");
        let of = |groups: &str| left_in(root.path().to_str().expect("text"), groups);
        assert_eq!(of("0::/a/b\n"), None);
        write(&root.path().join("a/b"), &[("memory.max", "max\n")]);
        assert_eq!(of("0::/a/b\n"), None);
        let stat = "anon 7\ninactive_file 300\nactive_file 100\n";
        write(
            &root.path().join("a"),
            &[
                ("memory.max", "1000\n"),
                ("memory.current", "600\n"),
                ("memory.stat", stat),
            ],
        );
        assert_eq!(of("0::/a/b\n"), Some(800));
        assert_eq!(of("0::/other\n"), None);
        write(
            &root.path().join("memory"),
            &[
                ("memory.limit_in_bytes", "500\n"),
                ("memory.usage_in_bytes", "600\n"),
            ],
        );
        assert_eq!(of("4:cpu,memory:/c\n0::/a/b\n"), Some(0));
        assert_eq!(of("4:cpu:/c\nnonsense\n0::/a/b"), Some(800));
    }

    #[test]
    fn processes_are_limited_by_either_version() {
        let root = tempfile::tempdir().expect("a folder");
        let of = |groups: &str| processes_in(root.path().to_str().expect("text"), groups);
        write(&root.path().join("pids/x"), &[("pids.max", "12\n")]);
        write(&root.path().join("y"), &[("pids.max", "max\n")]);
        assert_eq!(of("8:pids:/x/z\n0::/y\n"), Some(12));
        assert_eq!(of("8:pids:/\n0::/y\n"), None);
    }
}
