//! Campaigns and instances are named by sixteen random bytes, plans by a checksum; all are written as
//! hexadecimal digits, in small letters and in full.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that is no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {digits} hexadecimal digits in small letters")]
pub struct IdError {
    text: String,
    digits: usize,
}

/// The bytes that exactly these digits state.
fn bytes<const N: usize>(text: &str) -> Result<[u8; N], IdError> {
    let wrong = || IdError {
        text: text.chars().take(80).collect(),
        digits: 2 * N,
    };
    let digit = |letter: u8| match letter {
        b'0'..=b'9' => Ok(letter - b'0'),
        b'a'..=b'f' => Ok(letter - b'a' + 10),
        _ => Err(wrong()),
    };
    if text.len() != 2 * N {
        return Err(wrong());
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Ok(bytes)
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; 16]);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        text!($name, $name);
    };
}

macro_rules! text {
    ($name:ident, $make:expr) => {
        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                bytes(text).map($make)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

id!(
    /// A campaign: a random number that the collector draws.
    CampaignId
);
id!(
    /// An installation of the program: a random number that it draws once.
    InstanceId
);

/// A checksum that names something: a plan, the plans of a campaign, a list of news.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub u64);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

text!(Name, |bytes| Name(u64::from_be_bytes(bytes)));

#[cfg(test)]
mod tests {
    use super::{CampaignId, Name};
    use proptest::prelude::*;

    #[test]
    fn only_whole_names_in_small_letters_are_read() {
        let whole = "00112233445566778899aabbccddeeff";
        assert!(whole.parse::<CampaignId>().is_ok());
        for text in ["", "0", &whole[1..], &whole.to_uppercase(), "+f", "é"] {
            let error = text.parse::<CampaignId>().unwrap_err();
            assert!(error.to_string().contains("32 hexadecimal digits"));
        }
        assert!(
            "../../../../etc/passwd_of_nobody"
                .parse::<CampaignId>()
                .is_err()
        );
    }

    proptest! {
        #[test]
        fn names_are_read_as_they_are_written(id: [u8; 16], name: u64) {
            prop_assert_eq!(CampaignId(id).to_string().parse(), Ok(CampaignId(id)));
            prop_assert_eq!(Name(name).to_string().parse(), Ok(Name(name)));
            let text = serde_json::to_string(&Name(name)).unwrap();
            prop_assert_eq!(serde_json::from_str::<Name>(&text).unwrap(), Name(name));
        }

        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = (text.parse::<CampaignId>(), text.parse::<Name>());
        }
    }
}
