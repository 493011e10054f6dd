//! What a fleet has seen of predicates: which of them were true anywhere.

use std::path::Path;

use anyhow::Result;
use serde_json::json;
use tomo_export::predicates::Sites;
use tomo_protocol::{Campaign, Client, Profile};
use tomo_wire::predicates::{Predicates, Recorded};

use super::records::{Planned, planned, watched};
use crate::predicates::{Seen, document, table};

/// The sites with one of their predicates true, module by module.
pub(super) fn text(seen: &[Seen]) -> String {
    seen.iter().map(table).collect()
}

/// All sites, each module as `tomo predicates --json` writes it.
pub(super) fn json(seen: &[Seen]) -> String {
    let modules: Vec<_> = seen.iter().map(document).collect();
    let all = json!({ "schema": "tomo.fleet.predicates/1", "modules": modules });
    format!("{all:#}\n")
}

/// What was seen of each module. What no observed run carried is not known.
pub(super) fn seen(
    client: &Client,
    campaign: &Campaign,
    profile: &Profile,
    folder: &Path,
) -> Result<Vec<Seen>> {
    let watched = watched(campaign, profile);
    let mut all = Vec::new();
    let mut first = 0;
    for module in &campaign.modules {
        let Planned {
            plan, mut located, ..
        } = planned(client, module, folder, |plan| {
            Ok(Predicates::read(plan)?.0.module)
        })?;
        let mut sites = Sites::read(&located, &plan)?;
        sites.recorded = Recorded::Marks;
        // Where it is for a moment is told to nobody.
        if let Some(name) = located.path.file_name() {
            located.path = name.into();
        }
        let end = first + module.probes;
        let mut values: Vec<Option<u64>> = (first..end)
            .map(|unit| (watched.get(unit as usize) == Some(&true)).then_some(0))
            .collect();
        for seen in &profile.seen {
            let row = seen.unit.checked_sub(first);
            let value = row.and_then(|row| values.get_mut(row as usize));
            if let Some(value) = value {
                *value = Some(1);
            }
        }
        all.push(Seen {
            located,
            sites,
            values,
            lost: 0,
        });
        first = end;
    }
    Ok(all)
}
