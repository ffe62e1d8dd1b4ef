//! Keys and tokens, by the forms in which their issuers write them.
//!
//! The input is a folded text. The output is places in it. The list [`TOKENS`] holds the forms that are a prefix and a
//! run of characters, which is how nearly every issuer marks a key today. The list [`SHAPES`] holds the forms that need
//! more. A run is counted once, and each shape is searched for separately, so the time is linear in the text, whatever
//! its content.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::places::{compile_forms, find_forms, regex};

/// The kinds of characters that follow the prefix of a token.
#[derive(Clone, Copy)]
enum TokenChars {
    /// Digits and the letters `a` to `f`, in either case.
    Hex,
    /// ASCII letters and digits.
    Word,
    /// The characters of `Word`, and `-` and `_`.
    Url,
    /// The characters of `Url`, and `.`, `+`, `/`, `=`, `%` and `:`.
    Wide,
}

impl TokenChars {
    fn has(self, byte: u8) -> bool {
        match self {
            Self::Hex => byte.is_ascii_hexdigit(),
            Self::Word => byte.is_ascii_alphanumeric(),
            Self::Url => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'),
            Self::Wide => byte.is_ascii_alphanumeric() || b"-_.+/=%:".contains(&byte),
        }
    }
}

/// Prefixes, the characters behind each, and the fewest of them. They come from the documentation of the issuers, or
/// from the tokens that they issue. The minimum is often a little lower than the length that is issued today, because
/// lengths grow and shrink.
const TOKENS: [(&str, TokenChars, usize); 116] = {
    use TokenChars::{Hex, Url, Wide, Word};
    [
        // Model providers: OpenAI, Anthropic and others that adopted `sk-`, Cerebras, Fireworks, Groq, Hugging Face,
        // Jina, LangSmith, NVIDIA, Perplexity, Replicate, Together, Weights & Biases, xAI, Pinecone.
        ("sk-", Url, 16),
        ("csk-", Word, 32),
        ("fw_", Word, 20),
        ("gsk_", Word, 20),
        ("hf_", Word, 30),
        ("api_org_", Word, 30),
        ("jina_", Word, 40),
        ("lsv2_pt_", Url, 32),
        ("lsv2_sk_", Url, 32),
        ("nvapi-", Url, 40),
        ("pplx-", Word, 32),
        ("r8_", Word, 30),
        ("tgp_v1_", Url, 30),
        ("wandb_v1_", Url, 40),
        ("xai-", Word, 40),
        ("pcsk_", Url, 40),
        // Clouds: Amazon, Google, Alibaba, Tencent, Yandex, DigitalOcean, Cloudflare, Fly, Heroku, Vercel, Netlify, Scalingo,
        // Databricks.
        ("AKIA", Word, 16),
        ("ASIA", Word, 16),
        ("ABIA", Word, 16),
        ("ACCA", Word, 16),
        ("ABSK", Wide, 100),
        ("bedrock-api-key-", Wide, 40),
        ("AIza", Url, 35),
        ("AQ.Ab8", Url, 40),
        ("GOCSPX-", Url, 20),
        ("ya29.", Wide, 10),
        ("1//0", Url, 40),
        ("LTAI", Word, 16),
        ("AKID", Word, 32),
        ("AQVN", Url, 35),
        ("dop_v1_", Hex, 40),
        ("doo_v1_", Hex, 40),
        ("dor_v1_", Hex, 40),
        ("v1.0-", Url, 100),
        ("fo1_", Url, 40),
        ("fm1r_", Wide, 60),
        ("fm1a_", Wide, 60),
        ("fm2_", Wide, 60),
        ("HRKU-", Url, 32),
        ("vcp_", Word, 24),
        ("vck_", Word, 24),
        ("nfp_", Word, 36),
        ("tk-us-", Url, 40),
        ("dapi", Hex, 32),
        ("dose", Hex, 32),
        // Forges and registries: GitHub, GitLab, Atlassian, Bitbucket, npm, PyPI, Docker, RubyGems, crates.io, NuGet, Clojars,
        // Artifactory.
        ("ghp_", Word, 30),
        ("gho_", Word, 30),
        ("ghu_", Word, 30),
        ("ghs_", Url, 30),
        ("ghr_", Word, 30),
        ("github_pat_", Url, 22),
        ("glpat-", Wide, 20),
        ("gldt-", Url, 20),
        ("glrt-", Wide, 20),
        ("glptt-", Hex, 40),
        ("glcbt-", Url, 20),
        ("glft-", Url, 20),
        ("glimt-", Url, 20),
        ("glagent-", Url, 40),
        ("gloas-", Hex, 40),
        ("glsoat-", Url, 20),
        ("GR1348941", Url, 20),
        ("ATATT3", Wide, 60),
        ("ATCTT3", Wide, 60),
        ("ATBB", Word, 32),
        ("npm_", Word, 36),
        ("pypi-", Url, 50),
        ("dckr_pat_", Url, 20),
        ("dckr_oat_", Url, 20),
        ("rubygems_", Hex, 40),
        ("cio", Word, 32),
        ("oy2", Word, 43),
        ("CLOJARS_", Hex, 40),
        ("AKCp", Word, 60),
        // Work: Slack, Linear, Notion, Postman, Figma, Typeform, ReadMe, Contentful, Dropbox, 1Password.
        ("xapp-", Url, 20),
        ("xwfp-", Url, 20),
        ("lin_api_", Word, 32),
        ("lin_oauth_", Word, 32),
        ("secret_", Word, 40),
        ("ntn_", Word, 40),
        ("PMAK-", Url, 50),
        ("PMAT-", Word, 26),
        ("figd_", Url, 36),
        ("tfp_", Url, 40),
        ("rdme_", Word, 60),
        ("CFPAT-", Url, 40),
        ("sl.", Url, 100),
        ("ops_eyJ", Wide, 60),
        // Operations: Vault, Doppler, Pulumi, Grafana, New Relic, Sentry, Dynatrace, Buildkite, CircleCI, SonarQube.
        ("hvs.", Url, 24),
        ("hvb.", Url, 24),
        ("hvr.", Url, 24),
        ("dp.pt.", Word, 40),
        ("dp.ct.", Word, 40),
        ("dp.st.", Wide, 40),
        ("dp.sa.", Word, 40),
        ("dp.scim.", Word, 40),
        ("pul-", Hex, 40),
        ("glsa_", Url, 32),
        ("glc_", Wide, 40),
        ("NRAK-", Word, 20),
        ("NRII-", Url, 20),
        ("sntrys_", Wide, 40),
        ("sntryu_", Hex, 60),
        ("dt0c01.", Wide, 60),
        ("bkua_", Hex, 40),
        ("CCIPAT_", Url, 40),
        ("squ_", Hex, 40),
        ("sqp_", Hex, 40),
        // Data, mail and payments: Supabase, PlanetScale, Mailgun, Brevo, web hooks of Stripe and others, Square, age.
        ("sbp_", Hex, 40),
        ("sb_secret_", Url, 20),
        ("pscale_", Url, 32),
        ("key-", Hex, 32),
        ("xkeysib-", Url, 64),
        ("whsec_", Wide, 16),
        ("EAAA", Url, 56),
        ("AGE-SECRET-KEY-1", Word, 50),
    ]
};

