//! Sharing long documents out: whether a run reads them in pieces, and in which.
//!
//! In: a run and its endpoints. Out: the run, with a plan where one is needed. A server is asked what fits and counts
//! samples of the texts; where none does, an estimate serves.

use super::error::RunError;
use super::notices::Notices;
use super::request::{ReadInPieces, RunRequest};
use crate::core::Endpoint;
use crate::engine::RunBuilder;
use crate::protocol::contract::{Chunk, ChunkPlan};
use crate::protocol::{Params, RunSetup};
use crate::provider::OpenAi;
use crate::retrieval::pieces;

/// The fewest tokens for which a server is asked how much fits.
const LONG: u64 = 2_000;

/// Tokens of a piece where the server does not say how many fit into a context.
const PIECE_TOKENS: u64 = 2_000;

/// The most tokens of a piece that are chosen without being told: readers find more in less.
const PIECE_TOKENS_MAX: u64 = 8_000;

/// Bytes of a token where no server counts: most texts have more.
const BYTES_A_TOKEN: f64 = 3.0;

/// Texts that are counted to learn how long a token is, and their length in bytes.
const SAMPLES: usize = 8;
const SAMPLE_BYTES: usize = 4_096;

/// How often pieces are made shorter by what the server counts.
const ADJUSTMENTS_MAX: usize = 4;

/// Shares the documents of a run out, where that was asked for or is needed; asks the server what fits.
pub(super) async fn planned(
    builder: RunBuilder,
    request: &RunRequest,
    endpoints: &[Endpoint],
    notices: &dyn Notices,
) -> Result<RunBuilder, RunError> {
    let setup = builder.setup();
    let estimate = length(setup);
    let is_asked_for = request.chunks.map_reduce == ReadInPieces::Always;
    let is_out_of_question =
        request.chunks.map_reduce == ReadInPieces::Never || !is_asked_for && estimate < LONG;
    if is_review(setup) || is_out_of_question {
        return Ok(builder);
    }
    let servers = servers(endpoints);
    // What each of them can read.
    let mut context: Option<u64> = None;
    for server in &servers {
        let told = server.info().await.ok().and_then(|info| info.context_tokens).filter(|&tokens| tokens > 0);
        context = context.into_iter().chain(told).min();
    }
    let is_too_long = context.is_some_and(|context| estimate > context / 2);
    if !is_asked_for && !is_too_long {
        return Ok(builder);
    }
    if let Some(why) = obstacle(request, setup, builder.is_redacted()) {
        if is_asked_for {
            return Err(RunError::Usage(format!("--map-reduce {why}")));
        }
        notices.warn(&format!("the documents may not fit into the model's context; --map-reduce {why}"));
        return Ok(builder);
    }
    let room = context.map_or(PIECE_TOKENS, |context| (context / 4).clamp(LONG / 4, PIECE_TOKENS_MAX));
    let tokens_max = request.chunks.tokens_max.unwrap_or(room);
    let pieces = match servers.first() {
        Some(server) => counted(server, setup, tokens_max).await,
        None => cut(setup, bytes(tokens_max, BYTES_A_TOKEN)),
    };
    let count = pieces.len();
    let builder = take(builder, request, pieces, tokens_max)?;
    let word = if count == 1 { "piece" } else { "pieces" };
    notices.status(&format!("documents: read in {count} {word} of at most {tokens_max} tokens"));
    Ok(builder)
}

/// A review reads its diff in parts of its own.
fn is_review(setup: &RunSetup) -> bool {
    matches!(setup.params, Params::Approval(_))
}

/// Returns each server that is asked, once.
fn servers(endpoints: &[Endpoint]) -> Vec<OpenAi> {
    let mut known: Vec<(&str, &str)> = Vec::new();
    let mut servers = Vec::new();
    for endpoint in endpoints {
        let Endpoint::OpenAi(endpoint) = endpoint else { continue };
        let place = (endpoint.base_url.as_str(), endpoint.model.as_str());
        if !known.contains(&place) {
            known.push(place);
            servers.extend(OpenAi::new((**endpoint).clone()).ok());
        }
    }
    servers
}

