//! Any bytes as each body of the protocol: refused, or the same again once written, and sets of units
//! keep their promises.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tomo_protocol::{
    Answer, Assignment, Campaign, Growth, NewCampaign, NewToken, Numbers, Problem, Profile,
    Program, Since, Token, Units,
};

fuzz_target!(|data: &[u8]| {
    body::<Answer>(data);
    body::<Assignment>(data);
    body::<Campaign>(data);
    body::<Growth>(data);
    body::<NewCampaign>(data);
    body::<NewToken>(data);
    body::<Numbers>(data);
    body::<Problem>(data);
    body::<Profile>(data);
    body::<Program>(data);
    body::<Token>(data);
    if let Some(units) = body::<Units>(data) {
        let ends = units
            .ranges()
            .iter()
            .flat_map(|(first, last)| [*first, *last]);
        assert!(ends.clone().all(|unit| units.has(unit)));
        assert!(units.have(ends.clone()));
        if let Some(last) = ends.max() {
            assert!(!units.are_below(last));
        }
    }
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(since) = text.parse::<Since>()
    {
        assert_eq!(since.to_string().parse(), Ok(since));
    }
});

fn body<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(data: &[u8]) -> Option<T> {
    let body: T = serde_json::from_slice(data).ok()?;
    let text = serde_json::to_vec(&body).expect("what was read can be written");
    let again: T = serde_json::from_slice(&text).expect("what was written can be read");
    assert_eq!(again, body);
    Some(body)
}
