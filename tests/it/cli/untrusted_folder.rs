//! A folder that one stands in starts nothing, names no server and no key, and writes nowhere else, until its user
//! says so.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::support::{Act, Finished, Folder, SENSIBLE, Server, consensus, http, model, trust};

/// Every command that starts, sends or writes something, with as little as it needs.
const ACTING: [&[&str]; 6] = [
    &["run", "-p", "2+2?"],
    &["doctor"],
    &["batch", "tasks.jsonl", "--output", "out"],
    &["resume", "--last"],
    &["approve", "--keys", "keys", "--change", "x"],
    &["approve", "--keys", "keys", "--replica", "security", "--peers", "peers.json"],
];

/// A folder that another person has made, with this configuration.
pub(crate) fn cloned(config: &str) -> Folder {
    let folder = Folder::new();
    folder.write("tasks.jsonl", "{\"id\": 1, \"prompt\": \"How much is 2+2?\"}\n");
    folder.write("consensus.toml", config);
    folder
}

/// A server that is named by a configuration, and the configuration.
fn named(rest: &str) -> (Server, String) {
    let server = Server::start(model(SENSIBLE));
    let config = format!("model = \"tiny-model\"\nbase_url = \"{}\"\n{rest}", server.url());
    (server, config)
}

/// Runs in the folder with keys in the environment, as its visitor would.
pub(crate) fn visitor(folder: &Folder, words: &[&str]) -> Command {
    let mut command = consensus(folder);
    command.args(words).envs([
        ("OPENAI_API_KEY", "sk-victim"),
        ("ANY_VARIABLE", "other-secret"),
        ("AWS_SECRET_ACCESS_KEY", "s3cret"),
        ("HF_TOKEN", "hf-own"),
        ("CONSENSUS_TRUST", ""),
    ]);
    command
}

/// Asserts that every command refuses the folder, says this, and has made nothing in it.
#[track_caller]
fn refused(folder: &Folder, says: &[&str]) {
    for words in ACTING {
        let finished = Finished::of(&mut visitor(folder, words)).exits(2);
        for part in says.iter().chain(&["`consensus trust`"]) {
            assert!(finished.stderr.contains(part), "{words:?}: {part:?} in {}", finished.stderr);
        }
    }
    for made in ["runs", "out", "pwned", "config/consensus/trusted.json"] {
        assert!(!folder.path().join(made).exists(), "{made}");
    }
}

fn digest(folder: &Folder) -> String {
    let refused = Finished::of(&mut visitor(folder, &["run", "-p", "2+2?"])).exits(2);
    refused.stderr.split("CONSENSUS_TRUST=").nth(1).unwrap()[..64].to_owned()
}

#[test]
fn untrusted_folder_starts_no_program() {
    let folder = cloned(
        "model = \"m\"\nlaunch = \"sh -c \\\"id > pwned; echo $AWS_SECRET_ACCESS_KEY >> pwned\\\" {port} {model}\"\n",
    );
    let launch = "consensus.toml:2: launch = \"sh -c \\\"id > pwned; echo $AWS_SECRET_ACCESS_KEY >> pwned\\\" {port} {model}\"";
    refused(&folder, &[launch, "you have not trusted it"]);
    let trusted = Finished::of(&mut visitor(&folder, &["trust"])).exits(0);
    assert_eq!(trusted.stdout.lines().next(), Some(launch));
    assert!(!folder.path().join("pwned").exists(), "to trust starts nothing");
    // It is no server, and now it is tried.
    Finished::of(&mut visitor(&folder, &["run", "-p", "2+2?"])).exits(6);
    let written = std::fs::read_to_string(folder.path().join("pwned")).unwrap();
    assert!(written.contains("uid=") && !written.contains("s3cret"), "{written}");
}

