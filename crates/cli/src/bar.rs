//! The progress bar: on a terminal, and only for work that takes more than a second.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tomo_program::Progress;

const PATIENCE: Duration = Duration::from_secs(1);

/// A bar that shows itself late, or never.
pub(crate) struct Bar {
    start: Instant,
    bar: ProgressBar,
    shown: Mutex<bool>,
}

impl Bar {
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Self {
            start: Instant::now(),
            bar,
            shown: Mutex::new(false),
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Shows the bar once the work has taken long enough. Not drawn at all where standard error is
    /// no terminal.
    fn show_if_late(&self) {
        if self.start.elapsed() < PATIENCE {
            return;
        }
        if let Ok(mut shown) = self.shown.lock()
            && !std::mem::replace(&mut *shown, true)
        {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

fn style(total: u64) -> ProgressStyle {
    let template = if total > 0 {
        "{msg:20} {wide_bar} {percent:>3} %  {eta}"
    } else {
        "{spinner} {msg}"
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Progress for Bar {
    fn stage(&self, name: &str, total: u64) {
        self.bar.set_style(style(total));
        self.bar.set_length(total);
        self.bar.set_position(0);
        self.bar.set_message(name.to_owned());
        self.show_if_late();
    }

    fn advance(&self, done: u64) {
        self.bar.inc(done);
        self.show_if_late();
    }
}
