//! The plan for long documents: whether a run reads them in pieces, and in which pieces.
//!
//! A server may be asked how much fits and how many tokens sample texts have; an estimate is used if no server answers.

use super::error::RunError;
use super::reporter::Reporter;
use super::request::{ReadInPieces, RunRequest};
use crate::engine::RunBuilder;
use crate::provider::OpenAi;
use crate::retrieval::pieces;
use protocol::contract::{Chunk, ChunkPlan};
use protocol::core::Endpoint;
use protocol::{ProtocolParams as _, RunSetup};

/// The fewest tokens for which a server is asked how much fits.
const LONG: u64 = 2_000;

/// The tokens of a piece if the server does not report the size of its context.
const PIECE_TOKENS: u64 = 2_000;

/// The most tokens of a piece, unless the request sets another limit: readers find more in shorter texts.
const PIECE_TOKENS_MAX: u64 = 8_000;

/// The bytes of a token if no server counts; most texts have more.
const BYTES_A_TOKEN: f64 = 3.0;

/// The number of samples that are counted to learn the length of a token, and the bytes of each sample.
const SAMPLES: usize = 8;
const SAMPLE_BYTES: usize = 4_096;

/// The number of times that pieces are shortened after the server has counted them.
const ADJUSTMENTS_MAX: usize = 4;

/// The warning about long documents that a roleset reads whole.
const READ_WHOLE: &str = "the documents may not fit into the model's context, and this roleset reads them whole; \
     --roleset generalist_critic reads them in pieces";

/// Divides the documents of a run into pieces if that was requested or is needed. Asks the server how much fits.
pub(super) async fn plan(
    builder: RunBuilder,
    request: &RunRequest,
    endpoints: &[Endpoint],
    reporter: &dyn Reporter,
) -> Result<RunBuilder, RunError> {
    let setup = builder.setup();
    let estimate = length(setup);
    let is_asked_for = request.chunks.map_reduce == ReadInPieces::Always;
    if request.chunks.map_reduce == ReadInPieces::Never || !is_asked_for && estimate < LONG {
        return Ok(builder);
    }
    let servers = connect_servers(endpoints);
    // The smallest context among the servers.
    let mut context: Option<u64> = None;
    for server in &servers {
        if let Ok(info) = server.info().await
            && let Some(tokens) = info.context_tokens
            && tokens > 0
        {
            context = Some(context.map_or(tokens, |context| context.min(tokens)));
        }
    }
    let is_too_long = context.is_some_and(|context| estimate > context / 2);
    if !setup.params.reads_pieces() {
        if is_too_long {
            reporter.warn(READ_WHOLE);
        }
        return Ok(builder);
    }
    if !is_asked_for && !is_too_long {
        return Ok(builder);
    }
    if let Some(why) = find_obstacle(request, setup, builder.is_redacted()) {
        if is_asked_for {
            return Err(RunError::Usage(format!("--map-reduce {why}")));
        }
        reporter.warn(&format!("the documents may not fit into the model's context; --map-reduce {why}"));
        return Ok(builder);
    }
    let room = context.map_or(PIECE_TOKENS, |context| (context / 4).clamp(LONG / 4, PIECE_TOKENS_MAX));
    let tokens_max = request.chunks.tokens_max.unwrap_or(room);
    let pieces = match servers.first() {
        Some(server) => cut_by_count(server, setup, tokens_max).await,
        None => cut(setup, bytes(tokens_max, BYTES_A_TOKEN)),
    };
    let count = pieces.len();
    let builder = with_pieces(builder, request, pieces, tokens_max)?;
    let word = if count == 1 { "piece" } else { "pieces" };
    reporter.status(&format!("documents: read in {count} {word} of at most {tokens_max} tokens"));
    Ok(builder)
}

