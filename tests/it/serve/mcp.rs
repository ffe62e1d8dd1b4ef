//! Agreement as tools, by messages as a client writes them.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use consensus::program::PROGRAM;
use serde_json::{Value, json};

use super::{ReplyDoor, behind};
use crate::support::{Finished, Folder, Request, SENSIBLE, Served, Server, consensus, git, model};

const MOCK: [&str; 3] = ["--mock", "--answer", "4"];
const QUESTION: &str = "How much is 2+2?";

/// A client of `consensus mcp`, which ends with it.
struct McpClient {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    count: u64,
}

impl McpClient {
    /// Starts the command and says hello.
    #[track_caller]
    fn start(folder: &Folder, words: &[impl AsRef<OsStr>]) -> Self {
        let mut command = consensus(folder);
        command.args(["mcp", "--quiet"]).args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::inherit()).spawn().unwrap();
        let (to, from) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut client = Self { child, to, from, count: 0 };
        let about = json!({"name": "test", "version": "1"});
        client.ask(
            "initialize",
            &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}),
        );
        client.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.to.as_ref().unwrap(), "{message}").unwrap();
    }

    /// Sends a request and does not wait for its answer.
    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.count += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params}));
        self.count
    }

    /// Reads the next message. Each line of standard output is one.
    #[track_caller]
    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line:?}"))
    }

    #[track_caller]
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        let answer = self.read();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool and returns its report, or its error as a text.
    #[track_caller]
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        if result["isError"] == true {
            result["content"][0]["text"].clone()
        } else {
            result["structuredContent"].clone()
        }
    }

    /// Closes standard input and returns the exit code.
    fn end(mut self) -> Option<i32> {
        drop(self.to.take());
        self.child.wait().unwrap().code()
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All messages go over standard input and output.
#[test]
fn agent_runs_verifies_and_reads_agreement() {
    let folder = Folder::new();
    let mut client = McpClient::start(&folder, &[&MOCK[..], &["-o", "runs"]].concat());
    let ran = client.call("run", &json!({"task": QUESTION, "canonical": "number"}));
    assert_eq!(
        [&ran["status"], &ran["outcome"], &ran["how"], &ran["text"]],
        ["ended", "agreed", "voted", "4"]
    );
    let worth = ran["worth"].as_str().unwrap();
    assert!(worth.contains("agreement:"), "it says how much that is worth: {worth}");
    let verified = client.call("verify", &json!({"run": ran["run"]}));
    assert_eq!((&verified["verified"], &verified["journal_head"]), (&json!(true), &ran["journal_head"]));
    let planned = client.call("plan", &json!({"task": QUESTION, "canonical": "number"}));
    assert_eq!((&planned["roleset"], &planned["at_once"]["calls"]), (&json!("vote_number"), &json!(3)));
    let uri = |part: &str| format!("consensus://runs/{}/{part}", ran["run"].as_str().unwrap());
    let mut read = |part: &str| {
        let read = client.ask("resources/read", &json!({"uri": uri(part)}));
        read["result"]["contents"][0]["text"].as_str().unwrap().to_owned()
    };
    assert!(read("transcript").contains("## Outcome: agreed"));
    let row: Value = serde_json::from_str(&read("result")).unwrap();
    assert_eq!(row["journal_head"], ran["journal_head"]);
    folder.write("mine/journal.jsonl", &read("journal"));
    Finished::of(consensus(&folder).args(["verify", "mine"])).exits(0);
    assert_eq!(client.end(), Some(0), "the command ends with its client");
    Finished::of(consensus(&folder).args(["verify", "runs"])).exits(0);
}

#[test]
fn wrong_tool_call_explains_itself() {
    let folder = Folder::new();
    let mut client =
        McpClient::start(&folder, &[&MOCK[..], &["-o", "runs", "--roleset", "vote_number,single"]].concat());
    let mut error_of =
        |tool: &str, arguments: Value| client.call(tool, &arguments).as_str().unwrap_or_default().to_owned();
    let wrong = error_of("run", json!({"task": QUESTION, "roleset": "solver_checker"}));
    assert_eq!(wrong, "there is no roleset `solver_checker`; the rolesets are: vote_number, single");
    assert!(error_of("run", json!({"tasks": QUESTION})).contains("unknown field `tasks`"));
    assert_eq!(error_of("run", json!({"task": " "})), "the task is empty");
    assert!(error_of("run", json!({"task": "2+2", "choices": ["a", "a"]})).contains("1000 different texts"));
    assert_eq!(error_of("status", json!({"run": "nix"})), "there is no such run");
    assert!(error_of("review_change", json!({"diff": "x"})).contains("this server has no reviewers"));
    let unknown = client.ask("tools/call", &json!({"name": "nix", "arguments": {}}));
    assert!(unknown["error"]["message"].as_str().unwrap().contains("there is no tool `nix`"), "{unknown}");
    let tools = client.ask("tools/list", &json!({}));
    let names: Vec<&Value> =
        tools["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert!(!names.contains(&&json!("review_change")), "it is not offered without reviewers: {names:?}");
    let described = |tool: &str| {
        let tool = tools["result"]["tools"].as_array().unwrap().iter().find(|known| known["name"] == tool);
        tool.unwrap()["outputSchema"]["properties"]["outcome"]["description"].is_string()
    };
    assert_eq!(
        ["run", "start", "status", "result", "cancel"].map(described),
        [true, false, false, false, false]
    );
}

/// The run continues where the command is started again.
#[test]
fn run_outlives_its_client() {
    let (folder, door) = (Folder::new(), Arc::new(ReplyDoor::default()));
    let llm = behind(&door);
    let url = llm.url();
    let words = ["--base-url", &url, "--model", "m", "-o", "runs", "--roleset", "writer_physicist"];
    let mut client = McpClient::start(&folder, &words);
    let run = client.call("start", &json!({"task": QUESTION}))["run"].clone();
    assert_eq!(client.call("status", &json!({"run": run}))["status"], "running");
    while llm.chats().len() < 2 {
        std::thread::yield_now();
    }
    drop(client);
    door.open();
    let mut client = McpClient::start(&folder, &words);
    let ended = client.call("result", &json!({"run": run}));
    assert_eq!((&ended["run"], &ended["status"]), (&run, &json!("ended")), "{ended}");
    assert_eq!(client.call("verify", &json!({"run": run}))["verified"], true);
    assert_eq!(client.end(), Some(0));
}

#[test]
fn withdrawn_call_cancels_only_its_run() {
    let (folder, door) = (Folder::new(), Arc::new(ReplyDoor::default()));
    let llm = behind(&door);
    let words = ["--base-url", &llm.url(), "--model", "m", "-o", "runs", "--roleset", "writer_physicist"];
    let mut client = McpClient::start(&folder, &words);
    let other = client.call("start", &json!({"task": QUESTION}))["run"].clone();
    let id = client.send("tools/call", &json!({"name": "run", "arguments": {"task": "How much is 3+3?"}}));
    while llm.chats().len() < 4 {
        std::thread::yield_now();
    }
    let cancelled = json!({"requestId": id, "reason": "the user pressed Esc"});
    client.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}));
    // The run that was taken back ends although its model never answers.
    loop {
        let listed = client.call("plan", &json!({"task": QUESTION}));
        assert_eq!(listed["roleset"], "writer_physicist");
        let state = std::fs::read_to_string(folder.path().join("runs/cancelled.txt")).unwrap_or_default();
        if state.lines().count() == 1 {
            break;
        }
    }
    assert_eq!(client.call("status", &json!({"run": other}))["status"], "running");
    // A run that is cancelled is a state and no error, and no text tells the agent to continue it.
    let third = client.call("start", &json!({"task": "How much is 4+4?"}))["run"].clone();
    let stopping = client.call("cancel", &json!({"run": third}));
    assert_eq!((&stopping["status"], &stopping["next"]), (&json!("stopping"), &Value::Null), "{stopping}");
    while client.call("status", &json!({"run": third}))["status"] != "cancelled" {
        std::thread::yield_now();
    }
    assert_eq!(client.call("result", &json!({"run": third})), json!({"run": third, "status": "cancelled"}));
    assert_eq!(client.call("verify", &json!({"run": third})), "the run was cancelled");
    door.open();
    assert_eq!(client.call("result", &json!({"run": other}))["status"], "ended");
}