#[test]
fn untrusted_folder_contacts_no_server() {
    let (server, config) = named("");
    let folder = cloned(&config);
    refused(&folder, &[&format!("consensus.toml:2: base_url = \"{}\"", server.url())]);
    assert_eq!(server.connections.load(Ordering::SeqCst), 0);
    trust(&folder);
    Finished::of(&mut visitor(&folder, &["run", "-p", "2+2?"])).exits(0);
    let sent = server.chats()[0].header("authorization");
    assert_eq!(sent.as_deref(), Some("Bearer sk-victim"));
}

#[test]
fn untrusted_folder_names_no_key() {
    let server = Server::start(model(SENSIBLE));
    let url = server.url();
    let folder = cloned(&format!(
        "model = \"e:m\"\n[providers.e]\nbase_url = \"{url}\"\napi_key_env = \"ANY_VARIABLE\"\n"
    ));
    let key = "consensus.toml:4: providers.e.api_key_env = \"ANY_VARIABLE\"";
    refused(&folder, &[&format!("consensus.toml:3: providers.e.base_url = \"{url}\""), key]);
    assert_eq!(server.connections.load(Ordering::SeqCst), 0);
    trust(&folder);
    Finished::of(&mut visitor(&folder, &["run", "-p", "2+2?"])).exits(0);
    assert_eq!(server.chats()[0].header("authorization").as_deref(), Some("Bearer other-secret"));
}

#[test]
fn settings_need_trust_unless_harmless() {
    for (setting, name) in [
        ("api_key_env = \"ANY_VARIABLE\"", "api_key_env"),
        ("api_key_file = \"/etc/passwd\"", "api_key_file"),
        ("allow_http = true", "allow_http"),
        ("[bedrock]\nprofile = \"x\"", "bedrock.profile"),
        ("bedrock = { region = \"x\" }", "bedrock.region"),
        ("bedrock.base_url = \"https://x\"", "bedrock.base_url"),
        ("providers = { \"a\\nb\" = { base_url = \"https://x/v1\" } }", "providers.\"a\\nb\".base_url"),
    ] {
        refused(&cloned(setting), &[&format!(": {name} = ")]);
    }
    let harmless = "model = \"m\"\nroleset = \"solver_checker\"\nstream = false\nretries = 1\ncalls_at_once = 1\nruns_dir = \"deep/../runs\"\nrolesets_dir = \"rolesets\"\n[timeouts]\nready_ms = 1\n[prices.m]\nprompt = 1\ncompletion = 1\n";
    let run = ["run", "--mock", "--answer", "4", "-p", "2+2?"];
    Finished::of(&mut visitor(&cloned(harmless), &run)).exits(0);
}

/// Any change of the file ends the trust, and the same bytes bring it back.
#[test]
fn trust_holds_for_same_bytes_only() {
    let (server, config) = named("");
    let folder = cloned(&config);
    trust(&folder);
    for changed in [format!("{config}#\n"), config.replace("tiny-model", "tiny-modem"), config.clone() + " "]
    {
        folder.write("consensus.toml", &changed);
        let run = Finished::of(&mut visitor(&folder, &["run", "-p", "2+2?"])).exits(2);
        assert!(run.stderr.contains("it has changed since you trusted it"), "{}", run.stderr);
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 0);
    folder.write("consensus.toml", &config);
    Finished::of(&mut visitor(&folder, &["run", "-p", "2+2?"])).exits(0);
}

/// The digest in `CONSENSUS_TRUST` holds wherever the folder lies, and nothing is kept of it.
#[test]
fn job_trusts_folder_by_digest() {
    let (server, config) = named("");
    let (here, there) = (cloned(&config), cloned(&config));
    let digest = digest(&here);
    let run = |trust: &str| {
        let mut run = visitor(&there, &["run", "-p", "2+2?"]);
        Finished::of(run.env("CONSENSUS_TRUST", trust))
    };
    for wrong in [&"0".repeat(64), &digest[..63], "yes"] {
        let refused = run(wrong).exits(2);
        assert!(
            refused.stderr.contains("CONSENSUS_TRUST is the digest of something else"),
            "{}",
            refused.stderr
        );
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 0);
    run(&digest).exits(0);
    assert!(!there.path().join("config").exists(), "nothing is kept of it");
    there.write("consensus.toml", &format!("{config}#"));
    run(&digest).exits(2);
}

