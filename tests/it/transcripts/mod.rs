//! Each protocol has a folder of transcripts, and every `*.txt` in it says who writes what and what follows.
//!
//! A line `< Name {…}` answers that agent's open call with an envelope made of these fields (see
//! `support::envelope`); `< Name raw TEXT` answers word for word, and `< Name lost` is the failure of its server.
//! Lines that begin with `>` are what the machine then does. `CONSENSUS_REWRITE=1 cargo test transcripts` writes them anew.

use std::fmt::Write as _;
use std::path::Path;

use protocol::sampling::VoteSection;
use protocol::text::{CanonicalKind, CanonicalRule, Constraint};
use protocol::{
    Action, ArbiterChoice, Ask, CallId, Document, Finish, Lead, Outcome, Params, RunSetup, Section, Thinking,
};
use serde_json::Value;

use crate::support::{Play, Tiny, envelope, form, member, review};

#[test]
fn every_scenario_goes_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/transcripts");
    let entries = |folder: &Path| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let folders = entries(&folder).filter(|path| path.is_dir());
    let mut paths: Vec<_> = folders.flat_map(|folder| entries(&folder)).collect();
    paths.sort();
    assert!(paths.len() >= 20, "{} scenarios", paths.len());
    for path in paths {
        let written = std::fs::read_to_string(&path).unwrap();
        println!("{}", path.display());
        let played = play(&written);
        if std::env::var_os("CONSENSUS_REWRITE").is_some() {
            std::fs::write(&path, &played).unwrap();
        } else {
            assert_eq!(played, written, "{}", path.display());
        }
    }
}

/// Plays the inputs of a scenario and returns it with the outputs that they have.
fn play(written: &str) -> String {
    let mut setup = RunSetup::from(Tiny::setup());
    let mut out = String::new();
    let mut run: Option<Play> = None;
    for line in written.lines().filter(|line| !line.starts_with("> ")) {
        writeln!(out, "{line}").unwrap();
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        if run.is_none()
            && !line.starts_with('<')
            && let Some((name, value)) = line.split_once('=')
        {
            set(&mut setup, name.trim(), value.trim());
            continue;
        }
        if line == "start" {
            let play = Play::new(&setup);
            for ask in play.open.values() {
                writeln!(out, "> ask {} {}", setup.agents[ask.call.agent].name, ask.call).unwrap();
            }
            run = Some(play);
            continue;
        }
        let (name, said) = line.strip_prefix("< ").and_then(|l| l.split_once(' ')).expect(line);
        let play = run.as_mut().expect("`start` comes first");
        let call = open_call(play, &setup, name);
        let actions = if said == "lost" {
            play.lose(call)
        } else {
            let (text, finish) = reply_of(&play.open[&call], &setup, said);
            play.reply(call, &text, finish)
        };
        for action in &actions {
            writeln!(out, "> {}", describe(action, &setup)).unwrap();
        }
        if play.outcome.is_some() {
            write_report(&mut out, play);
        }
    }
    out
}

/// Returns the reply to an ask that a line of a scenario stands for.
fn reply_of(ask: &Ask, setup: &RunSetup, said: &str) -> (String, Finish) {
    match said.strip_prefix("raw ") {
        Some(text) => (text.replace("\\n", "\n"), Finish::Stop),
        None if said == "cut" => ("{\"role\":".to_owned(), Finish::Length),
        None if said == "refuses" => (String::new(), Finish::Refused),
        None => {
            let fields: Value = serde_json::from_str(said).expect(said);
            let text = match setup.params {
                Params::Pair(_) => envelope(ask, &fields),
                Params::Council(_) => form(ask, &fields),
                Params::Panel(_) => member(ask, &fields),
                Params::Approval(_) => review(ask, &fields),
                Params::Vote(_) => fields.to_string(),
            };
            (text, Finish::Stop)
        }
    }
}

/// Writes what a run reports beside its outcome.
fn write_report(out: &mut String, play: &Play) {
    let report = play.machine.report();
    let arbiter = match &report.section {
        Section::Pair(section) => &section.arbiter,
        Section::Council(section) => &section.arbiter,
        Section::Panel(_) | Section::Approval(_) | Section::Vote(_) | Section::MapReduce(_) => &None,
    };
    if let Some(ArbiterChoice { text, reason, .. }) = arbiter {
        writeln!(out, "> arbiter chose {text:?}: {reason:?}").unwrap();
    }
    if let Some(section) = report.section.votes() {
        let VoteSection { class, lead, certainty, looked_at, .. } = section;
        let class = class.map_or("none".to_owned(), |class| format!("{class:?}"));
        let certainty = serde_json::to_value(certainty).unwrap();
        let Lead { leader, runner_up } = lead;
        writeln!(out, "> class {class}, {leader} to {runner_up} votes of {looked_at} samples, {certainty}")
            .unwrap();
    }
    for dissent in report.dissent {
        writeln!(out, "> dissent {} {} {:?} {:?}", dissent.agent, dissent.stage, dissent.text, dissent.why)
            .unwrap();
    }
}

