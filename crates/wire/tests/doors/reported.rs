//! Sound reports, made from numbers.

use tomo_wire::report::{Outcome, Report};
use zerocopy::IntoBytes;
use zerocopy::little_endian::U32;

/// A report with these hits.
pub(crate) fn report(hits: &[u32]) -> (Report, Vec<u8>) {
    let mut report = Report::empty();
    report.campaign = [1; 16];
    report.instance = [2; 16];
    report.run = 7.into();
    report.sequence = 3.into();
    report.started = (-1).into();
    report.outcome = (Outcome::Exited as u32).into();
    report.version = Report::version_of("0.1.0");
    let hits: Vec<U32> = hits.iter().map(|&hit| hit.into()).collect();
    let bytes = [report.sealed(&hits).as_slice(), hits.as_bytes()].concat();
    (report, bytes)
}
