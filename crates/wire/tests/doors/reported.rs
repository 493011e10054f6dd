//! Sound reports, made from numbers.

use tomo_wire::report::{Follows, Link, Outcome, Report};
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U32, U64};

/// A report with these hits, each counted.
pub(crate) fn counted(hits: &[u32], counts: &[u64]) -> Vec<u8> {
    let (report, bytes) = report(hits);
    let counts: Vec<U64> = counts.iter().map(|&count| count.into()).collect();
    let body = [&bytes[size_of::<Report>()..], counts.as_bytes()].concat();
    let follows = Follows {
        hits: hits.len() as u32,
        counts: counts.len() as u32,
        ..Follows::default()
    };
    [report.sealed_over(follows, &body).as_slice(), &body].concat()
}

/// A report with these chains: parent, way, site, unit and calls of each.
pub(crate) fn chained(links: &[[u32; 5]]) -> Vec<u8> {
    let (report, _) = report(&[]);
    let link = |link: &[u32; 5]| Link {
        parent: link[0].into(),
        way: link[1].into(),
        site: link[2].into(),
        unit: link[3].into(),
        calls: u64::from(link[4]).into(),
    };
    let links: Vec<Link> = links.iter().map(link).collect();
    let follows = Follows {
        links: links.len() as u32,
        ..Follows::default()
    };
    let body = links.as_bytes();
    [report.sealed_over(follows, body).as_slice(), body].concat()
}

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
