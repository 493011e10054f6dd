//! Who may do what. The store keeps the hashes of tokens, never tokens.
//!
//! A token is 32 random bytes. Its SHA-256 needs no salt, and looking a hash up tells nothing by its
//! timing that would help to guess a token.

use std::collections::{HashMap, HashSet};

use parking_lot::RwLock;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use tomo_protocol::{CampaignId, KnownToken, Role, Token};

/// What the bearer of a token may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Grant {
    /// What.
    pub(crate) role: Role,
    /// For which campaign; `None` of an admin.
    pub(crate) campaign: Option<CampaignId>,
    /// A note for people.
    pub(crate) note: String,
    /// When it was made.
    pub(crate) created: i64,
}

/// Where a token's grant is kept.
pub(crate) fn object_of(hash: &str) -> String {
    format!("tokens/{hash}.json")
}

/// The hash that an object's name states.
pub(crate) fn hash_of_object(name: &str) -> Option<&str> {
    let hash = name.strip_prefix("tokens/")?.strip_suffix(".json")?;
    is_hash(hash).then_some(hash)
}

/// Whether this can name a token.
pub(crate) fn is_hash(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// `bytes` in small letters.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What names a token.
pub(crate) fn hash_of(token: &str) -> String {
    hexadecimal(digest(&SHA256, token.as_bytes()).as_ref())
}

/// A new token for this.
pub(crate) fn draw(role: Role, campaign: Option<CampaignId>) -> Result<Token, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    let token = format!("tomo_{}_{}", role.name(), hexadecimal(&bytes));
    Ok(Token {
        hash: hash_of(&token),
        token,
        role,
        campaign,
    })
}

/// The tokens that are valid now.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    by_hash: RwLock<HashMap<String, Grant>>,
}

impl Tokens {
    /// The token's hash and what it grants, if it is valid.
    pub(crate) fn look_up(&self, token: &str) -> Option<(String, Grant)> {
        let hash = hash_of(token);
        let grant = self.by_hash.read().get(&hash)?.clone();
        Some((hash, grant))
    }

    /// What the token with this hash grants.
    pub(crate) fn by_hash(&self, hash: &str) -> Option<Grant> {
        self.by_hash.read().get(hash).cloned()
    }

    /// Those of a campaign, by when they were made.
    pub(crate) fn of_campaign(&self, id: CampaignId) -> Vec<KnownToken> {
        let tokens = self.by_hash.read();
        let own = tokens.iter().filter(|(_, it)| it.campaign == Some(id));
        let known = own.map(|(hash, grant)| KnownToken {
            hash: hash.clone(),
            role: grant.role,
            note: grant.note.clone(),
            created: grant.created,
        });
        let mut known: Vec<_> = known.collect();
        known.sort_by(|one, other| (one.created, &one.hash).cmp(&(other.created, &other.hash)));
        known
    }

    /// The hashes of those that are for everything.
    pub(crate) fn administrators(&self) -> Vec<String> {
        let tokens = self.by_hash.read();
        let admins = tokens.iter().filter(|(_, it)| it.role == Role::Admin);
        admins.map(|(hash, _)| hash.clone()).collect()
    }

    pub(crate) fn insert(&self, hash: String, grant: Grant) {
        self.by_hash.write().insert(hash, grant);
    }

    pub(crate) fn remove(&self, hash: &str) {
        self.by_hash.write().remove(hash);
    }

    /// The hashes of all that are known.
    pub(crate) fn hashes(&self) -> Vec<String> {
        self.by_hash.read().keys().cloned().collect()
    }

    /// Forgets those that were known before a listing and are not in it: another collector has withdrawn
    /// them. One that was made since is not in it either, and stays. Gives those that are not known yet.
    pub(crate) fn compare(&self, before: &[String], listed: &HashSet<&str>) -> Vec<String> {
        let mut tokens = self.by_hash.write();
        for hash in before.iter().filter(|hash| !listed.contains(hash.as_str())) {
            tokens.remove(hash);
        }
        let new = listed.iter().filter(|hash| !tokens.contains_key(**hash));
        new.map(|hash| (*hash).to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{Grant, Role, Tokens, draw, hash_of};

    #[test]
    fn a_token_made_during_a_listing_stays_and_one_withdrawn_elsewhere_goes() {
        let tokens = Tokens::default();
        let made = |note: &str| {
            let token = draw(Role::Admin, None).expect("random numbers").token;
            let grant = Grant {
                role: Role::Admin,
                campaign: None,
                note: note.into(),
                created: 0,
            };
            tokens.insert(hash_of(&token), grant);
            token
        };
        let (kept, withdrawn) = (made("kept"), made("withdrawn"));
        let before = tokens.hashes();
        let new = made("made since");
        let elsewhere = "0".repeat(64);
        let listed = [hash_of(&kept), elsewhere.clone()];
        let listed: HashSet<&str> = listed.iter().map(String::as_str).collect();
        assert_eq!(tokens.compare(&before, &listed), [elsewhere]);
        assert!(tokens.look_up(&kept).is_some() && tokens.look_up(&new).is_some());
        assert!(tokens.look_up(&withdrawn).is_none());
    }
}
