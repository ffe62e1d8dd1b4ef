//! Runs in this process: a machine, and the answers to its requests.

use std::collections::BTreeMap;

use protocol::council::CouncilParams;
use protocol::pair::PairParams;
use protocol::panel::PanelParams;
use protocol::review::ApprovalParams;
use protocol::text::{CanonicalKind, CanonicalRule, TextMemos};
use protocol::vote::VoteParams;
use protocol::{
    Action, AgentSetup, Ask, CallId, Document, Event, Finish, Machine, Outcome, Protocol, ProtocolParams,
    Reply, ReplyShape, RunSetup, Setup, Task, Thinking,
};
use serde_json::{Map, Value, json};

/// A small setup with agents Ann and Bob, to be changed at will.
pub struct Tiny;

impl Tiny {
    pub fn setup() -> Setup<PairParams> {
        let agent = |name: &str| AgentSetup {
            name: name.to_owned(),
            domain: "sums".to_owned(),
            pack: format!("You are {name} and you add numbers with care."),
            comparing: String::new(),
            temperature: 0.0,
            max_tokens: 400,
            method: protocol::Method::Words,
        };
        Setup {
            roleset: "tiny".to_owned(),
            task: Task { prompt: "How much is 2+2?".to_owned(), ..Task::default() },
            seed: 7,
            agents: vec![agent("Ann"), agent("Bob")],
            arbiter: None,
            canonical: CanonicalRule::default(),
            params: PairParams { thinking: Thinking::None, ..PairParams::default() },
            rules: PairParams::default().rules().to_owned(),
            check_command: None,
            interpreter: protocol::Interpreter::default(),
            chunk_plan: None,
            memos: TextMemos::default(),
        }
    }

    /// A council of Pathos, Logos and Ethos.
    pub fn council() -> Setup<CouncilParams> {
        let tiny = Self::setup();
        let agent = |name: &str| AgentSetup {
            name: name.to_owned(),
            pack: format!("You are {name} of the council and you do your part."),
            ..tiny.agents[0].clone()
        };
        Setup {
            roleset: tiny.roleset.clone(),
            task: tiny.task.clone(),
            seed: tiny.seed,
            agents: ["Pathos", "Logos", "Ethos"].map(agent).to_vec(),
            arbiter: None,
            canonical: tiny.canonical.clone(),
            params: CouncilParams { thinking: Thinking::None, ..CouncilParams::default() },
            rules: CouncilParams::default().rules().to_owned(),
            check_command: None,
            interpreter: protocol::Interpreter::default(),
            chunk_plan: None,
            memos: TextMemos::default(),
        }
    }

    /// A panel of Ann, Bob and Cat.
    pub fn panel() -> Setup<PanelParams> {
        let tiny = Self::setup();
        let agent = |name: &str| AgentSetup {
            name: name.to_owned(),
            pack: format!("You are {name} of the panel and you think for yourself."),
            ..tiny.agents[0].clone()
        };
        Setup {
            roleset: tiny.roleset.clone(),
            task: tiny.task.clone(),
            seed: tiny.seed,
            agents: ["Ann", "Bob", "Cat"].map(agent).to_vec(),
            arbiter: None,
            canonical: tiny.canonical.clone(),
            params: PanelParams { thinking: Thinking::None, ..PanelParams::default() },
            rules: PanelParams::default().rules().to_owned(),
            check_command: None,
            interpreter: protocol::Interpreter::default(),
            chunk_plan: None,
            memos: TextMemos::default(),
        }
    }

    /// A change by one line.
    pub fn diff() -> Document {
        let text = "diff --git a/sum.py b/sum.py\n--- a/sum.py\n+++ b/sum.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a + b\n+    return b + a\n";
        Document { name: "change.diff".to_owned(), text: text.into(), redacted: false }
    }

    /// So many reviewers of a change.
    pub fn approval(reviewers: usize) -> Setup<ApprovalParams> {
        let tiny = Self::setup();
        let agent = |at: usize| AgentSetup {
            name: format!("R{at}"),
            pack: "You read what changes.".to_owned(),
            ..tiny.agents[0].clone()
        };
        let task = Task {
            prompt: "May this change be applied?".to_owned(),
            documents: vec![Self::diff()],
            is_searched: false,
        };
        Setup {
            roleset: tiny.roleset.clone(),
            task,
            seed: tiny.seed,
            agents: (0..reviewers).map(agent).collect(),
            arbiter: None,
            canonical: tiny.canonical.clone(),
            params: ApprovalParams { thinking: Thinking::None, ..ApprovalParams::default() },
            rules: ApprovalParams::default().rules().to_owned(),
            check_command: None,
            interpreter: protocol::Interpreter::default(),
            chunk_plan: None,
            memos: TextMemos::default(),
        }
    }