fn full_path(folder: &Folder) -> String {
    folder.path().canonicalize().unwrap().display().to_string()
}

fn field(row: &Value, name: &str) -> String {
    row[name].as_str().unwrap().to_owned()
}

/// Returns each folder of a list of trust, with its state.
fn states(list: &Value) -> Vec<(String, String)> {
    list.as_array().unwrap().iter().map(|row| (field(row, "folder"), field(row, "state"))).collect()
}

#[test]
fn trust_can_be_listed_and_revoked() {
    let (_server, config) = named("");
    let (folder, other) = (cloned(&config), cloned("launch = \"vllm\"\n"));
    let with_store_of = |of: &Folder, stands_in: &Folder, words: &[&str], code| {
        let mut command = consensus(of);
        Finished::of(command.current_dir(stands_in.path()).args(words)).exits(code)
    };
    let list = || -> Value {
        serde_json::from_str(
            &with_store_of(&folder, &folder, &["trust", "--list", "--format", "json"], 0).stdout,
        )
        .unwrap()
    };
    assert_eq!(list(), json!([]));
    trust(&folder);
    with_store_of(&folder, &other, &["trust"], 0);
    let store = folder.path().join("config/consensus/trusted.json");
    assert_eq!(std::fs::metadata(&store).unwrap().permissions().mode() & 0o777, 0o600);
    other.write("consensus.toml", "launch = \"vllm --x\"\n");
    let mut expected =
        vec![(full_path(&folder), "trusted".to_owned()), (full_path(&other), "changed".to_owned())];
    expected.sort();
    assert_eq!(states(&list()), expected);
    let shown = with_store_of(&folder, &folder, &["trust", "--list"], 0).stdout;
    assert!(shown.contains(&format!("trusted   {}", full_path(&folder))), "{shown}");
    // A folder that is gone can still be taken off.
    let gone = full_path(&other);
    drop(other);
    assert!(states(&list()).contains(&(gone.clone(), "gone".to_owned())));
    with_store_of(&folder, &folder, &["trust", "--revoke", &gone], 0);
    with_store_of(&folder, &folder, &["trust", "--revoke", &gone], 2);
    Finished::of(consensus(&folder).args(["trust", "--revoke"])).exits(0);
    assert_eq!(list(), json!([]));
    Finished::of(consensus(&folder).args(["run", "-p", "2+2?"])).exits(2);
    // A list that is damaged trusts nothing, and says where it is.
    std::fs::write(&store, "{}").unwrap();
    let damaged = Finished::of(consensus(&folder).args(["run", "-p", "2+2?"])).exits(2);
    assert!(damaged.stderr.contains("trusted.json"), "{}", damaged.stderr);
}

/// The user's own file may name servers, keys and places, and a project's file beside it sets the rest.
#[test]
fn user_file_needs_no_trust() {
    let server = Server::start(model(SENSIBLE));
    let elsewhere = Folder::new();
    let own = format!(
        "model = \"lab:m\"\nruns_dir = \"{}\"\napi_key_env = \"X\"\nlaunch = \"vllm\"\n[providers.lab]\nbase_url = \"{}\"\napi_key_env = \"ANY_VARIABLE\"\n[bedrock]\nprofile = \"x\"\n",
        elsewhere.path().display(),
        server.url()
    );
    let folder = cloned("model = \"lab:tiny-model\"\nroleset = \"solver_checker\"\n");
    folder.write("config/consensus/config.toml", &own);
    Finished::of(&mut visitor(&folder, &["run", "-p", "2+2?"]));
    assert_eq!(server.chats()[0].header("authorization").as_deref(), Some("Bearer other-secret"));
    assert_eq!(server.chats()[0].json()["model"], "tiny-model");
    assert!(!folder.path().join("runs").exists());
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 1, "where the user wants them");
}

