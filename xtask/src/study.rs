//! `study`: the papers' studies made anew, and the page that tells of them.

use crate::page;
use crate::{house, packages};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

const PAGE: &str = "docs/STUDIES.md";
/// Where the page's plots lie, from the page's own folder; each study has a folder.
const PLOTS: &str = "studies";

/// Make the papers' studies anew.
#[derive(clap::Subcommand)]
pub(crate) enum Study {
    /// What coverage costs when probes stay, when each goes at its first hit, and when it goes for all
    ///
    /// Builds lua, sqlite and bzip2 with and without marks that stay, runs `tomo study disposal`, and
    /// rewrites docs/STUDIES.md and its plots. Takes less than ten minutes once the programs are built, on
    /// a machine that does nothing else.
    Disposal {
        /// Leave the page alone: only tables and plots in target/study
        #[arg(long)]
        no_write: bool,
    },
    /// How much of a program must be watched until what predicts its failures is found
    ///
    /// Builds the faulty programs in tests/subjects, runs `tomo study isolation`, and rewrites docs/STUDIES.md and
    /// its plots. Takes about an hour.
    Isolation {
        /// Leave the page alone: only tables and plots in target/study
        #[arg(long)]
        no_write: bool,
    },
    /// What probes show of chains of calls that are distributed over instances, and what they report falsely
    ///
    /// Runs `tomo study distribution` on lua and sqlite, and rewrites docs/STUDIES.md and its plots.
    Distribution {
        /// Leave the page alone: only tables and plots in target/study
        #[arg(long)]
        no_write: bool,
    },
    /// How many probes tell some acyclic paths from all others, and what they cost
    ///
    /// Runs `tomo study paths` on lua, sqlite and bzip2, and rewrites docs/STUDIES.md and its plots.
    Paths {
        /// Leave the page alone: only tables and plots in target/study
        #[arg(long)]
        no_write: bool,
    },
    /// What it costs to put traces together from several runs
    ///
    /// Builds the programs in tests/subjects, runs `tomo study tracing`, and rewrites docs/STUDIES.md and its plots. Takes
    /// less than a quarter of an hour.
    Tracing {
        /// Leave the page alone: only tables and plots in target/study
        #[arg(long)]
        no_write: bool,
    },
}

impl Study {
    pub(crate) fn run(self) -> Result<()> {
        let (name, no_write) = match self {
            Self::Disposal { no_write } => ("disposal", no_write),
            Self::Isolation { no_write } => ("isolation", no_write),
            Self::Distribution { no_write } => ("distribution", no_write),
            Self::Paths { no_write } => ("paths", no_write),
            Self::Tracing { no_write } => ("tracing", no_write),
        };
        packages::ensure_measured()?;
        let tomo = house::build_tomo()?;
        let output = house::target()?.join("study").join(name);
        let mut command = house::command(tomo)?;
        command.args(["study", name, "--output"]).arg(&output);
        house::run(&mut command)?;
        if no_write {
            return Ok(());
        }
        publish(name, &output, &house::root()?)
    }
}

/// Puts what lies in `output` into the study's part of the page and its folder below `root`.
fn publish(name: &str, output: &Path, root: &Path) -> Result<()> {
    let page_path = root.join(PAGE);
    let folder = root.join("docs").join(PLOTS).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).context("old plots stay")?;
    }
    fs::create_dir_all(&folder)?;
    for entry in fs::read_dir(output)? {
        let path = entry?.path();
        if path.extension().is_some_and(|kind| kind == "svg") {
            let plot = path.file_name().unwrap_or_default();
            fs::copy(&path, folder.join(plot))?;
        }
    }
    let page = output.join(format!("{name}.md"));
    let text = fs::read_to_string(page).context("the study left no page")?;
    page::rewrite(
        &page_path,
        &format!("study {name}"),
        &within_page(name, &text),
    )
}

/// The study's page as a part of another: headings one deeper, plots where they lie.
fn within_page(name: &str, text: &str) -> String {
    let line = |line: &str| match line.starts_with('#') {
        true => format!("#{line}\n"),
        false => format!(
            "{}\n",
            line.replace("](figure-", &format!("]({PLOTS}/{name}/figure-"))
        ),
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::{publish, within_page};
    use std::fs;

    #[test]
    fn headings_go_down_and_plots_are_found() {
        let text = "# A\n\n## B\n![c](figure-2.svg)\n";
        let expected = "## A\n\n### B\n![c](studies/disposal/figure-2.svg)\n";
        assert_eq!(within_page("disposal", text), expected);
    }

    #[test]
    fn old_plots_go_and_new_ones_come() {
        let folder = tempfile::tempdir().unwrap();
        let (output, root) = (folder.path().join("out"), folder.path().join("root"));
        let plots = root.join("docs/studies/disposal");
        for folder in [&output, &plots] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(plots.join("old.svg"), "").unwrap();
        fs::write(output.join("figure-2.svg"), "new").unwrap();
        fs::write(output.join("results.json"), "{}").unwrap();
        fs::write(output.join("disposal.md"), "# T\n").unwrap();
        let page = root.join("docs/STUDIES.md");
        fs::write(
            &page,
            "a\n<!-- study disposal -->\n<!-- /study disposal -->\n",
        )
        .unwrap();
        publish("disposal", &output, &root).unwrap();
        let names: Vec<_> = fs::read_dir(&plots)
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        assert_eq!(names, ["figure-2.svg"]);
        assert!(fs::read_to_string(page).unwrap().contains("## T\n"));
    }
}