/// Pairs of the characters that each text with such a key contains, and its form. If a form has the group `part`, that
/// group is the secret.
const SHAPES: [(&str, &str); 28] = [
    // Private keys, even if only their beginning is there.
    (
        "-----BEGIN ",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?s:.)*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|(?s:.)*)",
    ),
    ("PuTTY-User-Key-File-", r"PuTTY-User-Key-File-[0-9](?s:.)*?(?:Private-MAC:\s*[0-9a-fA-F]+|\z)"),
    (
        "---- BEGIN SSH2 ENCRYPTED",
        r"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----(?s:.)*?(?:---- END SSH2 [A-Z ]*----|\z)",
    ),
    // Lines from the middle of a private key.
    ("", r"(?:^|\s)(?:[A-Za-z0-9+/=]{60,76}\s+){2,}[A-Za-z0-9+/=]*"),
    // Stripe, Square, Shopify, Razorpay, Shippo, Flutterwave, Plaid: a word names the purpose. Slack: a letter does.
    ("xox", r"(?-u:\b)xox[a-z]-[A-Za-z0-9-]{10,}"),
    ("k_", r"(?-u:\b)[sr]k_(?:live|test|prod)_[A-Za-z0-9]{10,}"),
    ("sq0", r"(?-u:\b)sq0[a-z]{3}-[A-Za-z0-9_-]{22,}"),
    ("shp", r"(?-u:\b)shp(?:at|ca|pa|ss|ua)_[A-Fa-f0-9]{32,}"),
    ("rzp_", r"(?-u:\b)rzp_(?:live|test)_[A-Za-z0-9]{14,}"),
    ("shippo_", r"(?-u:\b)shippo_(?:live|test)_[a-f0-9]{40}"),
    ("FLW", r"(?-u:\b)FLWSECK(?:_TEST)?-[A-Za-z0-9-]{12,}"),
    ("access-", r"(?-u:\b)access-(?:sandbox|development|production)-[0-9a-f-]{36}"),
    // Twilio: an account or a key, and 32 hexadecimal digits. Mailchimp: the same digits, and a data centre.
    ("", r"(?-u:\b)(?:AC|SK)[0-9a-f]{32}(?-u:\b)"),
    ("-us", r"(?-u:\b)[0-9a-f]{32}-us[0-9]{1,2}(?-u:\b)"),
    // Resend: two runs.
    ("re_", r"(?-u:\b)re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24,}"),
    // Microsoft Entra: three characters, a digit, and `Q~`. Terraform, Airtable.
    ("Q~", r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{30,}"),
    ("atlasv1", r"[A-Za-z0-9]{10,}\.atlasv1\.[A-Za-z0-9_=-]{40,}"),
    ("pat", r"(?-u:\b)pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    // Bots of Telegram and Discord, and the addresses of web hooks, which are keys themselves.
    (":AA", r"(?-u:\b)[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}"),
    ("", r"(?-u:\b)[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"),
    ("hook", r"hooks\.(?:slack|zapier)\.com/[a-z]+/(?:catch/)?(?<part>[A-Za-z0-9_/-]{16,})"),
    ("webhook", r"/(?:api/webhooks|webhook|webhookb2)/(?<part>[A-Za-z0-9@_./-]{20,})"),
    ("eyJ", r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    ("SG.", r"(?-u:\b)SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("://", r"[a-zA-Z]://[^\s/:@]*:(?<part>[^\s/]+)@"),
    (
        "=",
        r"(?i)[?&](?:sig|signature|x-amz-signature|x-goog-signature|code|sv_key)=(?<part>[A-Za-z0-9%/+=_-]{20,})",
    ),
    (
        "",
        r#"(?i:(?-u:\b)(?:bearer|basic|authorization["']?\s*[:=]\s*["']?[a-z]+))\s+(?<part>[A-Za-z0-9._~+/-]{16,}=*)"#,
    ),
    ("curl", r#"(?-u:\b)curl\s[^\n]*?(?:-u|--user)[ =]["']?[^\s:]+:(?<part>[^\s"']+)"#),
];

/// The length of a secret key of Amazon, which has no prefix, in characters.
const AWS_SECRET_CHARS: usize = 40;

/// The fewest changes between upper case, lower case, digits and signs in such a key. A key drawn at random changes 24
/// times of 39; paths and names change twice a word.
const AWS_TURNS_MIN: usize = 16;

/// Returns the places of keys and tokens, including those of which only a part is there.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    static FORMS: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| compile_forms(&SHAPES));
    let mut found = find_forms(&FORMS, text);
    found.extend(torn_key(text));
    found.extend(tokens(text));
    found.extend(aws_secrets(text));
    found
}

/// Returns the places where a prefix of [`TOKENS`] is followed by enough of the characters that belong behind it.
fn tokens(text: &str) -> Vec<Range<usize>> {
    static PREFIXES: LazyLock<Regex> = LazyLock::new(|| {
        let escaped: Vec<String> = TOKENS.iter().map(|(prefix, ..)| regex::escape(prefix)).collect();
        regex(&escaped.join("|"))
    });
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(prefix) = PREFIXES.find_at(text, at) {
        let start = prefix.start();
        at = start + 1;
        if start.checked_sub(1).is_some_and(|before| bytes[before].is_ascii_alphanumeric()) {
            continue;
        }
        let ends = TOKENS.iter().filter_map(|(prefix, chars, least)| {
            let rest = bytes[start..].strip_prefix(prefix.as_bytes())?;
            let count = rest.iter().take_while(|byte| chars.has(**byte)).count();
            if count >= *least { Some(start + prefix.len() + count) } else { None }
        });
        if let Some(end) = ends.max() {
            at = end;
            found.push(start..end);
        }
    }
    found
}

/// Returns the places of runs that look drawn at random and are as long as a secret key of Amazon.
fn aws_secrets(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(step) = bytes[at..].iter().position(|byte| is_base64(*byte)) {
        let start = at + step;
        let length = bytes[start..].iter().position(|byte| !is_base64(*byte)).unwrap_or(bytes.len() - start);
        at = start + length;
        if length == AWS_SECRET_CHARS && count_turns(&bytes[start..at]) >= AWS_TURNS_MIN {
            found.push(start..at);
        }
    }
    found
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')
}

/// Returns how often the kinds of characters change; 0 if upper case, lower case or digits are missing.
fn count_turns(bytes: &[u8]) -> usize {
    let kinds = bytes.iter().map(|byte| match byte {
        b'A'..=b'Z' => 0,
        b'a'..=b'z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    });
    let kinds: Vec<u8> = kinds.collect();
    if [0, 1, 2].iter().any(|kind| !kinds.contains(kind)) {
        return 0;
    }
    kinds.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// Returns the place of the rest of a private key whose beginning is in an earlier part of the text.
fn torn_key(text: &str) -> Option<Range<usize>> {
    static END: LazyLock<Regex> = LazyLock::new(|| regex("-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"));
    static BEGIN: LazyLock<Regex> =
        LazyLock::new(|| regex("-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"));
    let end = END.find(text)?;
    if BEGIN.is_match(&text[..end.start()]) { None } else { Some(0..end.end()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A much shorter token is not found, and neither is one with a letter before it.
    #[test]
    fn each_listed_token_is_found_whole() {
        for (prefix, chars, least) in TOKENS {
            let sign = if matches!(chars, TokenChars::Hex) { "e7" } else { "z7" };
            let body: String = sign.chars().cycle().take(least).collect();
            let token = format!("{prefix}{body}");
            let whole = format!("the key {token}, and no more");
            assert!(find(&whole).contains(&(8..8 + token.len())), "{token}");
            let short = format!("the key {}, and no more", &token[..prefix.len() + least / 2]);
            assert!(tokens(&short).is_empty(), "{short}");
            assert!(
                tokens(&format!("x{token}")).is_empty(),
                "a word that ends like a prefix begins no token"
            );
        }
    }

    #[test]
    fn aws_secret_is_known_by_looks() {
        let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        let found = aws_secrets(&format!("it is {secret}."));
        assert_eq!(found.first(), Some(&(6..46)));
        for other in [
            "da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "Documentation/devicetree/Bindings/Net802",
            "AbstractSingletonProxyFactoryBeanFactory",
        ] {
            assert_eq!((other.len(), aws_secrets(other)), (AWS_SECRET_CHARS, vec![]));
        }
    }
}
