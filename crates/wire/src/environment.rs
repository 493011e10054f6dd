//! The environment variables through which a launcher, or a person, speaks to the agent.

/// The roster's path. Without it the agent does nothing.
pub const ROSTER: &str = "TOMO_ROSTER";

/// The file into which a program may write how its run went, in one line: `success`, or `failure` and words that name the
/// cause. The agent does not look at it.
pub const OUTCOME: &str = "TOMO_OUTCOME";

/// Flags for `tomo cover` and `tomo env` in the manner of the sanitizers: `key=value`, separated by
/// colons. The agent does not look at them.
pub const OPTIONS: &str = "TOMO_OPTIONS";
