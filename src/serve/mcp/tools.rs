//! The tools, with the forms of their arguments and reports, and the prompts.
//!
//! The input is the rules of the server. The output is what a client shows to its model, which decides by it whether agreement is worth
//! its tokens.

use std::fmt::Write as _;
use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::handler::server::common::{schema_for_input, schema_for_output};
use rmcp::model::{
    GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role, Tool, ToolAnnotations,
};
use rmcp::schemars::JsonSchema;
use serde_json::{Value, json};

use super::arguments::{AskArguments, ReviewArguments, RunArguments};
use super::reports::{PlanReport, ToolReport, VerifyReport};
use crate::serve::runs::ServerRules;

/// The purpose of the server, for a client that shows it to its model.
pub(super) const PURPOSE: &str = "Several agents answer a task apart from each other, examine each other's answers and end with one \
    text, or without. A journal proves it. Use it where a wrong answer costs more than several times the tokens of one answer, and \
    answers can be compared: a number, a choice, a short fact or JSON. Do not use it for matters of taste, for facts that a tool can \
    look up, or for answers that you can check yourself.";

const RUN: &str = "Has several agents agree on the answer to a task. It costs several times the tokens of one answer, and most for a \
    council or a panel; `plan` says how many. Agents of one model share its errors, so an agreement is no proof: look at `outcome`, \
    `how` and `dissent`. After 45 seconds it returns the id of the run, which goes on; then call `result`.";
const START: &str =
    "Begins a run like `run`, and returns its id at once. Use it to do something else meanwhile.";
const STATUS: &str = "Says how far a run has come, without waiting.";
const RESULT: &str =
    "Waits for the end of a run, for 45 seconds at most. Call it again while the status is `running`.";
const CANCEL: &str = "Stops a run for good.";
const PLAN: &str = "Says what a run would use at least and at most: calls, tokens, and cost where prices are known. No model is called.";
const VERIFY: &str = "Derives a run again from its journal and compares it with its result. This proves that the protocol was kept, not \
    that the answer is right.";
const REVIEW: &str = "Has several reviewers read a change and vote on it; a quorum approves. Each finding quotes a line of the change. \
    Nothing is applied. It is worth its tokens before a change that is hard to take back.";

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ToolName {
    Run,
    Start,
    Status,
    Result,
    Cancel,
    Plan,
    Verify,
    ReviewChange,
}

impl ToolName {
    /// All tools, in the order of a client's list.
    const ALL: [Self; 8] = [
        Self::Run,
        Self::Start,
        Self::Status,
        Self::Result,
        Self::Cancel,
        Self::Plan,
        Self::Verify,
        Self::ReviewChange,
    ];

    /// Returns the tool of this name.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Start => "start",
            Self::Status => "status",
            Self::Result => "result",
            Self::Cancel => "cancel",
            Self::Plan => "plan",
            Self::Verify => "verify",
            Self::ReviewChange => "review_change",
        }
    }

    fn tool(self, rules: &ServerRules, is_local: bool) -> Tool {
        let (description, input, output) = match self {
            Self::Run => (RUN, ask_form(rules, true), output::<ToolReport>()),
            Self::Start => (START, ask_form(rules, false), output_of_run()),
            Self::Plan => (PLAN, ask_form(rules, false), output::<PlanReport>()),
            Self::ReviewChange => (REVIEW, review_form(rules, is_local), output_of_run()),
            Self::Status => (STATUS, input::<RunArguments>(), output_of_run()),
            Self::Result => (RESULT, input::<RunArguments>(), output_of_run()),
            Self::Cancel => (CANCEL, input::<RunArguments>(), output_of_run()),
            Self::Verify => (VERIFY, input::<RunArguments>(), output::<VerifyReport>()),
        };
        let reads = matches!(self, Self::Status | Self::Result | Self::Plan | Self::Verify);
        let annotations = ToolAnnotations::new().read_only(reads).destructive(self == Self::Cancel);
        Tool::new(self.name(), description, input)
            .with_raw_output_schema(output)
            .with_annotations(annotations)
    }
}

/// Returns the tools of a server. One without reviewers has none for changes.
pub(super) fn tools(rules: &ServerRules, is_local: bool) -> Vec<Tool> {
    let has_reviewers = rules.rolesets(true).next().is_some();
    let offered = ToolName::ALL.into_iter().filter(|tool| has_reviewers || *tool != ToolName::ReviewChange);
    offered.map(|tool| tool.tool(rules, is_local)).collect()
}

