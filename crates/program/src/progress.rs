//! How long work says how far it is, without knowing who listens.

/// Told of stages and of how much of each is done. Called from several threads at once.
pub trait Progress: Sync {
    /// A stage begins: its name for people, and how many steps it has (0 where unknown).
    fn stage(&self, name: &str, total: u64);
    /// That many further steps of the stage are done.
    fn advance(&self, done: u64);
}

/// Nobody listens.
impl Progress for () {
    fn stage(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
}