/// A run is found as soon as the client has its id, even if the command is killed then.
#[test]
fn run_id_survives_killed_command() {
    let (folder, door) = (Folder::new(), Arc::new(ReplyDoor::default()));
    let llm = behind(&door);
    let url = llm.url();
    let words = ["--base-url", &url, "-o", "runs", "--roleset", "single", "--runs-at-once", "200"];
    let mut client = McpClient::start(&folder, &words);
    let runs: Vec<Value> = (0..100)
        .map(|n| client.call("start", &json!({"task": format!("{n} + 1?")}))["run"].clone())
        .collect();
    drop(client);
    let mut client = McpClient::start(&folder, &words);
    for run in runs.iter().rev() {
        let state = client.call("status", &json!({"run": run}));
        assert_eq!(state["status"], "running", "{state}");
    }
    door.open();
}

/// No run is called unknown before the runs left over from an earlier command are known.
#[test]
fn status_waits_for_leftover_runs() {
    let (folder, door) = (Folder::new(), Arc::new(ReplyDoor::default()));
    let words = |url: &str| ["--base-url", url, "-o", "runs", "--roleset", "single"].map(str::to_owned);
    let first = behind(&door);
    let mut client = McpClient::start(&folder, &words(&first.url()));
    let run = client.call("start", &json!({"task": QUESTION}))["run"].clone();
    drop(client);

    // The command asks which models there are when it starts, and again for the run that is left over.
    let asked = AtomicUsize::new(0);
    let shut = Arc::clone(&door);
    let second = Server::start(move |request: &Request| {
        if asked.fetch_add(1, Ordering::SeqCst) > 0 {
            shut.pass();
        }
        model(SENSIBLE)(request)
    });
    let mut client = McpClient::start(&folder, &words(&second.url()));
    let status = client.send("tools/call", &json!({"name": "status", "arguments": {"run": run}}));
    client.ask("ping", &json!({}));
    door.open();
    let state = client.read();
    assert_eq!(
        (&state["id"], &state["result"]["structuredContent"]["status"]),
        (&json!(status), &json!("running")),
        "{state}"
    );
}

