//! The JSON of a Converse request, in the interface of 2023-09-30.

use serde::Serialize;
use serde_json::{Value, json};

use protocol::core::Structured;
use protocol::text::schema::SchemaText;
use protocol::{Ask, ReplyShape, Role};

/// A request to Converse.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConverseRequest<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Text<'a>>,
    messages: Vec<Turn<'a>>,
    inference_config: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig<'a>>,
}

#[derive(Serialize)]
struct Text<'a> {
    text: &'a str,
}

/// The messages of one side before the other side speaks again.
#[derive(Serialize)]
struct Turn<'a> {
    role: Role,
    content: Vec<Text<'a>>,
}

impl<'a> ConverseRequest<'a> {
    /// Creates the request for `ask`, with this form of structured output.
    pub(super) fn new(ask: &'a Ask, structured: Option<Structured>) -> Self {
        let mut system = Vec::new();
        let mut messages: Vec<Turn<'a>> = Vec::new();
        for message in &ask.messages {
            let text = Text { text: &message.content };
            match message.role {
                Role::System => system.push(text),
                // Sides take turns here, so two messages of one side are one turn of two texts.
                role @ (Role::User | Role::Assistant) => match messages.last_mut() {
                    Some(turn) if turn.role == role => turn.content.push(text),
                    Some(_) | None => messages.push(Turn { role, content: vec![text] }),
                },
            }
        }
        let inference_config = json!({"maxTokens": ask.max_tokens, "temperature": ask.temperature});
        let (mut output, mut tool) = (None, None);
        if let ReplyShape::Json { name, schema, .. } = &ask.shape {
            match structured {
                Some(Structured::JsonSchema) => output = Some(output_config(name, schema)),
                Some(Structured::JsonObject) => tool = Some(tool_config(name, schema)),
                Some(Structured::Prompt) | None => {}
            }
        }
        Self { system, messages, inference_config, output_config: output, tool_config: tool }
    }
}

/// Returns the form of the output, which holds the schema as a text.
fn output_config(name: &str, schema: &SchemaText) -> Value {
    let json_schema = json!({"name": name, "schema": schema.as_str()});
    json!({"textFormat": {"type": "json_schema", "structure": {"jsonSchema": json_schema}}})
}

/// The tool that must be called with the reply. The schema is sent as it was made.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig<'a> {
    tools: [Tool<'a>; 1],
    tool_choice: Value,
}

/// A tool.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tool<'a> {
    tool_spec: ToolSpec<'a>,
}

/// The name, the purpose and the input of a tool.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolSpec<'a> {
    name: &'a str,
    description: &'static str,
    input_schema: InputSchema<'a>,
}

/// The schema of a tool's input.
#[derive(Serialize)]
struct InputSchema<'a> {
    json: &'a SchemaText,
}

fn tool_config<'a>(name: &'a str, schema: &'a SchemaText) -> ToolConfig<'a> {
    let description = "Takes your reply. Its input is the reply's JSON object.";
    let tool_spec = ToolSpec { name, description, input_schema: InputSchema { json: schema } };
    ToolConfig { tools: [Tool { tool_spec }], tool_choice: json!({"tool": {"name": name}}) }
}
