//! The environment variables through which a launcher, or a person, speaks to the agent.

/// The roster's path. Without it the agent does nothing.
pub const ROSTER: &str = "TOMO_ROSTER";

/// Flags for `tomo cover` and `tomo env` in the manner of the sanitizers: `key=value`, separated by
/// colons. The agent does not look at them.
pub const OPTIONS: &str = "TOMO_OPTIONS";