/// Returns each server that is asked, once.
fn connect_servers(endpoints: &[Endpoint]) -> Vec<OpenAi> {
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

/// Divides the documents for an estimate of the cost: only if that was requested, and without asking a server.
pub(super) fn plan_by_estimate(
    builder: RunBuilder,
    request: &RunRequest,
    is_redacted: bool,
    reporter: &dyn Reporter,
) -> Result<RunBuilder, RunError> {
    let setup = builder.setup();
    if !setup.params.reads_pieces() {
        return Ok(builder);
    }
    let estimate = length(setup);
    match request.chunks.map_reduce {
        ReadInPieces::Never => return Ok(builder),
        ReadInPieces::Auto => {
            if estimate >= LONG && find_obstacle(request, setup, is_redacted).is_none() {
                reporter.warn(&format!(
                    "the documents have about {estimate} tokens; if that is more than half of the model's context, they are read in pieces, which --map-reduce plans"
                ));
            }
            return Ok(builder);
        }
        ReadInPieces::Always => {}
    }
    if let Some(why) = find_obstacle(request, setup, is_redacted) {
        return Err(RunError::Usage(format!("--map-reduce {why}")));
    }
    let tokens_max = request.chunks.tokens_max.unwrap_or(PIECE_TOKENS);
    let pieces = cut(setup, bytes(tokens_max, BYTES_A_TOKEN));
    with_pieces(builder, request, pieces, tokens_max)
}

fn with_pieces(
    builder: RunBuilder,
    request: &RunRequest,
    pieces: Vec<Chunk>,
    tokens_max: u64,
) -> Result<RunBuilder, RunError> {
    let plan = ChunkPlan { pieces, tokens_max, at_once: request.chunks.at_once };
    Ok(builder.with_chunks(plan)?)
}

/// Returns why these documents cannot be read in pieces, if there is a reason.
fn find_obstacle(request: &RunRequest, setup: &RunSetup, is_redacted: bool) -> Option<&'static str> {
    if setup.task.documents.iter().all(|document| document.text.trim().is_empty()) {
        return Some("reads documents given with -f FILE, and there is no document with any text");
    }
    if setup.task.is_searched {
        return Some("does not go with --docs, which finds passages and does not read whole documents");
    }
    if request.session.is_some() {
        return Some("does not go with --session");
    }
    if is_redacted {
        return Some("does not go with redaction");
    }
    if request.settings.params.has_constraints() {
        return Some(
            "gives sentences with the facts behind them, and so does not go with --constraint, --canonical or --choices",
        );
    }
    None
}

/// Cuts pieces by the server's token counts, if it counts, so that no piece is longer than allowed.
async fn cut_by_count(server: &OpenAi, setup: &RunSetup, tokens_max: u64) -> Vec<Chunk> {
    let mut length = BYTES_A_TOKEN;
    let texts: Vec<&str> = setup.task.documents.iter().map(|document| &*document.text).collect();
    let mut shortest: Option<f64> = None;
    for sample in texts.iter().flat_map(|text| samples(text)) {
        let Some(count) = server.count_tokens(sample).await else {
            return cut(setup, bytes(tokens_max, length));
        };
        let bytes_a_token = sample.len() as f64 / count.max(1) as f64;
        shortest = Some(shortest.map_or(bytes_a_token, |shortest| shortest.min(bytes_a_token)));
    }
    length = shortest.unwrap_or(length);
    let mut pieces = cut(setup, bytes(tokens_max, length));
    // All pieces are shortened by the excess of the longest one; texts are rarely so uneven that this repeats.
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

/// Returns samples from all over a text. Returns no samples of a text so short that its end would bias the count.
fn samples(text: &str) -> impl Iterator<Item = &str> {
    let room = text.len().saturating_sub(SAMPLE_BYTES);
    let starts = if text.len() < SAMPLE_BYTES / 4 { 0 } else { SAMPLES.min(1 + text.len() / SAMPLE_BYTES) };
    (0..starts).map(move |index| {
        let start = text.floor_char_boundary(room * index / starts.max(2).saturating_sub(1));
        &text[start..text.floor_char_boundary(start + SAMPLE_BYTES)]
    })
}

fn cut(setup: &RunSetup, bytes_max: usize) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    for (document, text) in setup.task.documents.iter().enumerate() {
        for place in pieces(&text.name, &text.text, bytes_max) {
            chunks.push(Chunk { document, start: place.start, end: place.end });
        }
    }
    chunks
}

fn bytes(tokens_max: u64, length: f64) -> usize {
    // The result is far below the greatest possible number of bytes.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a million tokens at most")]
    let bytes = (tokens_max as f64 * length).floor() as usize;
    bytes
}

/// Returns the estimated number of tokens of the documents, as for prompts.
fn length(setup: &RunSetup) -> u64 {
    setup.task.documents.iter().map(|document| document.text.len() as u64 / 3).sum()
}
