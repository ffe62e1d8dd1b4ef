//! Whether others can take part in a decision, asked before it has a number.
//!
//! In: the branch and the base that a decision would start from. Out: what each party says of itself, or why it says nothing. An answer is its
//! party's word: nothing is signed or written down for it, and no vote rests on it. What a base is to a party is for its owner
//! to find out, who takes the questions that come through its door.

use std::time::Duration;

use http::StatusCode;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use super::unreached::{Unreached, innermost, other_version};

/// How long an answer may take: as long as a fetch may, and a little more.
const ANSWER_MAX: Duration = Duration::from_secs(70);

/// So many bytes a question has at most.
pub(super) const QUESTION_BYTES_MAX: usize = 1024;

/// So many bytes of an answer are read at most.
const ANSWER_BYTES_MAX: usize = 4096;

/// So many questions wait at most.
pub(super) const QUESTIONS_MAX: usize = 16;

/// What a base is to the copy of somebody who is asked.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BaseState {
    /// It has it, and could review a change of it.
    Known,
    /// It does not have it.
    Missing,
    /// Its branch carries something that the base lacks.
    Behind,
    /// It reviews for another branch.
    OtherBranch,
}

/// What somebody says of itself who is asked.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Readiness {
    /// Its program and the version of that.
    pub program: String,
    /// What the base is to its copy.
    pub base: BaseState,
    /// Whether it runs a command of its own before it approves.
    pub verifies: bool,
    /// How long it gives a review, in seconds.
    pub review_s: u64,
    /// Why it could not fetch the base, where it could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetch_failed: Option<String>,
}

/// What is asked: whether a decision could start there.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Inquiry {
    /// The commit.
    pub base: String,
    /// The branch, by its full name.
    pub branch: String,
}

/// A question that has come through a door.
#[derive(Debug)]
pub struct Question {
    /// What it is about, as it was written.
    pub about: Inquiry,
    /// Where the answer goes.
    pub answer: oneshot::Sender<Readiness>,
}

/// The questions that come through a door.
pub type Questions = mpsc::Receiver<Question>;

/// What is known of somebody who was asked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Presence {
    /// It has answered.
    Ready(Readiness),
    /// It is there, and does not answer such questions.
    Silent,
    /// It is not there.
    Away(Unreached),
}

/// Asks a party once.
pub(super) async fn ask(client: &reqwest::Client, place: &Url, about: &Inquiry) -> Presence {
    let asked = serde_json::to_string(about).unwrap_or_default();
    let post = || client.post(place.clone()).timeout(ANSWER_MAX).body(asked.clone()).send();
    let mut said = post().await;
    // A connection that was kept may be one to a process that is gone.
    if said.as_ref().is_err_and(|why| !why.is_connect() && !why.is_timeout()) {
        said = post().await;
    }
    match said {
        Err(why) => Presence::Away(Unreached::Lost(innermost(&why))),
        Ok(said) => match other_version(&said) {
            Some(other) => Presence::Away(Unreached::OtherVersion(other)),
            None => read(said).await.map_or(Presence::Silent, Presence::Ready),
        },
    }
}

/// Reads an answer, if it is one.
async fn read(mut said: reqwest::Response) -> Option<Readiness> {
    if said.status() != StatusCode::OK {
        return None;
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = said.chunk().await.ok()? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > ANSWER_BYTES_MAX {
            return None;
        }
    }
    serde_json::from_slice(&bytes).ok()
}

/// Puts a question to the owner of a door. None, if it is no question, or nobody answers.
pub(super) async fn put(questions: &mpsc::Sender<Question>, asked: &[u8]) -> Option<Readiness> {
    let about = serde_json::from_slice(asked).ok()?;
    let (answer, said) = oneshot::channel();
    questions.try_send(Question { about, answer }).ok()?;
    said.await.ok()
}
