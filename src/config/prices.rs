//! The prices of tokens: the public prices that this program knows, and those that a user writes.
//!
//! The input is the name of a provider and of a model. The output is a price, if one is known. The list is data with a date. It is
//! never looked up anywhere, and never applied to a server that merely uses the same name. Prices that the user writes come first.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use protocol::core::Price;

/// Prices, written in US dollars per million tokens.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "Dollars")]
pub struct PriceConfig(pub(super) Price);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Dollars {
    prompt: f64,
    cached: Option<f64>,
    completion: f64,
}

impl TryFrom<Dollars> for PriceConfig {
    type Error = String;

    fn try_from(dollars: Dollars) -> Result<Self, String> {
        let prompt = read_price(dollars.prompt)?;
        let completion = read_price(dollars.completion)?;
        let cached = match dollars.cached {
            Some(cached) => read_price(cached)?,
            None => prompt,
        };
        Ok(Self(Price { prompt, cached, completion }))
    }
}

fn read_price(usd: f64) -> Result<u64, String> {
    micro_usd(usd)
        .ok_or_else(|| format!("price {usd} is not between 0 and 1e9 US dollars per million tokens"))
}

/// Turns US dollars, from 0 to 1e9, into millionths of a dollar.
pub fn micro_usd(usd: f64) -> Option<u64> {
    let micro = (usd * 1_000_000.0).round();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range")]
    (0.0..=1e15).contains(&micro).then_some(micro as u64)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceList {
    as_of: String,
    /// The prices by provider and model.
    models: BTreeMap<String, BTreeMap<String, PriceConfig>>,
}

static LIST: LazyLock<PriceList> = LazyLock::new(|| {
    toml::from_str(include_str!("prices.toml")).expect("the list of prices is well-formed (tested)")
});

/// Returns the public price of a provider's model, if the list has it.
pub fn listed_price(provider: &str, model: &str) -> Option<Price> {
    LIST.models.get(provider)?.get(model).map(|price| price.0)
}

/// Returns the year and month of the listed prices.
pub fn prices_as_of() -> &'static str {
    &LIST.as_of
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::core::BEDROCK;
    use protocol::core::PRESETS;

    /// The list names known providers, and its prices make sense.
    #[test]
    fn listed_prices_are_plausible() {
        for (provider, models) in &LIST.models {
            assert!(
                provider == BEDROCK || PRESETS.iter().any(|preset| preset.name == provider),
                "{provider}"
            );
            for (model, PriceConfig(price)) in models {
                assert!(price.cached <= price.prompt && price.prompt <= price.completion, "{model}");
            }
        }
        assert_eq!(prices_as_of().len(), "2026-06".len());
        let price = Price { prompt: 150_000, cached: 75_000, completion: 600_000 };
        assert_eq!(listed_price("openai", "gpt-4o-mini"), Some(price));
        assert_eq!(listed_price("vllm", "gpt-4o-mini"), None);
    }
}
