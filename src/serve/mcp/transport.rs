//! The ways by which messages of the protocol come and go: standard input and output, or HTTP.

use std::time::Duration;

use rmcp::ServiceExt as _;
use rmcp::transport::io::stdio_pipes;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::mcp_server::McpServer;
use crate::serve::front::Front;

/// The time between two signs of life in an answer.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// The longest body of a request, in bytes.
const BODY_BYTES_MAX: usize = 8 << 20;

/// Serves the client on standard input until it has gone, or `ended` comes.
pub(in crate::serve) async fn over_stdio(front: Front, ended: impl Future<Output = ()>) {
    let server = McpServer { front, is_local: true };
    let begun = async {
        match server.serve(stdio_pipes()).await {
            Ok(client) => drop(client.waiting().await),
            Err(why) => tracing::warn!("the client on standard input does not speak MCP: {why}"),
        }
    };
    tokio::select! {
        () = begun => {}
        () = ended => {}
    }
}

/// Returns the service for clients over HTTP. It keeps nothing between two requests, and the guard has heard each of them before.
pub(in crate::serve) fn over_http(front: Front) -> StreamableHttpService<McpServer, NeverSessionManager> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_sse_keep_alive(Some(KEEP_ALIVE))
        .with_max_request_body_bytes(BODY_BYTES_MAX)
        .disable_allowed_hosts();
    let server = McpServer { front, is_local: false };
    StreamableHttpService::new(move || Ok(server.clone()), NeverSessionManager::default().into(), config)
}
