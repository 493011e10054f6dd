//! How much memory it takes: the pool's files, which are there once, and what each process has to itself.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use tomo_testkit::corpus::{Compiler, Level, Recipe, Source, build};
use tomo_wire::PAGE;
use tomo_wire::image::Image;

use crate::pools::Contents;
use crate::{Pooled, print};

/// Prints what the pool's files hold beside the text, which is there once.
pub(crate) fn of_files(name: &str, pooled: &Pooled) -> Result<()> {
    let contents = Contents::of(&pooled.pool)?;
    for (bytes, record) in contents.all("image").zip(contents.all("record")) {
        let image = Image::read(bytes, bytes.len() as u64)?;
        let probes = f64::from(image.probes.get());
        let text: u64 = image.regions().iter().map(|r| r.length.get()).sum();
        let most = format!("at most {}, two pages", 2 * PAGE);
        let beside = (record.len() as f64 - probes, "bytes");
        print(name, "record, beside a byte a probe", beside, Some(&most));
        let others = (image.length.get() - text) as f64 / probes;
        print(
            name,
            "image, beside one text",
            (others, "bytes a probe"),
            None,
        );
    }
    Ok(())
}

/// Prints how much more memory a process has to itself, in a program of two processes of a pool at once.
pub(crate) fn of_processes(folder: &Path) -> Result<()> {
    let program = build(&Recipe::new(Source::Lua, Compiler::Gcc, Level::O2))?.program;
    let pooled = Pooled::bake(&program, folder, "processes")?;
    let script = folder.join("waits.lua");
    fs::write(&script, "io.write('x') io.flush() io.read()")?;
    let armed = two(|| pooled.armed(), &script)?;
    let alone = two(|| Command::new(&program), &script)?;
    let image = Contents::of(&pooled.pool)?;
    let image = image.all("image").next().context("there is no image")?;
    let text = Image::read(image, image.len() as u64)?;
    let text: u64 = text.regions().iter().map(|r| r.length.get()).sum();
    let more = (armed.saturating_sub(alone)) as f64;
    let promise = format!("< {text}, its text");
    print(
        "lua",
        "memory of a process's own, of two at once",
        (more, "bytes"),
        Some(&promise),
    );
    Ok(())
}

/// The bytes that a process has to itself, while there are two of them.
fn two(command: impl Fn() -> Command, script: &Path) -> Result<u64> {
    let start = || -> Result<Child> {
        let mut command = command();
        let mut child = command
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.as_mut().context("no output")?;
        output.read_exact(&mut [0])?;
        Ok(child)
    };
    let children = [start()?, start()?];
    let own = of_its_own(children[1].id());
    for mut child in children {
        child.stdin.take().context("no input")?.write_all(b"\n")?;
        ensure!(child.wait()?.success(), "lua failed");
    }
    own
}

/// The bytes that nobody but this process has mapped.
fn of_its_own(process: u32) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup"))?;
    let private = text.lines().filter(|line| line.starts_with("Private_"));
    let kilobytes = private.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    Ok(1024 * kilobytes.sum::<u64>())
}
