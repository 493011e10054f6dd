//! Schemas of the types whose form in JSON is written by hand. Only with the feature `schema`.

use std::borrow::Cow;

use utoipa::openapi::schema::Type;
use utoipa::openapi::{ArrayBuilder, ObjectBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::{CampaignId, InstanceId, Name, Units};

macro_rules! digits {
    ($name:ident, $pattern:literal) => {
        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let text = ObjectBuilder::new().schema_type(Type::String);
                text.pattern(Some($pattern)).build().into()
            }
        }

        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                stringify!($name).into()
            }
        }
    };
}

digits!(CampaignId, "^[0-9a-f]{32}$");
digits!(InstanceId, "^[0-9a-f]{32}$");
digits!(Name, "^[0-9a-f]{16}$");

impl PartialSchema for Units {
    fn schema() -> RefOr<Schema> {
        let unit = ObjectBuilder::new().schema_type(Type::Integer);
        let range = ArrayBuilder::new().items(unit.build());
        let range = range.min_items(Some(2)).max_items(Some(2));
        let ranges = ArrayBuilder::new().items(range);
        let words = "Ascending ranges of units, each by its first and its last.";
        ranges.description(Some(words)).build().into()
    }
}

impl ToSchema for Units {
    fn name() -> Cow<'static, str> {
        "Units".into()
    }
}
