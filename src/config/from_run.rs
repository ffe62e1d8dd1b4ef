//! The roleset that a run was made with, in a form that files could hold.
//!
//! The input is the setup of a run. The output is a roleset and its packs, which give the same setup again. Redaction is not part of
//! a setup, and neither are the endpoints of the models.

use std::collections::BTreeMap;

use super::packs::{COMPARING, Packs};
use super::roleset::{Roleset, RolesetAgent};
use protocol::{AgentSetup, Params, RunSetup};

/// Returns the roleset of a run.
pub fn roleset_of(setup: &RunSetup) -> (Roleset, Packs) {
    let agents = setup.agents.iter().chain(&setup.arbiter);
    let packs: BTreeMap<String, String> = agents.map(|agent| (pack_name(agent), pack_text(agent))).collect();
    let mut params = setup.params.clone();
    // A batch shares a budget among its votes, and no file can.
    if let Params::Vote(vote) = &mut params {
        vote.paced = false;
    }
    let roleset = Roleset {
        description: format!("As in a run of the roleset {}.", setup.roleset),
        agents: setup.agents.iter().map(roleset_agent).collect(),
        arbiter: setup.arbiter.as_ref().map(roleset_agent),
        canonical: setup.canonical.clone(),
        params,
        redact: false,
        redact_patterns: Vec::new(),
        check: setup.check_command.clone(),
        interpreter: setup.interpreter,
    };
    (roleset, Packs::in_memory(packs))
}

fn roleset_agent(agent: &AgentSetup) -> RolesetAgent {
    RolesetAgent {
        name: agent.name.clone(),
        domain: agent.domain.clone(),
        pack: pack_name(agent),
        model: None,
        temperature: agent.temperature,
        max_tokens: agent.max_tokens,
        method: agent.method,
    }
}

fn pack_name(agent: &AgentSetup) -> String {
    format!("{}.md", agent.name.to_lowercase())
}

fn pack_text(agent: &AgentSetup) -> String {
    if agent.comparing.is_empty() {
        return agent.pack.clone();
    }
    format!("{}{COMPARING}\n\n{}\n", agent.pack, agent.comparing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{EMBEDDED_ROLESETS, find_roleset, load_roleset};
    use protocol::Task;

    #[test]
    fn roleset_from_run_restores_setup() {
        for (file, _) in EMBEDDED_ROLESETS {
            let name = file.trim_end_matches(".json");
            let (roleset, packs) = load_roleset(&find_roleset(name, &[]).unwrap()).unwrap();
            let setup = roleset.setup(name, &packs, Task::default(), 1);
            let (again, packs) = roleset_of(&setup);
            assert_eq!(again.setup(name, &packs, Task::default(), 1), setup, "{name}");
        }
    }
}