fn open_call(play: &Play, setup: &RunSetup, name: &str) -> CallId {
    let agent = setup.agents.iter().chain(&setup.arbiter).position(|a| a.name == name).expect(name);
    *play.open.keys().find(|call| call.agent == agent).unwrap_or_else(|| panic!("{name} has no open call"))
}

fn set(setup: &mut RunSetup, name: &str, value: &str) {
    let number = || value.parse().unwrap();
    let thinking = if value == "free" { Thinking::Free } else { Thinking::Field };
    let constraint = || Constraint::parse(value).unwrap();
    match (name, &mut setup.params) {
        ("protocol", _) if value == "panel" => *setup = Tiny::panel().into(),
        ("protocol", _) if value == "approval" => *setup = Tiny::approval(4).into(),
        ("protocol", _) if value == "vote" => *setup = Tiny::vote(2).into(),
        ("protocol", _) if value == "council" => *setup = Tiny::council().into(),
        ("prompt", _) => value.clone_into(&mut setup.task.prompt),
        ("document", _) => {
            let document = Document { name: "notes.txt".to_owned(), text: value.into(), redacted: false };
            setup.task.documents.push(document);
        }
        ("seed", _) => setup.seed = value.parse().unwrap(),
        ("arbiter", _) => setup.arbiter = Some(Tiny::arbiter()),
        ("canonical", _) => {
            let kind: CanonicalKind = serde_json::from_value(value.into()).unwrap();
            setup.canonical = CanonicalRule { choices: vec!["A".to_owned(), "B".to_owned()], ..kind.into() };
        }
        ("thinking", Params::Pair(params)) => params.thinking = thinking,
        ("max_rounds", Params::Pair(params)) => params.max_rounds = number(),
        ("solo_turns", Params::Pair(params)) => params.solo_turns = number(),
        ("max_repairs", Params::Pair(params)) => params.max_repairs = number(),
        ("resample", Params::Pair(params)) => params.resample = number(),
        ("adopt", Params::Pair(params)) => params.adopt = serde_json::from_value(value.into()).unwrap(),
        ("talk", Params::Pair(params)) => params.talk = serde_json::from_value(value.into()).unwrap(),
        ("constraint", Params::Pair(params)) => params.constraints.push(constraint()),
        ("thinking", Params::Council(params)) => params.thinking = thinking,
        ("max_rounds", Params::Council(params)) => params.max_rounds = number(),
        ("max_repairs", Params::Council(params)) => params.max_repairs = number(),
        ("constraint", Params::Council(params)) => params.constraints.push(constraint()),
        ("talk", Params::Council(params)) => params.talk = serde_json::from_value(value.into()).unwrap(),
        ("on_disagreement", Params::Council(params)) => {
            params.on_disagreement = serde_json::from_value(value.into()).unwrap();
        }
        ("max_rounds", Params::Panel(params)) => params.max_iterations = number(),
        ("max_repairs", Params::Panel(params)) => params.max_repairs = number(),
        ("parallel", Params::Panel(params)) => params.parallel = value == "yes",
        ("early_stop", Params::Panel(params)) => params.early_stop = value == "yes",
        ("talk", Params::Panel(params)) => params.talk = serde_json::from_value(value.into()).unwrap(),
        ("on_disagreement", Params::Panel(params)) => {
            params.on_disagreement = serde_json::from_value(value.into()).unwrap();
        }
        ("stop", Params::Vote(params)) => params.stop = serde_json::from_value(value.into()).unwrap(),
        ("answer", Params::Vote(params)) => params.answer = serde_json::from_value(value.into()).unwrap(),
        ("min_members", Params::Panel(params)) => params.min_members = Some(number()),
        ("min_members", Params::Vote(params)) => params.min_members = Some(number()),
        ("samples_max", Params::Vote(params)) => params.samples_max = Some(number()),
        ("ahead", Params::Vote(params)) => params.ahead = Some(number()),
        ("on_disagreement", Params::Vote(params)) => {
            params.on_disagreement = serde_json::from_value(value.into()).unwrap();
        }
        (other, _) => panic!("unknown setting {other}"),
    }
}

fn describe(action: &Action, setup: &RunSetup) -> String {
    match action {
        Action::Ask(ask) => {
            let name = setup.agents.iter().chain(&setup.arbiter).nth(ask.call.agent).map_or("", |a| &a.name);
            let last = &ask.messages.last().unwrap().content;
            let why = last.strip_prefix("That reply does not count: ").and_then(|m| m.lines().next());
            let why = why.map(|w| format!(": {w}")).unwrap_or_default();
            format!("ask {name} {}{why}", ask.call)
        }
        Action::Execute(execution) => format!("execute {execution:?}"),
        Action::Search(search) => format!("search, round {}: {:?}", search.round, search.words),
        Action::Cancel(call) => format!("cancel {call}"),
        Action::AwaitPermit => "await a permit".to_owned(),
        Action::Finish(Outcome::Agreed { how, text, .. }) => format!("agreed, {}: {text:?}", how.name()),
        Action::Finish(Outcome::NoAgreement { reason }) => format!("no agreement: {reason}"),
        Action::Finish(Outcome::Vetoed { reason, source, quote }) => {
            format!("vetoed: {reason:?} against {source}: {quote:?}")
        }
        Action::Finish(other) => format!("{other:?}"),
    }
}