/// The same for an estimate of the cost, which asks no server: only where it was asked for, by the estimate.
pub(super) fn planned_by_estimate(
    builder: RunBuilder,
    request: &RunRequest,
    is_redacted: bool,
    notices: &dyn Notices,
) -> Result<RunBuilder, RunError> {
    let setup = builder.setup();
    if is_review(setup) {
        return Ok(builder);
    }
    let estimate = length(setup);
    match request.chunks.map_reduce {
        ReadInPieces::Never => return Ok(builder),
        ReadInPieces::Auto => {
            if estimate >= LONG && obstacle(request, setup, is_redacted).is_none() {
                notices.warn(&format!(
                    "the documents have about {estimate} tokens: where that is more than half of the model's context, they are read in pieces, which --map-reduce plans"
                ));
            }
            return Ok(builder);
        }
        ReadInPieces::Always => {}
    }
    if let Some(why) = obstacle(request, setup, is_redacted) {
        return Err(RunError::Usage(format!("--map-reduce {why}")));
    }
    let tokens_max = request.chunks.tokens_max.unwrap_or(PIECE_TOKENS);
    let pieces = cut(setup, bytes(tokens_max, BYTES_A_TOKEN));
    take(builder, request, pieces, tokens_max)
}

fn take(
    builder: RunBuilder,
    request: &RunRequest,
    pieces: Vec<Chunk>,
    tokens_max: u64,
) -> Result<RunBuilder, RunError> {
    let plan = ChunkPlan { pieces, tokens_max, at_once: request.chunks.at_once };
    Ok(builder.with_chunks(plan)?)
}

/// What keeps these documents from being read in pieces, if anything does.
fn obstacle(request: &RunRequest, setup: &RunSetup, is_redacted: bool) -> Option<&'static str> {
    let is_blank = setup.task.documents.iter().all(|document| document.text.trim().is_empty());
    let obstacles = [
        ("reads documents that are given with -f FILE, and there are none with any text", is_blank),
        ("does not go with --docs: passages are found, not read", setup.task.is_searched),
        ("does not go with --session", request.session.is_some()),
        ("does not go with redaction", is_redacted),
        (
            "gives sentences with the facts behind them, so that --constraint, --canonical and --choices do not go with it",
            request.params.is_formed(),
        ),
    ];
    obstacles.into_iter().find(|(_, is_there)| *is_there).map(|(why, _)| why)
}

/// Cuts by the tokens that the server counts, where it counts any: no piece is longer than allowed.
async fn counted(server: &OpenAi, setup: &RunSetup, tokens_max: u64) -> Vec<Chunk> {
    let mut length = BYTES_A_TOKEN;
    let texts: Vec<&str> = setup.task.documents.iter().map(|document| &*document.text).collect();
    let mut shortest: Option<f64> = None;
    for sample in texts.iter().flat_map(|text| samples(text)) {
        let Some(count) = server.count_tokens(sample).await else {
            return cut(setup, bytes(tokens_max, length));
        };
        let own = sample.len() as f64 / count.max(1) as f64;
        shortest = Some(shortest.map_or(own, |shortest| shortest.min(own)));
    }
    length = shortest.unwrap_or(length);
    let mut pieces = cut(setup, bytes(tokens_max, length));
    // What one piece has above the limit all are made shorter by; a text is rarely so uneven that this goes on.
    for _ in 0..ADJUSTMENTS_MAX {
        let mut most = 0;
        for piece in &pieces {
            let text = &texts[piece.document][piece.start..piece.end];
            most = most.max(server.count_tokens(text).await.unwrap_or(0));
        }
        if most <= tokens_max {
            break;
        }
        length *= 0.95 * tokens_max as f64 / most as f64;
        pieces = cut(setup, bytes(tokens_max, length));
    }
    pieces
}

/// Returns parts of a text from all over it; none of one so short that its end would tell too much.
fn samples(text: &str) -> impl Iterator<Item = &str> {
    let room = text.len().saturating_sub(SAMPLE_BYTES);
    let starts = if text.len() < SAMPLE_BYTES / 4 { 0 } else { SAMPLES.min(1 + text.len() / SAMPLE_BYTES) };
    (0..starts).map(move |index| {
        let start = text.floor_char_boundary(room * index / starts.max(2).saturating_sub(1));
        &text[start..text.floor_char_boundary(start + SAMPLE_BYTES)]
    })
}

fn cut(setup: &RunSetup, bytes_max: usize) -> Vec<Chunk> {
    let documents = setup.task.documents.iter().enumerate();
    let of_each = documents.flat_map(|(document, text)| {
        pieces(&text.name, &text.text, bytes_max).into_iter().map(move |place| Chunk {
            document,
            start: place.start,
            end: place.end,
        })
    });
    of_each.collect()
}

fn bytes(tokens_max: u64, length: f64) -> usize {
    // Far below the largest number of bytes that there may be.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a million tokens at most")]
    let bytes = (tokens_max as f64 * length).floor() as usize;
    bytes
}

/// Returns how many tokens the documents have, by the estimate of prompts.
fn length(setup: &RunSetup) -> u64 {
    setup.task.documents.iter().map(|document| document.text.len() as u64 / 3).sum()
}
