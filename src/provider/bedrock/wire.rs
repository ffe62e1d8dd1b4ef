//! The JSON of a Converse request, in the interface of 2023-09-30.

use serde::Serialize;

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
    inference_config: Inference,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
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

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Inference {
    max_tokens: u32,
    temperature: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OutputConfig<'a> {
    text_format: TextFormat<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum TextFormat<'a> {
    JsonSchema { structure: Structure<'a> },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Structure<'a> {
    json_schema: NamedSchema<'a>,
}

#[derive(Serialize)]
struct NamedSchema<'a> {
    name: &'a str,
    /// The text of the schema, as a string.
    schema: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig<'a> {
    tools: [Tool<'a>; 1],
    tool_choice: ToolChoice<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tool<'a> {
    tool_spec: ToolSpec<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolSpec<'a> {
    name: &'a str,
    description: &'static str,
    input_schema: InputSchema<'a>,
}

#[derive(Serialize)]
struct InputSchema<'a> {
    json: &'a SchemaText,
}

#[derive(Serialize)]
struct ToolChoice<'a> {
    tool: Named<'a>,
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
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
        let inference_config = Inference { max_tokens: ask.max_tokens, temperature: ask.temperature };
        let (mut output_config, mut tool_config) = (None, None);
        if let ReplyShape::Json { name, schema, .. } = &ask.shape {
            match structured {
                Some(Structured::JsonSchema) => output_config = Some(output(name, schema)),
                Some(Structured::JsonObject) => tool_config = Some(tool(name, schema)),
                Some(Structured::Prompt) | None => {}
            }
        }
        Self { system, messages, inference_config, output_config, tool_config }
    }
}

fn output<'a>(name: &'a str, schema: &'a SchemaText) -> OutputConfig<'a> {
    let json_schema = NamedSchema { name, schema: schema.as_str() };
    OutputConfig { text_format: TextFormat::JsonSchema { structure: Structure { json_schema } } }
}

fn tool<'a>(name: &'a str, schema: &'a SchemaText) -> ToolConfig<'a> {
    let description = "Takes your reply. Its input is the reply's JSON object.";
    let tool_spec = ToolSpec { name, description, input_schema: InputSchema { json: schema } };
    ToolConfig { tools: [Tool { tool_spec }], tool_choice: ToolChoice { tool: Named { name } } }
}
