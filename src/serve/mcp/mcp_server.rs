//! The server of the protocol: which request goes where.

use std::borrow::Cow;

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, GetPromptRequestParams, GetPromptResponse,
    GetTaskParams, GetTaskResult, Implementation, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, UpdateTaskParams,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};

use super::calls::ToolCall;
use super::results::error_result;
use super::run_part::templates;
use super::tools::{PURPOSE, ToolName, prompt, prompts, tools};
use super::{resources, tasks};
use crate::program::VERSION;
use crate::serve::dispatch::{AppState, DEPTH_HEADER};
use crate::serve::http::Caller;

/// A server of the protocol, for one client or for all at an address.
#[derive(Clone, Debug)]
pub(in crate::serve) struct McpServer {
    pub(super) app: AppState,
    /// Whether the client is on this machine, with the rights of its user.
    pub(super) is_local: bool,
}

/// Returns the caller of a request. One over HTTP has passed the guard, which has put it there.
fn caller(context: &RequestContext<RoleServer>) -> Caller {
    let request = context.extensions.get::<http::request::Parts>();
    request.and_then(|request| request.extensions.get::<Caller>()).copied().unwrap_or(Caller::ANYONE)
}

/// The versions of the protocol whose rules are kept. That of 2025-03-26 has batches of messages, which no later one has.
static VERSIONS: [ProtocolVersion; 4] = [
    ProtocolVersion::V_2024_11_05,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2026_07_28,
];

impl ServerHandler for McpServer {
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(&VERSIONS)
    }

    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("consensus", VERSION))
            .with_instructions(PURPOSE)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools(&self.app.service.rules, self.is_local)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let CallToolRequestParams { name, arguments, .. } = request;
        let Some(tool) = ToolName::from_name(&name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool `{name}`"), None));
        };
        let caller = caller(&context);
        let request = context.extensions.get::<http::request::Parts>();
        let is_recursive = request.is_some_and(|request| request.headers.contains_key(DEPTH_HEADER));
        let (app, is_local) = (&self.app, self.is_local);
        let call = ToolCall { app, caller, is_local, is_recursive, context: &context };
        let answer = call.answer(tool, arguments.unwrap_or_default()).await;
        Ok(answer.unwrap_or_else(|why| error_result(&why).into()))
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let listed = resources::list(&self.app.service, caller(&context))?;
        Ok(ListResourcesResult::with_all_items(listed))
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = resources::read(&self.app.service, caller(&context), &request.uri).await?;
        Ok(read.into())
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts(&self.app.service.rules)))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let rules = &self.app.service.rules;
        Ok(prompt(rules, &request.name, request.arguments.as_ref())?.into())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let task = tasks::task(&self.app, caller(&context), &request.task_id).await?;
        Ok(GetTaskResult::new(task))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // A run asks its client for nothing, so there is nothing to take.
        tasks::task(&self.app, caller(&context), &request.task_id).await.map(drop)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        tasks::cancel_task(&self.app, caller(&context), &request.task_id).await
    }
}
