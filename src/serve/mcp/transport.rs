//! The ways by which messages of the protocol come and go: standard input and output, or HTTP.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rmcp::ServiceExt as _;
use rmcp::transport::io::stdio_pipes;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::{mpsc, watch};

use super::lines;
use super::mcp_server::McpServer;
use crate::serve::dispatch::AppState;
use crate::serve::http::{BODY_BYTES_MAX, KEEP_ALIVE};

/// The time that a client which says no more has for its last answers.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// The bytes that may be on their way to the protocol and back.
const PIPE_BYTES: usize = 1 << 16;

/// Serves the client on standard input until it has gone, or `ended` comes.
pub(in crate::serve) async fn over_stdio(app: AppState, ended: impl Future<Output = ()>) {
    let server = McpServer { app, is_local: true };
    let (input, output) = stdio_pipes();
    let (gone, mut is_gone) = watch::channel(false);
    let input = Input { from: Box::pin(input), gone };
    let (inner, outer) = tokio::io::duplex(PIPE_BYTES);
    let (from_server, to_server) = tokio::io::split(outer);
    let (refuse, refusals) = mpsc::channel(1);
    let begun = async {
        match server.serve(tokio::io::split(inner)).await {
            Ok(client) => drop(client.waiting().await),
            Err(why) => tracing::warn!("the client on standard input does not speak MCP: {why}"),
        }
    };
    let written = async {
        let ((), written) = tokio::join!(begun, lines::write(from_server, refusals, output));
        if let Err(why) = written {
            tracing::debug!("the client reads no more: {why}");
        }
    };
    let read = async {
        if let Err(why) = lines::pass_on(input, to_server, refuse).await {
            tracing::debug!("the client writes no more: {why}");
        }
        // Its last answers are still to be written.
        std::future::pending::<()>().await;
    };
    // A client that has gone, and reads nothing any more, holds the server up no longer.
    let left = async {
        let _ = is_gone.wait_for(|is_gone| *is_gone).await;
        tokio::time::sleep(LAST_ANSWERS).await;
    };
    tokio::select! {
        () = written => {}
        () = read => {}
        () = left => {}
        () = ended => {}
    }
}

/// Standard input, which reports its end.
struct Input<R> {
    from: Pin<Box<R>>,
    gone: watch::Sender<bool>,
}

impl<R: AsyncRead> AsyncRead for Input<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled = buffer.filled().len();
        let read = self.from.as_mut().poll_read(context, buffer);
        let is_end = matches!(read, Poll::Ready(Ok(()))) && buffer.filled().len() == filled;
        if is_end || matches!(read, Poll::Ready(Err(_))) {
            self.gone.send_replace(true);
        }
        read
    }
}

/// Returns the service for clients over HTTP. It keeps nothing between two requests, and the guard has heard each of them before.
pub(in crate::serve) fn over_http(app: AppState) -> StreamableHttpService<McpServer, NeverSessionManager> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_sse_keep_alive(Some(KEEP_ALIVE))
        .with_max_request_body_bytes(BODY_BYTES_MAX)
        .disable_allowed_hosts();
    let server = McpServer { app, is_local: false };
    StreamableHttpService::new(move || Ok(server.clone()), NeverSessionManager::default().into(), config)
}