#[test]
fn runs_are_written_elsewhere_only_with_trust() {
    let outside = Folder::new();
    let out = outside.path().display().to_string();
    let run = ["run", "--mock", "--answer", "4", "-p", "2+2?"];
    let none = |folder: &Folder, says: &str| {
        refused(folder, &[says]);
        let refused = Finished::of(&mut visitor(folder, &run)).exits(2);
        assert!(refused.stderr.contains(says), "{}", refused.stderr);
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    };
    let up = format!("../{}", outside.path().file_name().unwrap().to_str().unwrap());
    for place in [&out, &up] {
        none(&cloned(&format!("runs_dir = \"{place}\"\n")), "consensus.toml:1: runs_dir = ");
        none(&cloned(&format!("\nrolesets_dir = \"{place}\"\n")), "consensus.toml:2: rolesets_dir = ");
    }
    // By a link that is named, and by one that needs no name: the usual folder, and what is in it.
    let named = cloned("runs_dir = \"link/deeper\"\n");
    symlink(outside.path(), named.path().join("link")).unwrap();
    none(&named, "consensus.toml:1: runs_dir = \"link/deeper\" (outside of the folder: ");
    let doctors = cloned("");
    std::fs::create_dir_all(doctors.path().join("other/doctor")).unwrap();
    doctors.write("consensus.toml", "runs_dir = \"other\"\n");
    symlink(outside.path().join("x"), doctors.path().join("other/doctor/server.log")).unwrap();
    none(&doctors, "other/doctor/server.log: a link that leads out of the folder");
    let usual = cloned("");
    symlink(outside.path(), usual.path().join("runs")).unwrap();
    let refused = Finished::of(&mut visitor(&usual, &run)).exits(2);
    assert!(refused.stderr.contains("runs: a link that leads out of the folder"), "{}", refused.stderr);
    // Trust is in the link as it is.
    trust(&usual);
    Finished::of(&mut visitor(&usual, &run)).exits(0);
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    let third = Folder::new();
    std::fs::remove_file(usual.path().join("runs")).unwrap();
    symlink(third.path(), usual.path().join("runs")).unwrap();
    let changed = Finished::of(&mut visitor(&usual, &run)).exits(2);
    assert!(changed.stderr.contains("it has changed since you trusted it"), "{}", changed.stderr);
    assert_eq!(std::fs::read_dir(third.path()).unwrap().count(), 0);
    // A link that stays inside needs no trust.
    std::fs::remove_file(usual.path().join("runs")).unwrap();
    std::fs::create_dir(usual.path().join("kept")).unwrap();
    symlink("kept", usual.path().join("runs")).unwrap();
    Finished::of(&mut visitor(&usual, &run)).exits(0);
}

/// One warning names the settings that are left out.
#[test]
fn reading_commands_leave_untrusted_settings_out() {
    let (server, config) = named("runs_dir = \"../elsewhere\"\nroleset = \"solver_checker\"\n");
    let folder = cloned("");
    Finished::of(&mut visitor(&folder, &["run", "--mock", "--answer", "4", "-p", "2+2?"])).exits(0);
    folder.write("consensus.toml", &config);
    let reading: [&[&str]; 7] = [
        &["run", "-p", "2+2?", "--dry-run"],
        &["roleset", "check"],
        &["runs"],
        &["show", "--last"],
        &["verify", "--last"],
        &["show", "--replay", "--last"],
        &["keys", "generate", "made"],
    ];
    for words in reading {
        let read = Finished::of(&mut visitor(&folder, words)).exits(0);
        let warnings: Vec<&str> =
            read.stderr.lines().filter(|line| line.contains("consensus trust")).collect();
        let [line] = warnings[..] else { panic!("{words:?}: {}", read.stderr) };
        assert!(
            line.contains("left out")
                && line.contains("consensus.toml:2: base_url = ")
                && line.contains("; consensus.toml:3: runs_dir = "),
            "{line}"
        );
    }
    // What needs no trust counts.
    let plan =
        Finished::of(&mut visitor(&folder, &["run", "--dry-run", "-p", "x", "--format", "json"])).exits(0);
    assert_eq!(serde_json::from_str::<Value>(&plan.stdout).unwrap()["roleset"], "solver_checker");
    assert_eq!(server.connections.load(Ordering::SeqCst), 0);
    trust(&folder);
    let runs = Finished::of(&mut visitor(&folder, &["runs"])).exits(0);
    assert_eq!((runs.stdout.as_str(), runs.stderr.contains("../elsewhere")), ("", true), "{}", runs.stderr);
}

