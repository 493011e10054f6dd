//! Any bytes as a segment: refused, or used as far as they are whole, without a panic. Property tests and
//! fuzzing call this.

use tomo_collector::segment::{Entry, read};
use tomo_collector::state::State;
use tomo_protocol::{CampaignId, InstanceId};
use tomo_wire::checksum;

const ID: CampaignId = CampaignId([0; 16]);

/// Reads `data` as a segment, as it is, and as frames with right checksums.
pub(crate) fn check(data: &[u8]) {
    one(data);
    let mut head = b"TOMOSEG\n".to_vec();
    head.extend(3_u32.to_le_bytes());
    head.extend([0; 20]);
    one(&[head.as_slice(), data].concat());
    // A frame of any kind around the rest.
    if let Some((kind, payload)) = data.split_first() {
        let mut covered = (payload.len() as u32).to_le_bytes().to_vec();
        covered.extend(u32::from(kind % 6).to_le_bytes());
        covered.extend(i64::MIN.to_le_bytes());
        covered.extend(payload);
        let sum = checksum(&covered).to_le_bytes();
        one(&[head.as_slice(), &sum, &covered].concat());
    }
}

/// Joins what there is, twice, which must be as once.
fn one(data: &[u8]) {
    let mut state = State::default();
    let mut join = || {
        let outcome = read(data, ID, |entry, at| match entry {
            Entry::Report(report) => {
                state.report(&report, at);
            }
            Entry::Edition(edition) => {
                state.edition(edition, at);
            }
            Entry::Assignment(instance, variant) => state.assign(instance, variant, at),
            Entry::Instance(instance, known) => {
                state.join_instance(InstanceId(instance.0), *known);
            }
        });
        if let Err(damage) = outcome {
            assert!(!damage.to_string().contains('\n'));
        }
        state.clone()
    };
    let once = join();
    assert_eq!(join(), once);
}
