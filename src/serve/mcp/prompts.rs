//! The prompts: one for each roleset, for people who begin a run by hand in their client.
//!
//! The input is the name of a roleset and a task. The output is a message in which the user asks the client's model for that run.

use rmcp::ErrorData;
use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};

use crate::serve::rules::ServerRules;

/// The argument of each prompt.
const TASK: &str = "task";

/// Returns the prompts of a server.
pub(super) fn prompts(rules: &ServerRules) -> Vec<Prompt> {
    let task = PromptArgument::new(TASK).with_description("The question or order.").with_required(true);
    let served = rules.rolesets(false);
    served
        .map(|served| {
            Prompt::new(served.name.clone(), Some(served.description.clone()), Some(vec![task.clone()]))
        })
        .collect()
}

/// Returns the prompt of this name with its task.
pub(super) fn prompt(
    rules: &ServerRules,
    name: &str,
    arguments: Option<&JsonObject>,
) -> Result<GetPromptResult, ErrorData> {
    let wrong = |why: String| ErrorData::invalid_params(why, None);
    let served = rules.rolesets(false).find(|served| served.name == name);
    let served = served.ok_or_else(|| wrong(format!("there is no prompt `{name}`")))?;
    let task = arguments.and_then(|given| given.get(TASK)).and_then(|task| task.as_str());
    let task = task.ok_or_else(|| wrong(format!("the prompt `{name}` needs the argument `{TASK}`")))?;
    let text = format!(
        "Call the tool `run` with the roleset `{name}` and the task below. While the run goes on, call `result`. Then tell me the answer, \
         the outcome, and who disagreed.\n\n{task}"
    );
    let result = GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]);
    Ok(result.with_description(served.description.clone()))
}
