//! A program, woven and checked.

use std::path::Path;

use tomo_program::{Binary, FunctionView, Headers, Key, Model, Request, load};
use tomo_weave::{
    Ask, Asked, Checked, CountersChecked, Files, Flaw, Options, PathsChecked, Placement,
    PredicateWeaver, PredicatesChecked, Wanted, WeaveError, Weights, Woven, WovenChains,
    WovenCounters, WovenPaths, WovenPredicates, check, check_chains, check_counters, check_paths,
    check_predicates, weave, weave_chains, weave_counters, weave_paths,
};
use tomo_wire::plan::Level;
use tomo_wire::predicates::Recorded;
use tomo_wire::{FileStamp, ModuleId};

/// A program's file and its model.
pub(crate) struct Program {
    pub(crate) bytes: Vec<u8>,
    pub(crate) model: Model,
    pub(crate) module: ModuleId,
}

/// What is observed, and how: all there are.
pub(crate) fn all_options() -> impl Iterator<Item = Options> {
    // Of what stays, whether there may be traps besides makes no difference to what is to be proven.
    let ways = [
        (Placement::All, false, true),
        (Placement::Reduced, false, true),
        (Placement::All, false, false),
        (Placement::Reduced, false, false),
        (Placement::All, true, true),
    ];
    Level::ALL.into_iter().flat_map(move |level| {
        ways.map(|(placement, stays, traps)| Options {
            placement,
            stays,
            traps,
            ..Options::of(level)
        })
    })
}

pub(crate) const STAMP: FileStamp = FileStamp {
    device: zerocopy::little_endian::U64::new(1),
    inode: zerocopy::little_endian::U64::new(2),
    length: zerocopy::little_endian::U64::new(3),
    modified: zerocopy::little_endian::I64::new(4),
    changed: zerocopy::little_endian::I64::new(4),
};

impl Program {
    pub(crate) fn read(path: &Path) -> Self {
        let request = Request {
            path,
            cache: None,
            refresh: false,
            whole: true,
        };
        let model = load(&request, &()).expect("a model").model;
        let bytes = std::fs::read(path).expect("a readable program");
        let file = std::fs::File::open(path).expect("a readable program");
        let headers = Headers::read(&file, bytes.len() as u64).expect("a readable program");
        let identity = headers.expect("ELF headers").identity_of(&bytes);
        let module = match &identity.key {
            Key::BuildId(id) => ModuleId::by_build_id(id, identity.fingerprint),
            Key::Content(hash) => ModuleId::by_content(*hash, identity.fingerprint),
        };
        Self {
            bytes,
            model,
            module: module.expect("an identity"),
        }
    }

    pub(crate) fn binary(&self) -> Binary<'_> {
        Binary::parse(&self.bytes).expect("a program")
    }

    pub(crate) fn weave(&self, options: &Options) -> Woven {
        let (module, binary) = (self.module, self.binary());
        weave(&binary, &self.bytes, &self.model, module, STAMP, options).expect("an image")
    }

    pub(crate) fn weave_counters(&self) -> WovenCounters {
        let (module, binary, slab) = (self.module, self.binary(), 64);
        let (model, weights) = (&self.model, &Weights::default());
        let woven = weave_counters(
            &binary,
            &self.bytes,
            model,
            module,
            STAMP,
            (None, slab),
            weights,
        );
        woven.expect("an image")
    }

    pub(crate) fn weave_predicates(&self, recorded: Recorded, asked: Asked) -> WovenPredicates {
        let (which, binary) = ((self.module, STAMP), self.binary());
        let wanted = Wanted { asked, recorded };
        let place = (None, 64, true);
        let weaver = PredicateWeaver::of(&binary, &self.bytes, &self.model).expect("a module");
        weaver.weave(which, place, &wanted).expect("an image")
    }

    /// Proves an image with predicates.
    pub(crate) fn check_predicates(
        &self,
        image: &[u8],
        predicates: &[u8],
    ) -> Result<PredicatesChecked, Flaw> {
        let files = (image, predicates);
        check_predicates(files, &self.bytes, &self.binary(), &self.model)
    }

    /// An image that counts the paths of all functions.
    pub(crate) fn weave_paths(&self) -> WovenPaths {
        self.weave_asked(&|_| Ask::All).expect("an image")
    }

    /// An image that counts the paths that are asked for.
    pub(crate) fn weave_asked<'a>(
        &self,
        ask: &(dyn for<'v> Fn(&FunctionView<'v>) -> Ask<'a> + Sync),
    ) -> Result<WovenPaths, WeaveError> {
        let (module, binary, model) = (self.module, self.binary(), &self.model);
        weave_paths(&binary, &self.bytes, model, module, STAMP, (None, 64), ask)
    }

    /// Proves an image that counts paths.
    pub(crate) fn check_paths(&self, image: &[u8], paths: &[u8]) -> Result<PathsChecked, Flaw> {
        check_paths((image, paths), &self.bytes, &self.binary(), &self.model)
    }

    /// Proves an image with counters.
    pub(crate) fn check_counters(
        &self,
        image: &[u8],
        counters: &[u8],
    ) -> Result<CountersChecked, Flaw> {
        check_counters((image, counters), &self.bytes, &self.binary(), &self.model)
    }

    pub(crate) fn weave_chains(&self) -> WovenChains {
        self.weave_chains_of(&|_| true)
    }

    /// The same, where only these functions are observed.
    pub(crate) fn weave_chains_of(&self, wanted: &(dyn Fn(u64) -> bool + Sync)) -> WovenChains {
        let (module, binary) = (self.module, self.binary());
        let of = (&self.bytes, &self.model);
        let woven = weave_chains(&binary, of.0, of.1, module, STAMP, None, wanted);
        woven.expect("an image")
    }

    /// Proves an image with chains.
    pub(crate) fn check_chains(
        &self,
        image: &[u8],
        functions: &[u8],
    ) -> Result<CountersChecked, Flaw> {
        check_chains((image, functions), &self.bytes, &self.binary(), &self.model)
    }

    /// Proves that nothing was disposed of and all is right.
    pub(crate) fn check(&self, woven: &Woven) -> Result<Checked, Flaw> {
        self.check_files(&Files {
            image: &woven.image,
            plan: &woven.plan,
            disposals: &woven.disposals,
            is_gone: &|_| false,
        })
    }

    pub(crate) fn check_files(&self, files: &Files<'_>) -> Result<Checked, Flaw> {
        check(files, &self.bytes, &self.binary(), &self.model)
    }
}
