//! The runs that were merged, beside what they say together: `STEM.runs`.
//!
//! One after another, in the order of their names, each as the record that it would be alone; compressed by
//! zstd, since most of each is as in the others.

use std::io::{self, Read, Write as _};
use std::path::Path;

use tomo_profile::merge::Marks;
use tomo_profile::records::{Kind, Sighting, read_record};
use tomo_program::open_regular;
use tomo_wire::ModuleId;
use tomo_wire::record::MARKS;

use super::{plain, record};

/// What the name of such a file ends in.
pub(crate) const ENDING: &str = ".runs";

/// The runs of `module`, of this kind, as the content of such a file.
///
/// # Errors
/// Where they cannot be compressed.
pub(crate) fn write(runs: &[Marks], module: ModuleId, kind: Kind) -> io::Result<Vec<u8>> {
    let mut to = zstd::Encoder::new(Vec::new(), zstd::DEFAULT_COMPRESSION_LEVEL)?;
    for run in runs {
        to.write_all(&run.to_record(module, kind))?;
    }
    to.finish()
}

/// The runs in the file at `path`, up to the first that cannot be read, and why that is.
pub(crate) fn read(path: &Path) -> (Vec<Sighting>, Option<String>) {
    let decoder = open_regular(path).and_then(zstd::Decoder::new);
    let mut from = match decoder {
        Ok(decoder) => decoder,
        Err(error) => return (Vec::new(), Some(plain(&error))),
    };
    let mut runs = Vec::new();
    loop {
        match next(&mut from) {
            Ok(Some(run)) => runs.push(run),
            Ok(None) => return (runs, None),
            Err(why) => return (runs, Some(why)),
        }
    }
}

/// The next run, if there is one.
fn next(from: &mut impl Read) -> Result<Option<Sighting>, String> {
    let mut bytes = Vec::new();
    let damaged = |_| "it is cut short or damaged".to_owned();
    let mut take = |most, bytes: &mut Vec<u8>| from.take(most).read_to_end(bytes);
    take(MARKS, &mut bytes).map_err(damaged)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let rest = record::length(&bytes).saturating_sub(bytes.len() as u64);
    take(rest, &mut bytes).map_err(damaged)?;
    read_record(&bytes)
        .map(Some)
        .map_err(|error| error.to_string())
}