/// A setting can neither act on the terminal nor hide a line.
#[test]
fn trust_output_escapes_terminal_controls() {
    let folder =
        cloned("launch = \"sh \\u001b[2J\\u202e\\nx {port}\"\nbase_url = \"https://me:s3cret@x/v1\"\n");
    let shown = Finished::of(&mut visitor(&folder, &["trust"])).exits(0);
    let lines: Vec<&str> = shown.stdout.lines().collect();
    assert_eq!(lines[0], "consensus.toml:1: launch = \"sh \\u001b[2J\\u202e\\nx {port}\"");
    assert_eq!(lines[1], "consensus.toml:2: base_url = \"https://…@x/v1\"");
    assert_eq!(lines.len(), 3, "the digest is the last: {lines:?}");
    assert!(!shown.stderr.contains('\u{1b}'), "{}", shown.stderr);
    let json = Finished::of(&mut visitor(&folder, &["trust", "--format", "json"])).exits(0);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["settings"][1]["place"], "consensus.toml:2");
    assert!(lines[2].starts_with(json["digest"].as_str().unwrap()));
    let none = Finished::of(&mut visitor(&cloned("model = \"m\"\n"), &["trust"])).exits(0);
    assert!(none.stdout.is_empty() && none.stderr.contains("nothing in this folder needs trust"));
}

#[test]
fn an_endless_configuration_file_is_refused_at_once() {
    for target in ["/dev/zero", "/"] {
        let folder = cloned("");
        std::fs::remove_file(folder.path().join("consensus.toml")).unwrap();
        symlink(target, folder.path().join("consensus.toml")).unwrap();
        refused_for(&folder, "it is not a regular file");
    }
    let folder = cloned("");
    std::fs::remove_file(folder.path().join("consensus.toml")).unwrap();
    let made = Command::new("mkfifo").arg(folder.path().join("consensus.toml")).status().unwrap();
    assert!(made.success());
    refused_for(&folder, "it is not a regular file");
    refused_for(&cloned(&"#".repeat((1 << 20) + 1)), "longer than 1048576 bytes");
}

#[track_caller]
fn refused_for(folder: &Folder, says: &str) {
    let refused = Finished::of(&mut visitor(folder, &["run", "-p", "x"])).exits(2);
    assert!(refused.stderr.contains(says), "{}", refused.stderr);
}

/// Returns the settings that `doctor` lists: each with its value, and with what has set it.
fn settings(doctor: &mut Command) -> Vec<String> {
    let report = Finished::of(doctor.args(["--format", "json"])).exits(0).stdout;
    let report: Value = serde_json::from_str(&report).unwrap();
    let mut settings = Vec::new();
    for row in report[0]["settings"].as_array().unwrap() {
        settings.push(format!("{}={} {}", field(row, "name"), field(row, "value"), field(row, "by")));
    }
    settings
}

