//! Sources of Debian's packages, by apt-get with a configuration of its own: the machine's lists of
//! packages stay as they are, and root is not needed.

use super::run::Place;
use super::suites::Suite;
use super::text;
use crate::house;
use anyhow::{Context as _, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which release the sources are of.
const LIST: &str = "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
                    http://deb.debian.org/debian bookworm main\n";

/// An unpacked source.
pub(super) struct Source {
    pub(super) folder: PathBuf,
    /// The version of its author, without the packager's.
    pub(super) version: String,
}

/// Brings the list of sources up to date.
pub(super) fn update(place: &Place) -> Result<()> {
    let folder = place.folder.join("apt");
    for part in ["lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(folder.join(part))?;
    }
    fs::write(folder.join("sources.list"), LIST)?;
    house::run(apt(&folder)?.args(["--quiet", "update"]))
}

fn apt(folder: &Path) -> Result<Command> {
    let mut apt = house::command("apt-get")?;
    for (option, value) in [
        ("Dir::Etc::sourcelist", folder.join("sources.list")),
        ("Dir::Etc::sourceparts", PathBuf::from("/dev/null")),
        ("Dir::State::lists", folder.join("lists")),
        ("Dir::Cache", folder.join("cache")),
    ] {
        apt.arg("-o").arg(format!("{option}={}", text(&value)?));
    }
    apt.args(["-o", "APT::Sandbox::User=root"]);
    Ok(apt)
}

/// The source of `suite`, downloaded and unpacked if it is not there: the author's archive, without
/// the packager's changes.
pub(super) fn fetch(place: &Place, suite: &Suite) -> Result<Source> {
    let archives = place.folder.join("archives").join(suite.package);
    if archive(&archives).is_none() {
        fs::create_dir_all(&archives)?;
        let arguments = ["--quiet", "source", "--download-only", suite.package];
        let mut command = apt(&place.folder.join("apt"))?;
        house::run(command.args(arguments).current_dir(&archives))?;
    }
    let archive = archive(&archives).context("apt-get brought no source")?;
    let folder = place.folder.join("sources").join(suite.name);
    if !folder.exists() {
        let new = folder.with_extension("new");
        let _ = fs::remove_dir_all(&new);
        fs::create_dir_all(&new)?;
        let mut tar = house::command("tar")?;
        tar.arg("xf").arg(&archive).arg("-C").arg(&new);
        house::run(tar.arg("--strip-components=1"))?;
        fs::rename(&new, &folder)?;
    }
    let version = version(&archive).context("the archive's name has no version")?;
    Ok(Source { folder, version })
}

/// The author's archive among what was downloaded.
fn archive(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let mut paths = entries.map(|entry| entry.path());
    paths.find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.contains(".orig.tar.") && !name.ends_with(".asc")
    })
}

/// `1.5.4` of `libzstd_1.5.4+dfsg2.orig.tar.xz`.
fn version(archive: &Path) -> Option<String> {
    let name = archive.file_name()?.to_str()?;
    let (_, rest) = name.split_once('_')?;
    let (version, _) = rest.split_once(".orig.tar.")?;
    let end = version.find(['+', '~']).unwrap_or(version.len());
    Some(version.get(..end)?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::version;
    use std::path::Path;

    #[test]
    fn versions_are_the_authors() {
        let of = |name: &str| version(Path::new(name)).unwrap_or_default();
        assert_eq!(of("a/libzstd_1.5.4+dfsg2.orig.tar.xz"), "1.5.4");
        assert_eq!(of("grep_3.8.orig.tar.xz"), "3.8");
        assert_eq!(of("grep.tar.xz"), "");
    }
}
