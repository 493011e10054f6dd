//! The program as it is installed here: which modules it has, by their builds.

use std::collections::BTreeMap;

use tomo_launch::{Choice, Observed, Target, modules};

use crate::assigned::NotAccepted;
use crate::bake::BakeError;

/// A program.
#[derive(Clone, Debug)]
pub(crate) struct Installed {
    target: Target,
    /// Files of modules that it may load later, and folders of them.
    later: Vec<String>,
}

/// Its modules.
pub(crate) struct Modules {
    by_stem: BTreeMap<String, Observed>,
    /// Why one of them is not known.
    unread: Option<String>,
}

impl Installed {
    pub(crate) fn new(target: &Target, later: &[String]) -> Self {
        Self {
            target: target.clone(),
            later: later.to_vec(),
        }
    }

    /// Whether no agent can be loaded into it.
    pub(crate) fn is_static(&self) -> bool {
        self.target.is_static()
    }

    /// The modules that the program, as it is now, loads at its start or may load later.
    ///
    /// # Errors
    /// Where the loader cannot be asked.
    pub(crate) fn modules(&self) -> Result<Modules, BakeError> {
        let names = [Choice::EVERY.to_owned()].into_iter();
        let names = names.chain(self.later.iter().cloned());
        let choice = Choice::Named(names.collect());
        let found = modules(&self.target, &choice).map_err(BakeError::Loader)?;
        let mut modules = Modules {
            by_stem: BTreeMap::new(),
            unread: None,
        };
        for one in &found.chosen {
            match Observed::of(one) {
                Ok(observed) => _ = modules.by_stem.insert(observed.stem.clone(), observed),
                Err(error) => modules.unread = Some(format!("{}: {error}", one.path.display())),
            }
        }
        Ok(modules)
    }

    /// Refuses where one of these builds is not among its modules.
    ///
    /// # Errors
    /// So, or where the loader cannot be asked.
    pub(crate) fn has<'m>(
        &self,
        mut stems: impl Iterator<Item = &'m str>,
    ) -> Result<(), BakeError> {
        let modules = self.modules()?;
        Ok(stems.try_for_each(|stem| modules.find(stem).map(drop))?)
    }
}

impl Modules {
    /// The one of this build.
    ///
    /// # Errors
    /// Where there is none.
    pub(crate) fn find(&self, stem: &str) -> Result<&Observed, NotAccepted> {
        let found = self.by_stem.get(stem);
        found.ok_or_else(|| match &self.unread {
            Some(why) => NotAccepted::Unread(why.clone()),
            None => NotAccepted::OtherBuild(stem.to_owned()),
        })
    }
}