#[test]
fn doctor_tells_what_set_each_value() {
    let (server, config) = named("retries = 1\n");
    let url = server.url();
    let folder = cloned(&config);
    trust(&folder);
    let user =
        folder.write("config/consensus/config.toml", "api_key_env = \"MINE\"\nretries = 7\nstream = false\n");
    let user = user.display();
    let by_files = settings(&mut visitor(&folder, &["doctor"]));
    let expected = [
        "roleset=question the program's default".to_owned(),
        "model=tiny-model consensus.toml:1".to_owned(),
        format!("base_url={url} consensus.toml:2"),
        format!("api_key_env=MINE {user}:1"),
        "retries=1 consensus.toml:3".to_owned(),
        format!("stream=false {user}:3"),
    ];
    assert_eq!(by_files, expected);
    let flags = ["doctor", "--no-stream", "--roleset", "solver_checker", "--base-url", &url];
    let mut given = visitor(&folder, &flags);
    let by_flags = settings(given.env("CONSENSUS_MODEL", "other"));
    let expected = [
        "roleset=solver_checker --roleset".to_owned(),
        "model=other CONSENSUS_MODEL".to_owned(),
        format!("base_url={url} --base-url"),
        format!("api_key_env=MINE {user}:1"),
        "stream=false --no-stream".to_owned(),
        "retries=1 consensus.toml:3".to_owned(),
    ];
    assert_eq!(by_flags, expected);
    let text = Finished::of(&mut visitor(&folder, &["doctor"])).exits(0).stdout;
    assert!(text.contains(&format!("  set              base_url = {url}, by consensus.toml:2\n")), "{text}");
    folder.write(
        "config/consensus/config.toml",
        &format!("[providers.lab]\nbase_url = \"{url}\"\napi_key_env = \"LAB\"\n"),
    );
    let by_provider = settings(&mut visitor(&folder, &["doctor", "--model", "lab:m"]));
    assert!(by_provider.contains(&format!("providers.lab.base_url={url} {user}:2")), "{by_provider:?}");
    assert!(by_provider.contains(&format!("providers.lab.api_key_env=LAB {user}:3")), "{by_provider:?}");
}

#[test]
fn doctor_names_source_of_bedrock_settings() {
    let server = Server::start(|_| vec![Act::Send(http("403 Forbidden", "", b"{\"message\":\"no\"}"))]);
    let folder = cloned("model = \"bedrock:vendor.tiny-v1:0\"\n[bedrock]\nregion = \"eu-west-1\"\n");
    trust(&folder);
    let mut doctor = visitor(&folder, &["doctor", "--format", "json"]);
    let url = format!("http://127.0.0.1:{}", server.port);
    doctor.envs([("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", url.as_str()), ("AWS_REGION", "eu-central-1")]);
    doctor.env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE");
    let report: Value = serde_json::from_str(&Finished::of(&mut doctor).exits(6).stdout).unwrap();
    let expected = json!([
        {"name": "roleset", "value": "question", "by": "the program's default"},
        {"name": "model", "value": "vendor.tiny-v1:0", "by": "consensus.toml:1"},
        {"name": "bedrock.base_url", "value": url, "by": "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"},
        {"name": "bedrock.region", "value": "eu-west-1", "by": "consensus.toml:3"},
    ]);
    assert_eq!(report[0]["settings"], expected);
}

#[test]
fn a_launched_server_gets_no_key_of_another() {
    let folder = cloned("");
    folder.write(
        "config/consensus/config.toml",
        "[providers.lab]\nbase_url = \"https://lab/v1\"\napi_key_env = \"ANY_VARIABLE\"\n",
    );
    let program = Path::new(env!("CARGO_BIN_EXE_consensus")).with_file_name("examples").join("fake_llm");
    let server = folder.write("serve.sh", &format!("env\nexec '{}' \"$1\"\n", program.display()));
    let launch = format!("sh {} {{port}}", server.display());
    let mut run = visitor(&folder, &["run", "-p", "2+2?", "--launch", &launch]);
    run.envs([
        ("OPENROUTER_API_KEY", "sk-or"),
        ("AWS_BEARER_TOKEN_BEDROCK", "aws-b"),
        ("VLLM_API_KEY", "sk-v"),
    ]);
    run.env("CONSENSUS_TRUST", "f".repeat(64));
    Finished::of(&mut run).exits(0);
    let log = std::fs::read_to_string(folder.run().join("server.log")).unwrap();
    for secret in ["sk-victim", "other-secret", "s3cret", "sk-or", "aws-b", "sk-v", &"f".repeat(64)] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
    assert!(log.contains("HF_TOKEN=hf-own") && log.contains("PATH="), "{log}");
}
