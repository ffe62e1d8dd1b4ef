//! Asks whether other parties can take part in a decision, before it has a number.
//!
//! The input is the branch and the base that a decision would start from. The output is the answer of each party, or the reason
//! why it gives none. An answer is its party's word: nothing is signed or written down for it, and no vote rests on it. The
//! owner of a door takes the questions that come through it, and finds out the state of a base in its own copy.

use std::time::Duration;

use http::StatusCode;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use super::unreached::{Unreached, innermost, other_version};

/// The time limit for an answer: that of a fetch, and a little more.
const ANSWER_MAX: Duration = Duration::from_secs(70);

/// The most bytes of a question.
pub(super) const QUESTION_BYTES_MAX: usize = 1024;

/// The most bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 4096;

/// The most questions that wait.
pub(super) const QUESTIONS_MAX: usize = 16;

/// The state of a base in the copy of the party that is asked.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BaseState {
    /// The copy has it, and the party could review a change of it.
    Known,
    /// The copy does not have it.
    Missing,
    /// The party's branch carries something that the base lacks.
    Behind,
    /// The party reviews for another branch.
    OtherBranch,
}

/// The answer of a party about itself.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Readiness {
    /// The name and the version of its program.
    pub program: String,
    /// The state of the base in its copy.
    pub base: BaseState,
    /// Whether it runs a command of its own before it approves.
    pub verifies: bool,
    /// The time that it gives a review, in seconds.
    pub review_s: u64,
    /// The reason why it could not fetch the base, if it could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetch_failed: Option<String>,
}

/// A question to a party: whether a decision could start there.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct BaseQuery {
    pub base: String,
    /// The full name of the branch.
    pub branch: String,
}

/// A question that has come through a door.
#[derive(Debug)]
pub struct Question {
    /// The content of the question, as it was written.
    pub about: BaseQuery,
    /// The channel for the answer.
    pub answer: oneshot::Sender<Readiness>,
}

/// The result of asking a party.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Reachability {
    /// The party has answered.
    Ready(Readiness),
    /// The party is there, and does not answer such questions.
    Silent,
    /// The party is not there.
    Away(Unreached),
}

/// Asks a party once.
pub(super) async fn ask(client: &reqwest::Client, place: &Url, about: &BaseQuery) -> Reachability {
    let asked = serde_json::to_string(about).unwrap_or_default();
    match send(client.post(place.clone()).timeout(ANSWER_MAX).body(asked)).await {
        Err(why) => Reachability::Away(Unreached::Lost(innermost(&why))),
        Ok(response) => match other_version(&response) {
            Some(other) => Reachability::Away(Unreached::OtherVersion(other)),
            None => read(response).await.map_or(Reachability::Silent, Reachability::Ready),
        },
    }
}

/// Sends a request, and sends it again if a connection that was kept has failed: it may lead to a process that is gone.
pub(super) async fn send(request: reqwest::RequestBuilder) -> reqwest::Result<reqwest::Response> {
    let again = request.try_clone();
    let sent = request.send().await;
    match (sent, again) {
        (Err(why), Some(again)) if !why.is_connect() && !why.is_timeout() => again.send().await,
        (sent, _) => sent,
    }
}

/// Reads an answer. Returns `None` if it is not one.
async fn read(mut response: reqwest::Response) -> Option<Readiness> {
    if response.status() != StatusCode::OK {
        return None;
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > ANSWER_BYTES_MAX {
            return None;
        }
    }
    serde_json::from_slice(&bytes).ok()
}

/// Puts a question to the owner of a door. Returns `None` if it is not a question, or if no one answers.
pub(super) async fn put_question(questions: &mpsc::Sender<Question>, asked: &[u8]) -> Option<Readiness> {
    let about = serde_json::from_slice(asked).ok()?;
    let (answer, answered) = oneshot::channel();
    questions.try_send(Question { about, answer }).ok()?;
    answered.await.ok()
}