/// A client over HTTP cannot have a change read from a file.
#[test]
fn only_local_user_reads_change_files() {
    let folder = Folder::new();
    let repository = folder.path();
    git(repository, &["init", "--quiet", "--initial-branch", "main"]);
    folder.write("x", "a\n");
    git(repository, &["add", "x"]);
    git(repository, &["-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", "x"]);
    folder.write("x", "b\n");
    folder.write("change.patch", &git(repository, &["diff"]));
    let words = ["--mock", "--answer", "approve", "-o", "runs"];
    let mut client = McpClient::start(&folder, &words);
    let reviewed = client.call("review_change", &json!({"change": "change.patch"}));
    assert!(reviewed["text"].as_str().unwrap().starts_with("approved: 4 of 4"), "{reviewed}");
    assert!(client.call("review_change", &json!({"change": "nix"})).as_str().unwrap().contains("nix"));
    let wire = client.call("review_change", &json!({"change": "-"}));
    assert_eq!(wire, "standard input belongs to the client; give `diff`");
    assert!(client.call("review_change", &json!({})).as_str().unwrap().contains("either `diff` or `change`"));
    assert_eq!(client.end(), Some(0));

    let served = Served::start(&folder, &["--mock", "--answer", "approve"]);
    let offered = |served: &Served| {
        let list = rpc(served, &[], "tools/list", &json!({}))["tools"].clone();
        let tools = list.as_array().unwrap().clone();
        tools.into_iter().find(|tool| tool["name"] == "review_change").unwrap()["inputSchema"].clone()
    };
    assert_eq!(
        offered(&served)["properties"]["change"],
        Value::Null,
        "it is not offered where it is refused"
    );
    let reply = over_http(&served, &[], "review_change", &json!({"change": "change.patch"}));
    assert!(reply["content"][0]["text"].as_str().unwrap().contains("over standard input alone"), "{reply}");
}

