//! The agent's file. It is carried inside this program, and put into the cache for the dynamic
//! loader to find, under a name that its content decides. Where nothing may be executed from the
//! cache it is a file in memory, which lives as long as this process.
//!
//! Everybody may read it, since everybody may have to: what an armed program starts after it has given up its user is told
//! to load it, too, and a loader that cannot open it says so on standard error. Where it can, it finds nothing to arm.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::sys::statvfs::{FsFlags, statvfs};

use crate::folder::{memory_file, path_of};
use crate::private::{self, NotPrivate};

/// The agent as it was built with this program.
static CARRIED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libtomo_agent.so"));

/// What its file in caches is called.
const NAME: &str = env!("AGENT_NAME");

/// The agent, in a file.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Where it is.
    pub path: PathBuf,
    /// The file, if it is one in memory.
    _file: Option<Arc<File>>,
}

/// Why the agent has no file.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Others could change it there.
    #[error(transparent)]
    NotPrivate(#[from] NotPrivate),
    /// It cannot be written.
    #[error("the agent's file {path}: {1}", path = .0.display())]
    Io(PathBuf, io::Error),
    /// The loader takes colons and spaces for the end of a name.
    #[error("{}: the dynamic loader cannot load files whose path has a colon or a space; choose another folder, by --pool or TOMO_CACHE_DIR", .0.display())]
    Unloadable(PathBuf),
}

impl Agent {
    /// The agent in the folder `cache`, put there if it is missing.
    ///
    /// # Errors
    /// Where it cannot be put there, or others could change it.
    pub fn in_cache(cache: &Path) -> Result<Self, AgentError> {
        let folder = private::passage(&cache.join("agent"))?;
        let flags = statvfs(&folder).map_err(|e| AgentError::Io(folder.clone(), e.into()))?;
        if flags.flags().contains(FsFlags::ST_NOEXEC) {
            return Self::in_memory().map_err(|error| AgentError::Io(folder, error));
        }
        let path = folder.join(NAME);
        let io = |error| AgentError::Io(path.clone(), error);
        if path.to_string_lossy().contains([':', ' ']) {
            return Err(AgentError::Unloadable(path));
        }
        let complete = fs::symlink_metadata(&path)
            .is_ok_and(|found| private::is_for_all(&found) && found.len() == CARRIED.len() as u64);
        if !complete {
            private::install_for_all(&path, &[CARRIED]).map_err(io)?;
        }
        Ok(Self { path, _file: None })
    }

    fn in_memory() -> io::Result<Self> {
        let mut file = memory_file(c"tomo:agent")?;
        file.write_all(CARRIED)?;
        Ok(Self {
            path: path_of(&file),
            _file: Some(Arc::new(file)),
        })
    }
}
