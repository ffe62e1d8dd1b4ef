//! Places in JSON values, as pointers.
//!
//! In: a value. Out: the pointers of all that is below it, or one that is drawn. Nothing is changed here.

use fastrand::Rng;
use serde_json::Value;

use crate::sweep::one_of;

/// Returns the places of all values below this one.
pub(crate) fn places(value: &Value) -> Vec<String> {
    let below = |name: &str, value: &Value| {
        let place = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        let deeper = places(value).into_iter().map(|deeper| format!("{place}{deeper}")).collect::<Vec<_>>();
        std::iter::once(place.clone()).chain(deeper).collect::<Vec<_>>()
    };
    match value {
        Value::Object(fields) => fields.iter().flat_map(|(name, value)| below(name, value)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().flat_map(|(at, value)| below(&at.to_string(), value)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// Returns one of all places.
pub(crate) fn place(value: &Value, draw: &mut Rng) -> Option<String> {
    let found = places(value);
    (!found.is_empty()).then(|| one_of(draw, &found).clone())
}