/// A client over HTTP needs a token.
#[test]
fn http_clients_see_only_own_runs() {
    let folder = Folder::new();
    folder.write("tokens", "a-token-of-sixteen\nb-token-of-sixteen\n");
    let served = Served::start(&folder, &["--mock", "--answer", "4", "--token-file", "tokens"]);
    let of = |token: &str| format!("Authorization: Bearer {token}-token-of-sixteen");
    let ran = over_http(&served, &[&of("a")], "run", &json!({"task": QUESTION}));
    let run = ran["structuredContent"]["run"].clone();
    let own = over_http(&served, &[&of("a")], "status", &json!({"run": run}));
    assert_eq!(own["structuredContent"]["text"], "4", "{own}");
    for tool in ["status", "result", "verify", "cancel"] {
        let other = over_http(&served, &[&of("b")], tool, &json!({"run": run}));
        assert_eq!(other["content"][0]["text"], "there is no such run", "{tool}");
    }
    let page = ["Content-Type: application/json", "Accept: application/json, text/event-stream"];
    assert_eq!(served.ask("POST /mcp", &page, "{}").status, 401);
    let own = of("a");
    let foreign = [&page[..], &[&own, "Origin: https://evil.example"]].concat();
    assert_eq!(served.ask("POST /mcp", &foreign, "{}").status, 403);
}

/// Calls a tool over HTTP and returns its result.
#[track_caller]
fn over_http(served: &Served, headers: &[&str], tool: &str, arguments: &Value) -> Value {
    rpc(served, headers, "tools/call", &json!({"name": tool, "arguments": arguments}))
}

/// Sends a request over HTTP and returns its result.
#[track_caller]
fn rpc(served: &Served, headers: &[&str], method: &str, params: &Value) -> Value {
    let headers = [
        headers,
        &[
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            "MCP-Protocol-Version: 2025-11-25",
        ],
    ]
    .concat();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let said = served.ask("POST /mcp", &headers, &call.to_string());
    assert_eq!(said.status, 200, "{said:?}");
    let data = said.body.lines().filter_map(|line| line.strip_prefix("data: "));
    let messages: Vec<Value> = data.filter_map(|data| serde_json::from_str(data).ok()).collect();
    messages.into_iter().find(|message| message["id"] == 1).unwrap_or_else(|| panic!("{said:?}"))["result"]
        .clone()
}

/// A request of an agent, one with an endless name and one with a huge body are refused.
#[test]
fn refused_tool_request_begins_no_run() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--mock", "--answer", "4"]);
    let reply = over_http(&served, &["x-consensus-depth: 1"], "run", &json!({"task": QUESTION}));
    assert!(reply["content"][0]["text"].as_str().unwrap().contains("its own agents"), "{reply}");
    let long = format!("single@{}", "x".repeat(1 << 16));
    let reply = over_http(&served, &[], "plan", &json!({"task": QUESTION, "roleset": long}));
    assert!(reply["content"][0]["text"].as_str().unwrap().contains("256 bytes at most"), "{reply}");
    let headers = ["Content-Type: application/json", "Accept: application/json, text/event-stream"];
    let body = format!("{{\"x\": \"{}\"}}", "x".repeat(9 << 20));
    assert_eq!(served.ask("POST /mcp", &headers, &body).status, 413);
    assert_eq!(served.ask("GET /v1/runs", &[], "").json()["data"], json!([]));
}

