//! The question whether a server is there, as a supervisor of processes asks it.
//!
//! The input is the address of a server. The output is its version, or the reason why there is no answer.

use std::time::Duration;

use axum::http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;

use crate::serve::error::ServeError;

/// The longest wait for an answer.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The longest body of an answer, in bytes.
const BODY_BYTES_MAX: usize = 4096;

#[derive(Deserialize)]
struct Healthy {
    version: String,
}

/// Asks a server whether it is there, and returns its version. It is not asked whether its models are.
pub async fn ask_health(address: &str) -> Result<String, ServeError> {
    // The base URL that a server prints is taken too.
    let host = address.trim_start_matches("http://").split('/').next().unwrap_or_default();
    let version = match tokio::time::timeout(WAIT_MAX, ask(host)).await {
        Ok(answer) => answer.map_err(|why| format!("{why:#}")),
        Err(_) => Err(format!("no answer came within {} s", WAIT_MAX.as_secs())),
    };
    version.map_err(|why| ServeError::NotThere { address: address.to_owned(), why })
}

async fn ask(address: &str) -> anyhow::Result<String> {
    anyhow::ensure!(address.contains(':'), "an address is HOST:PORT, such as 127.0.0.1:8700");
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::get("/health").header(header::HOST, "localhost").body(Empty::<Bytes>::new())?;
    // The connection is driven as long as the answer is awaited.
    let (answer, _) = tokio::join!(
        async {
            let answer = sender.send_request(request).await?;
            anyhow::ensure!(
                answer.status() == StatusCode::OK,
                "the answer has the status {}",
                answer.status()
            );
            let body = Limited::new(answer.into_body(), BODY_BYTES_MAX).collect().await;
            let body = body.map_err(|why| anyhow::anyhow!("the answer cannot be read: {why}"))?.to_bytes();
            drop(sender);
            Ok(serde_json::from_slice::<Healthy>(&body)?.version)
        },
        connection
    );
    answer
}
