//! `tomo completions`: what shells need to complete command lines of `tomo`.

use std::io::Write as _;

use anyhow::Result;
use clap::{Args, Command, CommandFactory as _};
use clap_complete::Shell;

/// Print what a shell needs to complete command lines of tomo.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  source <(tomo completions bash)          for this shell; in ~/.bashrc for all
  tomo completions zsh > ~/.zfunc/_tomo    a folder of zsh's fpath
  tomo completions fish | source           for this shell";

/// Does what the arguments ask for.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut script = Vec::new();
    let all = crate::Arguments::command();
    // What is not for people is not offered to them.
    let visible = all.get_subcommands().filter(|it| !it.is_hide_set());
    let visible: Vec<Command> = visible.cloned().collect();
    let mut command = Command::new("tomo")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommands(visible);
    clap_complete::generate(arguments.shell, &mut command, "tomo", &mut script);
    Ok(std::io::stdout().write_all(&script)?)
}
