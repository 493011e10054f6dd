//! What an instance asks and hears.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{CampaignId, IdError, Name, Policy, Units};

/// What an instance is to observe. Asking again gives the same, but for the news.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Assignment {
    /// The campaign.
    pub campaign: CampaignId,
    /// Names all plans; it stands in reports.
    pub plans: Name,
    /// The modules, in the order in which units are numbered.
    pub modules: Vec<AssignedModule>,
    /// Which variant it is.
    pub variant: u32,
    /// The units that the instance carries.
    pub units: Units,
    /// When to send and when to hear.
    pub policy: Policy,
    /// How long to wait between reports, as things stand.
    pub interval_ms: u64,
    /// What the fleet has seen already.
    pub news: News,
}

/// A module that an instance is to observe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AssignedModule {
    /// The build.
    pub stem: String,
    /// What is observed: `function`, `block`, `edge`, `predicate`, `path` or `chain`.
    pub level: String,
    /// Where probes go: `all` or `reduced`.
    pub placement: String,
    /// The master plan that weaving the module so must give.
    pub plan: Name,
    /// Its probes.
    pub probes: u32,
}

/// Units that the fleet has seen. The collector keeps them as a list that grows; a range of it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct News {
    /// Names the list. Another name is another list: what was heard before stays true.
    pub epoch: Name,
    /// Where in the list to go on from.
    pub upto: u64,
    /// The units.
    pub units: Units,
}

impl News {
    /// From where to ask next time.
    #[must_use]
    pub fn since(&self) -> Since {
        Since {
            epoch: self.epoch,
            from: self.upto,
        }
    }
}

/// Up to where somebody has heard the news, as `EPOCH:N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Since {
    /// Of which list.
    pub epoch: Name,
    /// How much of it.
    pub from: u64,
}

impl fmt::Display for Since {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.epoch, self.from)
    }
}

impl FromStr for Since {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let (epoch, from) = text.split_once(':').unwrap_or((text, ""));
        let epoch: Name = epoch.parse()?;
        // A number that is none asks for everything, which is always true.
        let from = from.parse().unwrap_or(0);
        Ok(Self { epoch, from })
    }
}

/// What became of one report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Verdict {
    /// The run.
    pub run: u64,
    /// The report's sequence.
    pub sequence: u32,
    /// What became of it.
    #[serde(flatten)]
    pub what: What,
}

/// What became of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum What {
    /// It is stored durably.
    Stored,
    /// All that it says was stored before.
    Known,
    /// It was not taken.
    Refused {
        /// Why.
        why: String,
        /// Whether it may be sent again later; if not, it never will be taken.
        again: bool,
    },
}

impl What {
    /// Whether the sender need not keep the report.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        !matches!(self, Self::Refused { again: true, .. })
    }
}

/// The answer to a body of reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Answer {
    /// What became of each report, in the order of the body.
    pub verdicts: Vec<Verdict>,
    /// Why the rest of the body could not be read, if so; what it held is to be dropped.
    pub unread: Option<String>,
    /// How long to wait before the next report.
    pub interval_ms: u64,
    /// What others have seen since, if the policy has answers say so.
    pub news: Option<News>,
}

#[cfg(test)]
mod tests {
    use super::{Name, Since, Verdict, What};

    #[test]
    fn since_is_read_as_it_is_written() {
        let since = Since {
            epoch: Name(0xab),
            from: 77,
        };
        assert_eq!(since.to_string(), "00000000000000ab:77");
        assert_eq!(since.to_string().parse(), Ok(since));
        assert!("77".parse::<Since>().is_err());
        let all = "00000000000000ab:x".parse::<Since>();
        assert_eq!(all.map(|since| since.from), Ok(0));
    }

    #[test]
    fn verdicts_are_flat() {
        let why = "full".to_owned();
        let verdict = Verdict {
            run: 1,
            sequence: 2,
            what: What::Refused { why, again: true },
        };
        let text = serde_json::to_string(&verdict).unwrap();
        let expected = r#"{"run":1,"sequence":2,"verdict":"refused","why":"full","again":true}"#;
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<Verdict>(&text).unwrap(), verdict);
        assert!(!verdict.what.is_settled() && What::Known.is_settled());
    }
}