    /// So many voters on one number.
    pub fn vote(voters: usize) -> Setup<VoteParams> {
        let tiny = Self::setup();
        let agent = |at: usize| AgentSetup {
            name: format!("V{at}"),
            pack: "You add numbers with care.".to_owned(),
            ..tiny.agents[0].clone()
        };
        Setup {
            agents: (0..voters).map(agent).collect(),
            canonical: CanonicalKind::Number.into(),
            rules: VoteParams::default().rules().to_owned(),
            roleset: tiny.roleset.clone(),
            task: tiny.task.clone(),
            seed: tiny.seed,
            arbiter: None,
            params: VoteParams::default(),
            check_command: None,
            interpreter: protocol::Interpreter::default(),
            chunk_plan: None,
            memos: TextMemos::default(),
        }
    }

    pub fn arbiter() -> AgentSetup {
        AgentSetup {
            name: "Judge".to_owned(),
            pack: "You choose.".to_owned(),
            ..Self::setup().agents[0].clone()
        }
    }
}

/// A run under way.
pub struct Play {
    pub machine: Machine,
    pub open: BTreeMap<CallId, Ask>,
    pub outcome: Option<Outcome>,
    pub asked: usize,
}

impl Play {
    pub fn new<P: Clone>(setup: &Setup<P>) -> Self
    where
        RunSetup: From<Setup<P>>,
    {
        let machine = RunSetup::from(setup.clone()).machine();
        let mut play = Self { machine, open: BTreeMap::new(), outcome: None, asked: 0 };
        play.step(&Event::Started);
        play
    }

    fn step(&mut self, event: &Event) -> Vec<Action> {
        let actions = self.machine.step(event).unwrap();
        for action in &actions {
            match action {
                Action::Ask(ask) => {
                    self.asked += 1;
                    assert!(self.asked < 5000, "the run does not end");
                    self.open.insert(ask.call, ask.clone());
                }
                Action::Search(_) | Action::Execute(_) | Action::AwaitPermit => {}
                Action::Cancel(call) => drop(self.open.remove(call)),
                Action::Finish(outcome) => self.outcome = Some(outcome.clone()),
            }
        }
        actions
    }

    /// Answers an open call.
    #[track_caller]
    pub fn reply(&mut self, call: CallId, text: &str, finish: Finish) -> Vec<Action> {
        assert!(self.open.remove(&call).is_some(), "{call} is not open");
        let reply = Reply { text: text.to_owned(), reasoning: None, finish, yes: None, model: None };
        self.step(&Event::Replied { call, reply })
    }

    /// Ends an open call by the failure of its server.
    #[track_caller]
    pub fn lose(&mut self, call: CallId) -> Vec<Action> {
        assert!(self.open.remove(&call).is_some(), "{call} is not open");
        self.step(&Event::Lost { call, cause: "the connection broke".to_owned() })
    }

    /// Answers every ask with what `agent` says, until the run ends.
    pub fn run_to_end(&mut self, mut agent: impl FnMut(&Ask) -> String) -> Outcome {
        while self.outcome.is_none() {
            let (call, ask) =
                self.open.first_key_value().map(|(c, a)| (*c, a.clone())).expect("a call is open");
            self.reply(call, &agent(&ask), Finish::Stop);
        }
        self.outcome.clone().unwrap()
    }
}

/// Returns an envelope for this ask: neutral fields, then `fields` over them.
///
/// `text`, `accepts` and `because` are short for parts of `final_solution` and `meta.change`; a
/// status of SOLVED brings its marker unless a `public_message` is given.
pub fn envelope(ask: &Ask, fields: &Value) -> String {
    let ReplyShape::Json { schema, .. } = &ask.shape else { return "hm".to_owned() };
    let schema = schema.to_value();
    let known = &schema["anyOf"][0]["properties"];
    let fields = fields.as_object().expect("fields are an object");
    let owed = known["meta"]["properties"]["answers"]["minItems"].as_u64().unwrap_or(0);
    let mut meta = Map::new();
    meta.insert("answers".to_owned(), (0..owed).map(|_| "yes").collect());
    let status = fields.get("status").and_then(Value::as_str).unwrap_or("SOLVED");
    let message = if status == "SOLVED" { "[SOLVED] done" } else { "still at it" };
    let mut out = json!({
        "role": known["role"]["enum"][0], "domain": "sums", "task_understanding": "add",
        "public_message": message, "artifact": {"type": "results", "content": {}},
        "needs_from_peer": [], "handoff_to": "", "status": status,
    });
    let mut solution = Map::new();
    for (name, value) in fields {
        match name.as_str() {
            "text" => drop(solution.insert("canonical_text".to_owned(), value.clone())),
            "accepts" => drop(solution.insert("accepts".to_owned(), value.clone())),
            "because" => drop(meta.insert("change".to_owned(), json!({"by": "check", "detail": value}))),
            _ => out[name] = value.clone(),
        }
    }
    if !solution.is_empty() && !fields.contains_key("final_solution") {
        out["final_solution"] = solution.into();
    }
    if !fields.contains_key("meta") {
        out["meta"] = meta.into();
    }
    out.to_string()
}