fn input<T: JsonSchema + 'static>() -> Arc<JsonObject> {
    // The schema of a struct is that of an object.
    shorten(schema_for_input::<T>().unwrap_or_default())
}

fn output<T: JsonSchema + 'static>() -> Arc<JsonObject> {
    shorten(schema_for_output::<T>())
}

/// Returns the schema of a report on a run. Its fields are described once, by the tool `run`, since a model pays for each word.
fn output_of_run() -> Arc<JsonObject> {
    let mut schema = output::<ToolReport>();
    let fields = Arc::make_mut(&mut schema).get_mut("properties").and_then(Value::as_object_mut);
    for field in fields.into_iter().flat_map(|fields| fields.values_mut()).filter_map(Value::as_object_mut) {
        field.remove("description");
    }
    schema
}

/// Returns a schema without the parts that say nothing to a model. It pays for each of them in every conversation.
fn shorten(mut schema: Arc<JsonObject>) -> Arc<JsonObject> {
    shorten_object(Arc::make_mut(&mut schema));
    schema
}

fn shorten_object(schema: &mut JsonObject) {
    for name in ["$schema", "default", "format", "minimum"] {
        schema.remove(name);
    }
    // A field that may be left out need not be null.
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            let kind = kind.clone();
            schema.insert("type".to_owned(), kind);
        }
    }
    for value in schema.values_mut() {
        if let Value::Object(inner) = value {
            shorten_object(inner);
        }
    }
}

/// Returns the form of arguments that ask for an answer. One tool lists the rolesets, and the others refer to it.
fn ask_form(rules: &ServerRules, is_listed: bool) -> Arc<JsonObject> {
    let mut list = String::from("The way to agree. Left out, it follows from the form of the answer.");
    if is_listed {
        for served in rules.rolesets(false) {
            let _ = write!(list, "\n{}: {}", served.name, served.description);
        }
    } else {
        list.push_str(" The tool `run` lists all.");
    }
    with_roleset(input::<AskArguments>(), &list)
}

/// Returns the form of arguments that ask for a review. A client at another place can only send the change itself.
fn review_form(rules: &ServerRules, is_local: bool) -> Arc<JsonObject> {
    let mut form = input::<ReviewArguments>();
    if !is_local {
        let form = Arc::make_mut(&mut form);
        if let Some(Value::Object(fields)) = form.get_mut("properties") {
            fields.retain(|name, _| !["change", "base"].contains(&name.as_str()));
        }
        form.insert("required".to_owned(), json!(["diff"]));
    }
    let mut list = String::from("The reviewers:");
    for served in rules.rolesets(true) {
        let _ = write!(list, "\n{}: {}", served.name, served.description);
    }
    with_roleset(form, &list)
}

/// Returns a form in which the field `roleset` has this description.
fn with_roleset(mut form: Arc<JsonObject>, description: &str) -> Arc<JsonObject> {
    let field = Arc::make_mut(&mut form).get_mut("properties").and_then(|fields| fields.get_mut("roleset"));
    if let Some(Value::Object(field)) = field {
        field.insert("description".to_owned(), json!(description));
    }
    form
}

/// The argument of each prompt.
const TASK: &str = "task";

/// Returns the prompts of a server: one for each roleset, for people who begin a run by hand in their client.
pub(super) fn prompts(rules: &ServerRules) -> Vec<Prompt> {
    let task = PromptArgument::new(TASK).with_description("The question or order.").with_required(true);
    let mut prompts = Vec::new();
    for served in rules.rolesets(false) {
        let (name, description) = (served.name.clone(), served.description.clone());
        prompts.push(Prompt::new(name, Some(description), Some(vec![task.clone()])));
    }
    prompts
}

/// Returns the prompt of this name with its task.
pub(super) fn prompt(
    rules: &ServerRules,
    name: &str,
    arguments: Option<&JsonObject>,
) -> Result<GetPromptResult, ErrorData> {
    let Some(served) = rules.rolesets(false).find(|served| served.name == name) else {
        return Err(ErrorData::invalid_params(format!("there is no prompt `{name}`"), None));
    };
    let Some(task) = arguments.and_then(|given| given.get(TASK)).and_then(|task| task.as_str()) else {
        let why = format!("the prompt `{name}` needs the argument `{TASK}`");
        return Err(ErrorData::invalid_params(why, None));
    };
    let text = format!(
        "Call the tool `run` with the roleset `{name}` and the task below. While the run goes on, call `result`. Then tell me the answer, \
         the outcome, and who disagreed.\n\n{task}"
    );
    let result = GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]);
    Ok(result.with_description(served.description.clone()))
}
