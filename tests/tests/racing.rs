//! Threads and processes that meet the same probes at the same time, and processes that are killed
//! meanwhile: the program's results are those that it has alone, and no hit is lost.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use tomo_testkit::corpus::compiled;
use tomo_testkit::coverage::{Covering, Pool, Units, complete};

/// Groups of blocks in the program.
const GROUPS: usize = 32;

fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| compiled("gcc", "racing.c", &["-O2", "-pthread"]).expect("built"))
}

fn alone(threads: usize) -> Vec<u8> {
    let mut command = Command::new(program());
    command.arg(threads.to_string());
    complete(command, b"").expect("run").stdout
}

/// The blocks of each group that one thread hits which runs through all of them.
fn groups() -> &'static [BTreeSet<u64>] {
    static GROUPS_HIT: OnceLock<Vec<BTreeSet<u64>>> = OnceLock::new();
    GROUPS_HIT.get_or_init(|| {
        let covering = Covering::new().expect("a folder");
        let mut command = covering.command(&[]).expect("tomo");
        command.arg(program()).arg("1");
        let output = complete(command, b"").expect("run");
        assert_eq!(output.stdout, alone(1));
        let hit = covering.only().expect("a record").hit;
        let groups: Vec<BTreeSet<u64>> = ranges()
            .iter()
            .map(|(start, size)| hit.range(*start..start + size).copied().collect())
            .collect();
        assert_eq!(groups.len(), GROUPS);
        assert!(groups.iter().all(|group| group.len() > 30));
        groups
    })
}

/// Start and size of each group's function.
fn ranges() -> Vec<(u64, u64)> {
    let output = Command::new("nm").arg("-S").arg(program()).output();
    let symbols = String::from_utf8(output.expect("nm").stdout).expect("names");
    let number = |text: &str| u64::from_str_radix(text, 16).expect("a number");
    let mut found: Vec<(String, (u64, u64))> = symbols
        .lines()
        .filter_map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            let [start, size, _, name] = words.as_slice() else {
                return None;
            };
            let group = name.strip_prefix("group").filter(|rest| rest.len() == 2)?;
            Some((group.to_owned(), (number(start), number(size))))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, range)| range).collect()
}

/// The first `count` groups were recorded.
fn has_groups(units: &Units, count: usize) {
    for (number, group) in groups().iter().take(count).enumerate() {
        let lost: Vec<_> = group.difference(&units.hit).collect();
        assert!(lost.is_empty(), "group {number}: {lost:x?}");
    }
}

#[test]
fn threads_that_race_on_thousands_of_first_hits_lose_none() {
    for threads in [8, 2, 8, 3, 8, 8, 16, 8] {
        let covering = Covering::new().expect("a folder");
        let mut command = covering.command(&[]).expect("tomo");
        command.arg(program()).arg(threads.to_string());
        let output = complete(command, b"").expect("run");
        assert_eq!(output.stdout, alone(threads));
        assert_eq!(output.status.code(), Some(0));
        has_groups(&covering.only().expect("a record"), GROUPS);
    }
}

#[test]
fn processes_that_race_in_one_pool_lose_none() {
    let expected = alone(4);
    for _ in 0..6 {
        let pool = Pool::new(program()).expect("a pool");
        let start = |_| {
            let mut command = pool.command(program());
            command
                .arg("4")
                .stdout(Stdio::piped())
                .spawn()
                .expect("started")
        };
        let children: Vec<_> = (0..6).map(start).collect();
        for child in children {
            let output = child.wait_with_output().expect("ended");
            assert_eq!(output.status.code(), Some(0), "{:?}", output.status);
            assert_eq!(output.stdout, expected);
        }
        let units = pool.units().expect("a record");
        has_groups(&units, GROUPS);
        assert_eq!(units.processes, 6);
    }
}

/// Numbers that look random, the same in each run (Steele, Lea, Flood: SplitMix).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// Starts the program, reads the names of some groups, and kills it; gives how many groups it was
/// certainly done with.
fn start_and_kill(pool: &Pool, random: &mut Random) -> usize {
    let mut command = pool.command(program());
    let threads = 1 + random.below(4);
    command.arg(threads.to_string()).args(["32", "names"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("started");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let wanted = random.below(8) as usize;
    let read = lines.by_ref().take(wanted).map_while(Result::ok);
    let done = read.filter(|line| line.parse::<usize>().is_ok()).count();
    for _ in 0..random.below(20_000) {
        std::hint::spin_loop();
    }
    child.kill().expect("killed");
    let status = child.wait().expect("ended");
    assert_eq!(done, wanted, "it ended by itself: {status}");
    done
}

/// A thousand starts and kills, each pool's first ones in the midst of restoring: whoever comes later finishes
/// what was begun, and what was seen stays seen.
#[test]
fn a_thousand_kills_at_random_moments_lose_no_record() {
    let mut random = Random(2006);
    for _ in 0..50 {
        let pool = Pool::new(program()).expect("a pool");
        let mut most = 0;
        for _ in 0..20 {
            most = most.max(start_and_kill(&pool, &mut random));
            let units = pool.units().expect("a record after each kill");
            has_groups(&units, most);
        }
        let mut command = pool.command(program());
        command.arg("4");
        let output = complete(command, b"").expect("run");
        assert_eq!(output.stdout, alone(4));
        has_groups(&pool.units().expect("a record"), GROUPS);
    }
}