/// Returns the answers that a ballot is asked about, by their labels, in the order in which they are shown.
pub fn shown(ask: &Ask) -> Vec<(String, String)> {
    let lines = ask.messages.iter().flat_map(|m| m.content.lines());
    let labelled = lines.filter_map(|line| line.split_once(": ").filter(|(label, _)| label.len() == 1));
    labelled.map(|(label, text)| (label.to_owned(), serde_json::from_str(text).unwrap())).collect()
}

/// Returns one answer's part of a ballot, with the same score for everything.
pub fn mark(score: i64) -> Value {
    json!({"feedback": format!("a {score}"), "accuracy": score, "relevance": score, "completeness": score, "clarity": score})
}

/// Returns what a member of a panel writes: an answer, or a ballot in which each answer scores what `fields` say of
/// its text, else 5.
pub fn member(ask: &Ask, fields: &Value) -> String {
    match &ask.shape {
        ReplyShape::Json { name: "answer", .. } => json!({"response": fields["response"]}).to_string(),
        ReplyShape::Json { name: "ballot", .. } => {
            let score = |text: &str| fields["scores"][text].as_i64().unwrap_or(5);
            let marks: Map<String, Value> =
                shown(ask).into_iter().map(|(label, text)| (label, mark(score(&text)))).collect();
            Value::from(marks).to_string()
        }
        ReplyShape::Json { name, .. } => panic!("no form is called {name}"),
        ReplyShape::Free => "hm".to_owned(),
    }
}

/// Returns a council's form for this ask: neutral fields with high confidence, then `fields` over them.
pub fn form(ask: &Ask, fields: &Value) -> String {
    let ReplyShape::Json { name, .. } = &ask.shape else { return "hm".to_owned() };
    // Whatever the task is, its first words stand in it.
    let mut latest = ask.messages.iter().rev();
    let prompt = latest.find_map(|m| m.content.split("Task: ").nth(1)).unwrap_or_default();
    let quote: String = prompt.chars().take(12).collect();
    let mut out = match *name {
        "framing" => json!({"framing": "The sum is wanted.", "search": "sum", "reasoning": "it says so"}),
        "response" => json!({"response": "4", "citations": [], "reasoning": "two and two"}),
        "verification" => {
            json!({"checks": [{"claim": "it is the sum", "source": "task", "quote": quote, "verdict": "holds"}], "reasoning": "it holds", "veto": false})
        }
        "choice" => return fields.to_string(),
        other => panic!("no form is called {other}"),
    };
    out["confidence"] = json!(0.9);
    for (name, value) in fields.as_object().expect("fields are an object") {
        // What belongs to another form is left out, unless no form has it.
        if out.get(name).is_some() || !FORM_FIELDS.contains(&name.as_str()) {
            out[name] = value.clone();
        }
    }
    out.to_string()
}

/// Writes a review: it rejects where a council would veto, and finds a fault where a check fails.
pub fn review(ask: &Ask, fields: &Value) -> String {
    let ReplyShape::Json { schema, .. } = &ask.shape else { return "hm".to_owned() };
    let line = &schema.to_value()["properties"]["findings"]["items"]["properties"]["line"]["enum"][0];
    let finding = json!({"line": line, "problem": "it is wrong", "severity": "high"});
    let has_fault = fields["checks"][0]["verdict"] == "fails";
    let findings: Vec<Value> = has_fault.then_some(finding).into_iter().collect();
    let verdict = if fields["veto"] == json!(true) { "reject" } else { "approve" };
    let confidence = 10 * fields["scores"]["4"].as_u64().unwrap_or(9);
    json!({"findings": findings, "summary": "It turns a sum.", "verdict": verdict, "confidence": confidence})
        .to_string()
}

const FORM_FIELDS: [&str; 3] = ["response", "veto", "checks"];

/// Returns the calls of one round that are open.
pub fn in_round(play: &Play, round: u32) -> Vec<CallId> {
    play.open.keys().copied().filter(|call| call.round == round).collect()
}
