//! What goes wrong on our side is told, and never hinders the program: it runs, with its own exit code,
//! unobserved.

use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use tomo_testkit::corpus::compiled;
use tomo_testkit::coverage::{Covering, Pool, complete};
use tomo_testkit::tomo;
use tomo_wire::image::{Image, Window};
use tomo_wire::record::{Reason, RecordView};
use tomo_wire::roster::{Roster, RosterView};
use zerocopy::IntoBytes as _;

const SAID: &str = "exit ";
const CODE: i32 = 6;

/// The program of scenarios in a folder of its own, so that it can be changed.
struct Program {
    folder: TempDir,
}

impl Program {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let program = Self { folder };
        program.build(&[]);
        program
    }

    fn build(&self, flags: &[&str]) {
        let flags = [&["-O2", "-pthread"], flags, &["-ldl"]].concat();
        let built = compiled("gcc", "manners.c", &flags).expect("built");
        let new = self.folder.path().join("new");
        fs::copy(built, &new).expect("copied");
        fs::rename(new, self.path()).expect("renamed");
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("program")
    }

    fn folder(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// It ran to its end, as always.
fn ran(output: &Output) {
    assert_eq!(output.status.code(), Some(CODE), "{}", errors(output));
    assert!(output.stdout.starts_with(SAID.as_bytes()));
}

/// Runs the program under `tomo cover` with these options; it runs, and what is said holds `words`.
fn runs_and_says(program: &Path, options: &[&str], words: &str) {
    let covering = Covering::new().expect("a folder");
    let mut command = Command::new(tomo_testkit::tomo::path().expect("tomo"));
    command.env("TOMO_CACHE_DIR", covering.output().with_extension("cache"));
    command
        .arg("cover")
        .args(options)
        .arg("--")
        .arg(program)
        .arg("exit");
    let output = complete(command, b"").expect("run");
    ran(&output);
    let said = errors(&output);
    assert!(
        said.contains(words) && said.contains("not observed"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// Runs the program armed by the pool's environment: it runs, says nothing more than alone, and was
/// armed or not.
fn runs_armed(pool: &Pool, program: &Path, armed: bool) {
    let before = pool.units().map_or(0, |units| units.processes);
    let mut command = pool.command(program);
    command.arg("exit");
    let output = complete(command, b"").expect("run");
    ran(&output);
    assert_eq!(errors(&output), "");
    let after = pool.units().map_or(0, |units| units.processes);
    assert_eq!(after - before, u64::from(armed));
}

#[test]
fn an_output_that_cannot_be_written_hinders_nothing() {
    let program = Program::new();
    let file = program.folder.path().join("file");
    fs::write(&file, "no folder").expect("written");
    let below = file.join("out");
    let below = below.to_string_lossy();
    runs_and_says(&program.path(), &["--output", &below], "not a directory");
    runs_and_says(&program.path(), &["--pool", &below], "not a directory");
}

/// The agent of a pool lies in the pool, so its name is the one to change.
#[test]
fn a_pool_that_no_agent_can_be_loaded_from_is_refused() {
    let program = Program::new();
    let pool = program.folder("a b");
    let mut command = Command::new(tomo::path().expect("tomo"));
    command.env("TOMO_CACHE_DIR", program.folder("cache"));
    command
        .arg("env")
        .arg("--pool")
        .arg(&pool)
        .arg(program.path());
    let output = complete(command, b"").expect("run");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(output.stdout, b"false\n", "who evaluates it does not go on");
    let said = errors(&output);
    assert!(said.contains("choose another folder, by --pool"), "{said}");
}

/// Neither a launcher that has something to say nor one that has nothing ends otherwise, nor does who prints a table.
#[test]
fn where_nobody_hears_what_is_said_the_exit_code_is_the_programs() {
    let program = Program::new();
    let covering = Covering::new().expect("a folder");
    let unheard = || {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        writer
    };
    for module in ["no-such-module", "program"] {
        let options = ["--verbose", "--module", module];
        let mut command = covering.command(&options).expect("tomo");
        command.arg(program.path()).arg("exit").stderr(unheard());
        ran(&command.output().expect("run"));
    }
    let (output, pool, path) = (covering.output(), program.folder("pool"), program.path());
    let report = ["report".as_ref(), output.as_os_str()];
    let environment = [
        "env".as_ref(),
        "--pool".as_ref(),
        pool.as_os_str(),
        path.as_os_str(),
    ];
    for asked in [&report[..], &environment[..]] {
        let mut command = Command::new(tomo_testkit::tomo::path().expect("tomo"));
        command.env("TOMO_CACHE_DIR", output.with_extension("cache"));
        let ended = command.args(asked).stdout(unheard()).output().expect("run");
        assert_eq!(ended.status.code(), Some(0), "{}", errors(&ended));
    }
}

/// A file that may not grow is what a full disk is.
#[test]
fn a_full_disk_hinders_nothing() {
    let program = Program::new();
    let commands = ["cover", "count", "paths", "chains", "predicates", "trace"];
    let limited = |command| [0, 4, 8, 40].map(|kilobytes| (command, kilobytes));
    for (command, kilobytes) in commands.into_iter().flat_map(limited) {
        let covering = Covering::new().expect("a folder");
        let line = format!("ulimit -f {kilobytes}; exec \"$0\" {command} -o \"$1\" -- \"$2\" exit");
        let mut shell = Command::new("bash");
        shell
            .args(["-c", &line])
            .arg(tomo_testkit::tomo::path().expect("tomo"));
        shell.arg(covering.output()).arg(program.path());
        shell.env("TOMO_CACHE_DIR", covering.output().with_extension("cache"));
        let output = complete(shell, b"").expect("run");
        ran(&output);
        assert!(
            errors(&output).contains("file too large"),
            "{}",
            errors(&output)
        );
    }
}

#[test]
fn a_program_that_was_built_anew_runs_unobserved_in_an_old_pool() {
    let program = Program::new();
    let pool = Pool::new(&program.path()).expect("a pool");
    runs_armed(&pool, &program.path(), true);
    program.build(&["-O1"]);
    runs_armed(&pool, &program.path(), false);
}

/// It has the same build id, and so is taken for the same program until its text is looked at.
#[test]
fn a_copy_with_another_byte_of_code_runs_unobserved() {
    let program = Program::new();
    let pool = Pool::new(&program.path()).expect("a pool");
    let mut bytes = fs::read(program.path()).expect("read");
    let nop = bytes.windows(2).rposition(|two| two == b"\x66\x90");
    let at = nop.expect("filling in the text");
    bytes[at..at + 2].copy_from_slice(b"\x90\x90");
    let copy = program.folder.path().join("copy");
    fs::write(&copy, &bytes).expect("written");
    fs::set_permissions(&copy, Permissions::from_mode(0o755)).expect("set");
    runs_armed(&pool, &copy, false);
    bytes[at..at + 2].copy_from_slice(b"\x66\x90");
    fs::write(&copy, &bytes).expect("written");
    runs_armed(&pool, &copy, true);
}

/// Who is armed by it need not look at all of its text, to see whether that is still the image's.
#[test]
fn a_pool_knows_a_file_as_it_is_that_was_copied_since_it_was_observed() {
    let program = Program::new();
    let stamp = |name: &str| {
        let pool = program.folder.path().join(name);
        let mut command = Command::new(tomo::path().expect("tomo"));
        command
            .args(["env", "--pool"])
            .args([&pool, &program.path()]);
        command.env("TOMO_CACHE_DIR", program.folder("cache"));
        let output = complete(command, b"").expect("run");
        assert!(output.status.success(), "{}", errors(&output));
        let files = fs::read_dir(&pool).expect("a pool").flatten();
        let image = files
            .map(|file| file.path())
            .find(|path| path.extension().is_some_and(|kind| kind == "image"));
        let image = fs::read(image.expect("an image")).expect("read");
        let image = Image::read(&image, image.len() as u64).expect("an image");
        (image.stamp.inode.get(), image.stamp.modified.get())
    };
    let first = stamp("first");
    program.build(&[]);
    let now = fs::metadata(program.path()).expect("there");
    let modified = now.mtime() * 1_000_000_000 + now.mtime_nsec();
    let second = stamp("second");
    assert_eq!((second.0, second.1), (now.ino(), modified));
    assert_ne!(first, second);
}

/// The agent takes an image of what has no build id for that of one file, so a copy has one of its own.
#[test]
fn a_copy_of_a_program_without_a_build_id_is_observed_too() {
    let program = Program::new();
    for _ in 0..2 {
        program.build(&["-Wl,--build-id=none"]);
        for command in ["cover", "count", "paths", "chains", "predicates", "trace"] {
            let mut observing = Command::new(tomo::path().expect("tomo"));
            observing.env("TOMO_CACHE_DIR", program.folder("cache"));
            let output = program.folder("output").join(command);
            observing.args([command, "-o"]).arg(output).arg("--");
            observing.arg(program.path()).arg("exit");
            let output = complete(observing, b"").expect("run");
            ran(&output);
            let said = errors(&output);
            assert!(!said.contains("not observed"), "{command}: {said}");
        }
    }
}

fn change(path: &Path, at: u64, what: &[u8]) {
    let file = OpenOptions::new().write(true).open(path).expect("open");
    file.write_all_at(what, at).expect("written");
}

#[test]
fn damaged_images_are_refused_and_the_program_runs() {
    let program = Program::new();
    let pool = Pool::new(&program.path()).expect("a pool");
    let image = pool.file("image").expect("an image");
    let sound = fs::read(&image).expect("read");
    let path = pool.path();
    let pool_path = path.to_string_lossy();
    // Magic, version, size, checksum, and what the checksum covers.
    for at in [0, 8, 12, 16, 40, 300] {
        change(&image, at, &[sound[at as usize] ^ 0x10]);
        runs_armed(&pool, &program.path(), false);
        runs_and_says(&program.path(), &["--pool", &pool_path], "image");
        change(&image, at, &sound[at as usize..][..1]);
    }
    for length in [0, 1, 100, 4096, sound.len() - 1] {
        fs::write(&image, &sound[..length]).expect("written");
        runs_armed(&pool, &program.path(), false);
    }
    fs::write(&image, &sound).expect("written");
    runs_armed(&pool, &program.path(), true);
}

#[test]
fn damaged_records_and_rosters_are_refused_and_the_program_runs() {
    let program = Program::new();
    for kind in ["record", "roster"] {
        let pool = Pool::new(&program.path()).expect("a pool");
        let file = match kind {
            "roster" => pool.path().join("roster"),
            _ => pool.file(kind).expect("a file"),
        };
        let sound = fs::read(&file).expect("read");
        for at in [0, 9, 17, 50] {
            change(&file, at, &[sound[at as usize] ^ 1]);
            runs_armed(&pool, &program.path(), false);
            change(&file, at, &sound[at as usize..][..1]);
        }
        for length in [0, 8, 60, sound.len() - 1] {
            fs::write(&file, &sound[..length]).expect("written");
            runs_armed(&pool, &program.path(), false);
        }
        fs::remove_file(&file).expect("removed");
        runs_armed(&pool, &program.path(), false);
    }
}

/// An image that is sound by its checksums, with windows of its trap table changed by `change`.
fn with_other_windows(image: &[u8], change: impl Fn(&Image, &mut Window)) -> Vec<u8> {
    let mut bytes = image.to_vec();
    let mut header = Image::read(image, image.len() as u64).expect("an image");
    let mut windows = header.window_table(image).expect("a table").to_vec();
    windows
        .iter_mut()
        .for_each(|window| change(&header, window));
    let start = header.windows.get() as usize;
    let table = windows.as_bytes();
    bytes[start..start + table.len()].copy_from_slice(table);
    header.windows_checksum = tomo_wire::checksum(table).into();
    let sealed = header.sealed();
    bytes[..sealed.len()].copy_from_slice(&sealed);
    bytes
}

/// What a probe outside of the text would restore is not the program's text.
#[test]
fn an_image_with_probes_outside_of_the_text_is_refused_and_the_program_runs() {
    let program = Program::new();
    let pool = Pool::new(&program.path()).expect("a pool");
    let image = pool.file("image").expect("an image");
    let sound = fs::read(&image).expect("read");
    // That the table was found sound is said of this table, not of another one.
    runs_armed(&pool, &program.path(), true);
    let changes: [fn(&Image, &mut Window); 4] = [
        |_, window| window.offset = 0x7fff_fff0.into(),
        |image, window| {
            window.offset = (image.regions()[0].length.get() as u32 - 1).into();
            window.length = 2;
        },
        |image, window| window.probe = image.probes,
        |_, window| window.probe = u32::MAX.into(),
    ];
    for change in changes {
        fs::write(&image, with_other_windows(&sound, change)).expect("written");
        runs_armed(&pool, &program.path(), false);
    }
    fs::write(&image, with_other_windows(&sound, |_, _| {})).expect("written");
    runs_armed(&pool, &program.path(), true);
}

/// Of one program under two plans: records say under which they were made.
#[test]
fn an_image_under_another_plan_than_its_record_is_refused_and_the_program_runs() {
    let program = Program::new();
    let pool = Pool::new(&program.path()).expect("a pool");
    let other = Pool::with(&["--level", "function"], &program.path()).expect("a pool");
    let (image, wrong) = (
        pool.file("image").expect("it"),
        other.file("image").expect("it"),
    );
    let sound = fs::read(&image).expect("read");
    fs::copy(&wrong, &image).expect("copied");
    runs_armed(&pool, &program.path(), false);
    fs::write(&image, sound).expect("written");
    runs_armed(&pool, &program.path(), true);
    fs::copy(
        other.file("plan").expect("it"),
        pool.file("plan").expect("it"),
    )
    .expect("copied");
    let mut report = Command::new(tomo_testkit::tomo::path().expect("tomo"));
    report.arg("report").arg(pool.path());
    let output = complete(report, b"").expect("run");
    let said = errors(&output);
    assert!(
        said.contains("under another plan than the one beside it"),
        "{said}"
    );
}

/// A roster that this version's agent would not read is written anew.
#[test]
fn a_roster_of_another_version_is_made_anew() {
    let program = Program::new();
    let pool = Pool::new(&program.path()).expect("a pool");
    change(&pool.path().join("roster"), 8, &1_u32.to_le_bytes());
    runs_armed(&pool, &program.path(), false);
    let path = pool.path();
    let covering = Covering::new().expect("a folder");
    let mut command = covering
        .command(&["--pool", &path.to_string_lossy()])
        .expect("tomo");
    command.arg(program.path()).arg("exit");
    let output = complete(command, b"").expect("run");
    ran(&output);
    assert_eq!(errors(&output), "");
    assert_eq!(pool.units().expect("a record").processes, 1);
    runs_armed(&pool, &program.path(), true);
}

/// What another version of `tomo` left in a pool is named, and the program runs.
#[test]
fn a_pool_of_another_version_is_named() {
    let program = Program::new();
    let pool = Pool::new(&program.path()).expect("a pool");
    let image = pool.file("image").expect("an image");
    change(&image, 8, &99_u32.to_le_bytes());
    let path = pool.path();
    runs_and_says(
        &program.path(),
        &["--pool", &path.to_string_lossy()],
        "version 99",
    );
    runs_armed(&pool, &program.path(), false);
    let another = Pool::new(&program.path()).expect("a pool");
    let path = another.path();
    let options = ["--pool", &path.to_string_lossy(), "--level", "function"];
    runs_and_says(&program.path(), &options, "another --level");
}

#[test]
fn what_others_could_write_is_refused() {
    let program = Program::new();
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("set");
    };
    let pool = Pool::new(&program.path()).expect("a pool");
    let image = pool.file("image").expect("an image");
    let record = pool.file("record").expect("a record");
    for file in [&image, &record, &pool.path().join("roster")] {
        for writable in [0o620, 0o602] {
            mode(file, writable);
            runs_armed(&pool, &program.path(), false);
        }
        mode(file, 0o600);
    }
    for writable in [0o770, 0o707, 0o1777] {
        mode(&pool.path(), writable);
        runs_armed(&pool, &program.path(), false);
        let path = pool.path();
        let path = path.to_string_lossy();
        runs_and_says(
            &program.path(),
            &["--pool", &path],
            "others may write there",
        );
    }
    mode(&pool.path(), 0o700);
    runs_armed(&pool, &program.path(), true);
    let above = program.folder("above");
    mode(&above, 0o777);
    let below = above.join("pool");
    runs_and_says(
        &program.path(),
        &["--pool", &below.to_string_lossy()],
        "others may write there",
    );
}

/// The roster of a pool with one module, with another file for its image.
fn with_another_image(roster: &[u8], image: &Path, record: &Path) -> Vec<u8> {
    let roster = RosterView::read(roster).expect("a roster");
    let [mut entry] = *roster.entries else {
        panic!("one module");
    };
    let image = format!("{}\0", image.display());
    let paths = format!("{image}{}\0", record.display()).into_bytes();
    (entry.image, entry.text) = (0.into(), 0.into());
    entry.record = (image.len() as u32).into();
    let body = [entry.as_bytes(), &paths].concat();
    let header = Roster::sealed(&[entry], &paths, (None, None), tomo_wire::checksum(&body));
    [&header[..], &body].concat()
}

/// An image of somebody else's, and of a pool whatever root gives away.
#[test]
fn what_belongs_to_somebody_else_is_refused() {
    let program = Program::new();
    let pool = Pool::new(&program.path()).expect("a pool");
    let [image, record] = ["image", "record"].map(|name| pool.file(name).expect("it"));
    let (folder, roster) = (pool.path(), pool.path().join("roster"));
    let give = |path: &Path, user: u32| {
        std::os::unix::fs::chown(path, Some(user), None).expect("given away");
    };
    let is_root = nix::unistd::geteuid().is_root();
    let foreign = match is_root {
        true => program.folder.path().join("foreign"),
        false => "/etc/passwd".into(),
    };
    if is_root {
        fs::copy(&image, &foreign).expect("copied");
        give(&foreign, 12345);
    }
    let sound = fs::read(&roster).expect("read");
    fs::write(&roster, with_another_image(&sound, &foreign, &record)).expect("written");
    runs_armed(&pool, &program.path(), false);
    let bytes = fs::read(&record).expect("read");
    let live = RecordView::read(&bytes).expect("a record").live;
    assert_eq!(live.reason.get(), Reason::ImageNotPrivate as u32);
    fs::write(&roster, with_another_image(&sound, &image, &record)).expect("written");
    runs_armed(&pool, &program.path(), true);
    if !is_root {
        return;
    }
    for path in [&image, &record, &roster, &folder] {
        give(path, 12345);
        runs_armed(&pool, &program.path(), false);
        give(path, 0);
    }
    runs_armed(&pool, &program.path(), true);
    give(&folder, 12345);
    let options = ["--pool", &folder.to_string_lossy()];
    runs_and_says(&program.path(), &options, "belongs to another user");
    give(&folder, 0);
}

#[test]
fn links_are_refused() {
    let program = Program::new();
    let pool = Pool::new(&program.path()).expect("a pool");
    let image = pool.file("image").expect("an image");
    let record = pool.file("record").expect("a record");
    for file in [image, record, pool.path().join("roster")] {
        let away = file.with_extension("away");
        fs::rename(&file, &away).expect("renamed");
        symlink(&away, &file).expect("linked");
        runs_armed_anywhere(&pool, &program.path());
        fs::remove_file(&file).expect("removed");
        fs::rename(&away, &file).expect("renamed");
    }
    runs_armed(&pool, &program.path(), true);
}

/// The program runs, and nothing was armed, by the word of a record that may lie elsewhere now.
fn runs_armed_anywhere(pool: &Pool, program: &Path) {
    let mut command = pool.command(program);
    command.arg("exit");
    let output = complete(command, b"").expect("run");
    ran(&output);
    assert_eq!(errors(&output), "");
    let records = fs::read_dir(pool.path()).expect("read").flatten();
    let records = records.map(|entry| entry.path()).filter(|path| {
        let name = path.to_string_lossy();
        name.ends_with(".record") || name.ends_with(".away")
    });
    for record in records {
        let bytes = fs::read(record).expect("read");
        let armed = tomo_wire::record::RecordView::read(&bytes).map_or(0, |r| r.live.armed.get());
        assert_eq!(armed, 0);
    }
}

/// Programs that run with other rights than who starts them are refused with their reason, and left
/// alone where the environment would arm them.
#[test]
fn programs_with_raised_privileges_are_refused() {
    let program = Program::new();
    let pool = Pool::new(&program.path()).expect("a pool");
    let raised = Command::new("chown")
        .arg("12345")
        .arg(program.path())
        .output();
    if !raised.expect("chown").status.success() {
        // Only root may give files away; others have none of their own that would raise anything.
        return;
    }
    let folder = Permissions::from_mode(0o755);
    fs::set_permissions(program.folder.path(), folder).expect("set");
    fs::set_permissions(program.path(), Permissions::from_mode(0o4755)).expect("set");
    runs_armed(&pool, &program.path(), false);
    let covering = Covering::new().expect("a folder");
    let mut command = covering.command(&[]).expect("tomo");
    command.arg(program.path()).arg("exit");
    let output = complete(command, b"").expect("run");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        errors(&output).contains("raised privileges (set-user-ID)"),
        "{}",
        errors(&output)
    );
}

/// `tomo` may be killed: the program does not notice.
#[test]
fn a_program_outlives_tomo() {
    use std::io::{BufRead as _, BufReader};
    let program = Program::new();
    let covering = Covering::new().expect("a folder");
    let mut command = covering.command(&[]).expect("tomo");
    command.arg(program.path()).arg("serves");
    let mut tomo = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("started");
    let mut lines = BufReader::new(tomo.stdout.take().expect("a pipe"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("a line");
    let children = format!("/proc/{0}/task/{0}/children", tomo.id());
    let server = fs::read_to_string(children).expect("read");
    let server = nix::unistd::Pid::from_raw(server.trim().parse().expect("one child"));
    tomo.kill().expect("killed");
    tomo.wait().expect("ended");
    nix::sys::signal::kill(server, None).expect("it is there");
    nix::sys::signal::kill(server, nix::sys::signal::Signal::SIGKILL).expect("killed");
    line.clear();
    assert_eq!(lines.read_line(&mut line).expect("the pipe's end"), 0);
    assert!(covering.only().expect("a record").hit.len() > 10);
}

/// Flags from the environment, and patterns in the folder's name.
#[test]
fn options_and_patterns_say_where_records_go() {
    let program = Program::new();
    let out = program.folder("records");
    let run = |flags: &[&str], options: &str| {
        let mut command = Command::new(tomo_testkit::tomo::path().expect("tomo"));
        command.env("TOMO_CACHE_DIR", program.folder("cache"));
        command
            .env("TOMO_OPTIONS", options)
            .current_dir(&out)
            .arg("cover");
        command
            .args(flags)
            .arg("--")
            .arg(program.path())
            .arg("exit");
        let output = complete(command, b"").expect("run");
        ran(&output);
        errors(&output)
    };
    assert_eq!(run(&[], "output=%%%m:level=function"), "");
    let made = fs::read_dir(&out)
        .expect("read")
        .flatten()
        .next()
        .expect("a folder");
    let name = made.file_name().to_string_lossy().into_owned();
    let id = name.strip_prefix('%').expect("a percent sign");
    assert!(
        id.len() == 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{name}"
    );
    assert_eq!(run(&["-o", "mine"], "output=other:level=function"), "");
    assert!(out.join("mine").exists() && !out.join("other").exists());
    assert!(run(&["-o", "a%q"], "").contains("only %p, %m and %%"));
}
