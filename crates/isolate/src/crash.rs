//! Where runs crash: the block of the program in which a fatal signal came, or from which it had called what
//! raised it.
//!
//! The case is run once more, with nothing observed but its crash, which the agent keeps.

use tomo_graph::NodeId;
use tomo_launch::{CRASHES, Crash, RunFolder, crashes};
use tomo_program::{Address, Graphs};

use crate::asked::IsolateError;
use crate::run::End;
use crate::session::Session;

impl Session {
    /// The functions (by number) and blocks in which a run of `case` crashes, in whichever threads and processes.
    pub(crate) fn places(
        &self,
        case: usize,
        graphs: &Graphs<'_>,
    ) -> Result<Vec<(u32, NodeId)>, IsolateError> {
        let kept = self.kept(case, RunFolder::keep_crashes)?;
        let End::Killed(signal) = kept.ran.end else {
            return Ok(Vec::new());
        };
        let crashes = crashes(&kept.folder.path().join(CRASHES), &self.module.path)?;
        let fatal = crashes.kept.iter().filter(|crash| crash.signal == signal);
        Ok(fatal
            .filter_map(|crash| self.place(crash, graphs))
            .collect())
    }

    /// The innermost frame that is in the program.
    fn place(&self, crash: &Crash, graphs: &Graphs<'_>) -> Option<(u32, NodeId)> {
        let build_id = self.module.id.build_id().unwrap_or_default();
        let is_program = |number: usize| {
            let module = crash.modules.get(number);
            module.is_some_and(|one| one.path == self.module.path && one.build_id == build_id)
        };
        let mut frames = crash.frames.iter();
        let frame = frames.find(|frame| frame.module.is_some_and(is_program))?;
        let block = graphs.block_at(Address(frame.address))?;
        let function = block.function()?;
        Some((function.id().index() as u32, function.node(block.id())?))
    }
}
