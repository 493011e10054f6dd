//! From the identity that a record states to the module's file and its model.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tomo_program::debug_file::{self, DebugFile, Directories};
use tomo_program::dwarf::{Apart, Sections, Told};
use tomo_program::elf::SymbolKind;
use tomo_program::{
    ANALYSIS_VERSION, Address, Binary, Cache, Headers, Identity, Key, Model, Progress, Request,
    hexadecimal, load,
};
use tomo_wire::ModuleId;

use crate::folder::plain;
use crate::lines::Lines;

/// A module's file with its model.
#[derive(Debug)]
pub struct Located {
    /// Which it is.
    pub id: ModuleId,
    /// Where it is.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The file that its debug information was moved to, if that is so.
    pub debug: Option<DebugFile>,
    /// Its model.
    pub model: Model,
    /// What went wrong with the cache and the like, a sentence each.
    pub warnings: Vec<String>,
    /// Where the file was that was read.
    home: PathBuf,
    /// Where its debug information was looked for in vain, if it has none.
    missed: Vec<PathBuf>,
    apart: OnceLock<Apart>,
    lines: OnceLock<Lines>,
    told: Told,
}

/// Why there is no model for a record.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    /// Nobody says where the file is.
    #[error(
        "the module {0} was observed, and nothing says where its file is; give it with --program PATH"
    )]
    Unknown(String),
    /// There is something else at the only places that are known.
    #[error("{}: {why}; records of build {id} are left out (--program PATH names another file)", path.display())]
    Gone {
        /// The place.
        path: PathBuf,
        /// What is there instead.
        why: String,
        /// The build that was observed.
        id: String,
    },
    /// The file is there and cannot be analysed.
    #[error("{}: {why}", path.display())]
    Load {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The plan was made by another analysis.
    #[error(
        "the module {id} was observed by another version of tomo (analysis {found}, this is {ANALYSIS_VERSION}): observe it anew"
    )]
    Analysis {
        /// The build.
        id: String,
        /// The version of the analysis that the plan names.
        found: u32,
    },
}

/// Finds the file of `id` among `candidates`, and loads its model, through the cache if there is one.
///
/// # Errors
/// Where none of the candidates is this module, or it cannot be analysed.
pub fn locate<'p>(
    id: ModuleId,
    candidates: impl IntoIterator<Item = &'p Path>,
    cache: Option<&Cache>,
    progress: &dyn Progress,
) -> Result<Located, ModuleError> {
    let mut gone = None;
    for path in candidates {
        match identify(path) {
            Ok(found) if found == Some(id) => return open(id, path, cache, progress),
            Ok(Some(found)) if found.name() == id.name() => {
                gone = Some((path, CHANGED.to_owned()));
            }
            Ok(_) => gone = Some((path, "is another build by now".to_owned())),
            // Of two disappointments, another build is the more telling one.
            Err(error) if gone.is_none() => gone = Some((path, plain(&error))),
            Err(_) => {}
        }
    }
    let name = hexadecimal(id.name());
    Err(match gone {
        Some((path, why)) => ModuleError::Gone {
            path: path.into(),
            why,
            id: name,
        },
        None => ModuleError::Unknown(name),
    })
}

/// Said of a file with the build id that is looked for and other contents.
const CHANGED: &str = "was stripped or changed otherwise since, though its build id is the same";

/// Which module the file at `path` is.
fn identify(path: &Path) -> std::io::Result<Option<ModuleId>> {
    // Asked before it is opened: a pipe would wait for whoever writes to it.
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() {
        return Ok(None);
    }
    let mut file = File::open(path)?;
    let Some(headers) = Headers::read(&file, metadata.len())? else {
        return Ok(None);
    };
    let identity = match headers.identity() {
        Some(identity) => identity,
        None => {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            headers.identity_of(&bytes)
        }
    };
    Ok(module_id(&identity))
}

fn module_id(identity: &Identity) -> Option<ModuleId> {
    match &identity.key {
        Key::BuildId(id) => ModuleId::by_build_id(id, identity.fingerprint),
        Key::Content(hash) => ModuleId::by_content(*hash, identity.fingerprint),
    }
}

fn open(
    id: ModuleId,
    path: &Path,
    cache: Option<&Cache>,
    progress: &dyn Progress,
) -> Result<Located, ModuleError> {
    let failed = |why: String| ModuleError::Load {
        path: path.into(),
        why,
    };
    let request = Request {
        path,
        cache,
        refresh: false,
        whole: true,
    };
    let loaded = load(&request, progress).map_err(|error| failed(error.to_string()))?;
    let bytes = std::fs::read(path).map_err(|error| failed(plain(&error)))?;
    let mut warnings = loaded.warnings;
    let found = match Sections::read(&bytes).is_empty() {
        true => debug_file::find(path, &bytes, &Directories::from_environment()),
        false => debug_file::Found::default(),
    };
    warnings.extend(found.warnings.iter().map(ToString::to_string));
    let missed = match found.file {
        Some(_) => Vec::new(),
        None => found.missed,
    };
    Ok(Located {
        id,
        path: path.into(),
        bytes,
        debug: found.file,
        model: loaded.model,
        warnings,
        home: path.into(),
        missed,
        apart: OnceLock::new(),
        lines: OnceLock::new(),
        told: Told::Blocks,
    })
}

impl Located {
    /// Where functions start that the loader calls before anything is armed: the resolvers of IFUNCs.
    pub(crate) fn resolvers(&self) -> Vec<Address> {
        let Ok(binary) = Binary::parse(&self.bytes) else {
            return Vec::new();
        };
        let slots = binary
            .resolver_slots()
            .iter()
            .map(|(_, resolver)| *resolver);
        let symbols = binary.symbols().iter();
        let indirect = symbols.filter(|symbol| symbol.kind == SymbolKind::IndirectFunction);
        slots.chain(indirect.map(|symbol| symbol.address)).collect()
    }

    /// The same, of which lines tell in which copies of bodies they are.
    pub(crate) fn with_copies(self) -> Self {
        Self {
            lines: OnceLock::new(),
            told: Told::Copies,
            ..self
        }
    }

    /// The lines of its blocks; where the model is damaged, none.
    pub(crate) fn lines(&self) -> &Lines {
        self.lines.get_or_init(|| match self.model.graphs() {
            Ok(graphs) => Lines::of(&graphs, &self.sections(), self.apart(), self.told),
            Err(_) => Lines::default(),
        })
    }

    /// What its compiler left in files of their own of its debug information.
    pub(crate) fn apart(&self) -> &Apart {
        let debug = self.debug.as_ref().map(|file| file.path.as_path());
        let beside: Vec<&Path> = [self.home.as_path()].into_iter().chain(debug).collect();
        self.apart
            .get_or_init(|| Apart::find(&self.sections(), &beside))
    }

    /// Lets it be called otherwise than the file that was read, which is there for the moment only.
    pub fn pass_for(&mut self, path: PathBuf) {
        let home = self.home.canonicalize().ok();
        let home = home.as_deref().and_then(Path::parent);
        self.missed
            .retain(|place| home.is_none_or(|home| !place.starts_with(home)));
        self.path = path;
    }

    /// Where debug information was looked for in vain, if there is none.
    pub(crate) fn missed(&self) -> &[PathBuf] {
        &self.missed
    }

    /// The debug sections, of the file itself or of the one that they were moved to.
    #[must_use]
    pub fn sections(&self) -> Sections<'_> {
        match &self.debug {
            Some(file) => file.sections(),
            None => Sections::read_at(&self.bytes, &self.home).or_of_go(&self.bytes),
        }
    }
}