/// The command ends when its client leaves without reading its answers.
#[test]
fn unread_answers_do_not_keep_command() {
    let folder = Folder::new();
    let mut client = McpClient::start(&folder, &[&MOCK[..], &["-o", "runs"]].concat());
    // More answers than a pipe holds.
    for _ in 0..100 {
        client.send("tools/list", &json!({}));
    }
    assert_eq!(client.end(), Some(0));
}

#[test]
fn parallel_commands_use_separate_folders() {
    let folder = Folder::new();
    let (mut first, mut second) = (McpClient::start(&folder, &MOCK), McpClient::start(&folder, &MOCK));
    let run = first.call("run", &json!({"task": QUESTION}))["run"].clone();
    assert_eq!(second.call("status", &json!({"run": run})), "there is no such run");
    assert_eq!((first.end(), second.end()), (Some(0), Some(0)));
    // The next one takes the first folder again.
    let mut third = McpClient::start(&folder, &MOCK);
    assert_eq!(third.call("status", &json!({"run": run}))["text"], "4");
}

#[test]
fn folder_of_another_build_is_left_alone() {
    let folder = Folder::new();
    let mut first = McpClient::start(&folder, &MOCK);
    let run = first.call("run", &json!({"task": QUESTION}))["run"].clone();
    assert_eq!(first.end(), Some(0));
    let journal = ".local/state/consensus/mcp/1/journal-0.jsonl";
    let text = std::fs::read_to_string(folder.path().join(journal)).unwrap();
    let other = text.replace(PROGRAM, "consensus 0.0.7+abc");
    folder.write(journal, &other);
    let mut second = McpClient::start(&folder, &MOCK);
    assert_eq!(second.call("status", &json!({"run": run})), "there is no such run");
    assert_eq!(second.call("run", &json!({"task": QUESTION}))["text"], "4");
    assert_eq!(second.end(), Some(0));
    assert_eq!(std::fs::read_to_string(folder.path().join(journal)).unwrap(), other);
}

#[test]
fn unknown_protocol_ends_command() {
    let folder = Folder::new();
    let mut command = consensus(&folder);
    command.args(["mcp", "--quiet", "-o", "runs"]).args(MOCK).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"GET / HTTP/1.1\r\n\r\n\xff\xfe{]\n").unwrap();
    let ended = Finished::with(child.wait_with_output().unwrap()).exits(0);
    for line in ended.stdout.lines() {
        let answer: Value = serde_json::from_str(line).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32_700)), "{line}");
    }
    assert_eq!(ended.stdout.lines().count(), 2, "each line that is no message has an answer");
}

/// A client that wrote half of a character, or a list as null, waits for no answer in vain.
#[test]
fn every_line_is_answered() {
    let folder = Folder::new();
    let mut command = consensus(&folder);
    command.args(["mcp", "--quiet", "-o", "runs"]).args(MOCK).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let begin = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}
    }});
    let call = |id: u64, arguments: Value| {
        let params = json!({"name": "run", "arguments": arguments});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
    };
    let nulls = json!({"task": QUESTION, "choices": null, "documents": null, "seed": null});
    let lines = [
        begin.to_string(),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
        call(5, json!({"task": "x"})).replace("\"x\"", "\"\\ud83d\""),
        r#"{"jsonrpc":"2.0","id":"six","method":"tools/list",}"#.to_owned(),
        call(7, json!("{\"task\": \"x\"}")),
        call(8, nulls),
    ];
    let mut input = child.stdin.take().unwrap();
    input.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    drop(input);
    let ended = Finished::with(child.wait_with_output().unwrap()).exits(0);
    let answers: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let by_id = |id: Value| answers.iter().find(|answer| answer["id"] == id).unwrap();
    assert_ne!(by_id(json!(1))["result"]["protocolVersion"], "2025-03-26", "its batches are not received");
    assert_eq!(by_id(json!(5))["error"]["code"], -32_700);
    assert_eq!(by_id(json!("six"))["error"]["code"], -32_700);
    assert_eq!(by_id(json!(7))["error"]["code"], -32_602);
    assert_eq!(by_id(json!(8))["result"]["structuredContent"]["text"], "4", "{:?}", by_id(json!(8)));
}
