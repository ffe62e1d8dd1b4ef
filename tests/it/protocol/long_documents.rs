//! Long documents, read in pieces: what is found, with its place; what is not; and what becomes of the rest.

use std::fmt::Write as _;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{
    Act, Finished, Folder, READER, Request, Server, completion, consensus, document_shown, http, model, trust,
};

/// A text of many paragraphs in which three facts are planted far apart.
fn book() -> String {
    let mut text = String::new();
    for number in 0..120 {
        let _ = write!(
            text,
            "Paragraph {number} tells of the harbour, its ships and the weather of that day.\n\n"
        );
        match number {
            10 => text.push_str("FACT The lighthouse was lit for the first time on 3 March 1877.\n\n"),
            60 => text.push_str("FACT Its keeper was called Ottilie Brandt.\n\n"),
            110 => text.push_str("FACT The lamp burned rape oil until 1902.\n\n"),
            _ => {}
        }
    }
    text
}

/// A run on the book by two members whose thoughts no other reads.
fn run(folder: &Folder, server: &Server) -> Command {
    let mut command = consensus(folder);
    folder.write("book.txt", &book());
    let seats = ["--roleset", "panel_personas", "--members", "analyst,pragmatist", "--thinking", "none"];
    command.args(["run", "--model", "tiny-model", "--base-url", &server.url(), "--seed", "1"]).args(seats);
    command.args([
        "-f",
        "book.txt",
        "--map-reduce",
        "--prompt",
        "When was the lighthouse lit, who kept it, and what did it cost?",
    ]);
    command
}

/// The answer also says what was asked for and not found.
#[test]
fn planted_facts_are_found_with_places() {
    let (folder, server) = (Folder::new(), Server::start(model(READER)));
    let finished = Finished::of(run(&folder, &server).args(["--piece-tokens", "600"])).exits(0);
    let result = folder.result();
    let section = &result["map_reduce"];
    let (text, findings) = (book(), section["findings"].as_array().unwrap());
    assert_eq!(findings.len(), 3, "{section}");
    for (finding, words) in findings.iter().zip(["3 March 1877", "Ottilie Brandt", "rape oil"]) {
        let place = |name: &str| usize::try_from(finding[name].as_u64().unwrap()).unwrap();
        let quote = &text[place("start")..place("end")];
        assert!(quote.contains(words) && finding["quote"] == quote, "{finding}");
    }
    let rests: Vec<&Value> =
        section["claims"].as_array().unwrap().iter().map(|claim| &claim["findings"]).collect();
    assert_eq!(rests, [&json!([1]), &json!([2]), &json!([3])]);
    assert_eq!(section["not_found"], json!(["what it cost"]));
    assert!(finished.stdout.ends_with("Not found: what it cost\n"), "{}", finished.stdout);
    let pieces = section["pieces"].as_array().unwrap();
    assert!(pieces.len() > 5 && pieces.iter().all(|piece| piece["outcome"] == "agreed"), "{section}");
    assert_eq!(result["degraded"], json!([]));
    for check in [&["verify"][..], &["show", "--replay"], &["show"]] {
        Finished::of(consensus(&folder).args(check).arg("--last")).exits(0);
    }
}

/// A choice is made among facts that fill more than a prompt, and those that remain keep their numbers.
#[test]
fn many_facts_keep_their_numbers() {
    let (folder, server) = (Folder::new(), Server::start(model(READER)));
    let mut many = String::new();
    for number in 0..60 {
        let _ = write!(many, "FACT Ship number {number} came into the harbour with a load of salt.\n\n");
    }
    let mut command = run(&folder, &server);
    folder.write("book.txt", &many);
    Finished::of(command.args(["--piece-tokens", "300"])).exits(0);
    let section = &folder.result()["map_reduce"];
    assert!(section["merges"].as_u64().unwrap() >= 1, "{section}");
    let asked = server.chats().len();
    let plan = [
        "run",
        "--dry-run",
        "--model",
        "openai:tiny-model",
        "--roleset",
        "panel_personas",
        "--members",
        "analyst,pragmatist",
    ];
    let task = [
        "--thinking",
        "none",
        "-f",
        "book.txt",
        "--map-reduce",
        "--piece-tokens",
        "300",
        "--prompt",
        "x",
        "--format",
        "json",
    ];
    let plan = Finished::of(consensus(&folder).args(plan).args(task)).exits(0);
    let plan: Value = serde_json::from_str(&plan.stdout).unwrap();
    assert!(plan["calls_max"].as_u64() >= Some(asked as u64), "{asked} calls, and the plan says {plan}");
    let findings = section["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 60);
    let mut rests: Vec<u64> = Vec::new();
    for claim in section["claims"].as_array().unwrap() {
        rests.extend(claim["findings"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()));
    }
    rests.sort_unstable();
    rests.dedup();
    assert!(
        !rests.is_empty() && rests.iter().all(|number| number % 2 > 0),
        "the even ships are the odd facts: {rests:?}"
    );
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

#[test]
fn unproven_facts_and_lost_pieces_are_reported() {
    // One piece is answered with nothing that counts, and another with words that stand nowhere.
    let liar = |request: &Request| {
        let body = request.json();
        if body["messages"].to_string().contains("List the sentences of this part")
            && body["response_format"]["json_schema"]["name"] == "answer"
        {
            let text = document_shown(&body);
            if text.contains("Ottilie") {
                return vec![Act::Send(completion("no form at all"))];
            }
            if text.contains("rape oil") {
                let lie = json!({"response": ["It burned whale oil until 1910."]});
                return vec![Act::Send(completion(&lie.to_string()))];
            }
        }
        model(READER)(request)
    };
    let (folder, server) = (Folder::new(), Server::start(liar));
    let mut command = run(&folder, &server);
    let finished = Finished::of(command.args(["--piece-tokens", "600", "--fail-on-degraded"])).exits(8);
    let result = folder.result();
    assert_eq!(result["map_reduce"]["findings"].as_array().unwrap().len(), 1, "{}", finished.stderr);
    let kinds: Vec<&str> =
        result["degraded"].as_array().unwrap().iter().map(|d| d["kind"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"piece_lost") && kinds.contains(&"fact_unproven"), "{kinds:?}");
    let lost = result["map_reduce"]["pieces"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|p| p["outcome"] == "no_agreement")
        .count();
    assert!(lost >= 1);
}

#[test]
fn where_nothing_is_found_that_is_the_result() {
    let (folder, server) = (Folder::new(), Server::start(model(READER)));
    let mut command = run(&folder, &server);
    folder.write("book.txt", &book().replace("FACT", "Also:"));
    Finished::of(command.args(["--piece-tokens", "600"])).exits(3);
    assert!(folder.result()["reason"].as_str().unwrap().contains("was anything found"));
}

#[test]
fn resumed_run_asks_no_piece_again() {
    let (folder, server) = (Folder::new(), Server::start(model(READER)));
    let stopped =
        Finished::of(run(&folder, &server).args(["--piece-tokens", "600", "--max-tokens-total", "3000"]))
            .exits(5);
    assert!(stopped.stderr.contains("resume"), "{}", stopped.stderr);
    let before = server.chats();
    Finished::of(consensus(&folder).args(["resume", "--last", "--max-tokens-total", "10000000"])).exits(0);
    let mut bodies: Vec<String> = server.chats().into_iter().map(|chat| chat.body).collect();
    let count = bodies.len();
    assert!(count > before.len());
    bodies.sort();
    bodies.dedup();
    assert_eq!(bodies.len(), count, "no request was sent twice");
    assert_eq!(folder.result()["map_reduce"]["findings"].as_array().unwrap().len(), 3);
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

/// A document that is too long for the model is read in pieces without a flag that asks for it.
#[test]
fn long_document_is_split_into_pieces() {
    // 8192 tokens fit, by what the server says, and one token has four bytes.
    let server = Server::start(|request| {
        if request.path == "/tokenize" {
            let count = request.json()["content"].as_str().unwrap().len() / 4;
            return vec![Act::Send(http(
                "200 OK",
                "",
                json!({"tokens": vec![1; count]}).to_string().as_bytes(),
            ))];
        }
        model(READER)(request)
    });
    let seats = ["--roleset", "panel_personas", "--members", "analyst,pragmatist", "--thinking", "none"];
    let task = ["-f", "book.txt", "--prompt", "When was the lighthouse lit?"];
    let of = |folder: &Folder, text: &str, more: &[&str]| {
        folder.write("book.txt", text);
        let mut command = consensus(folder);
        command
            .args(["run", "--model", "tiny-model", "--base-url", &server.url()])
            .args(seats)
            .args(task)
            .args(more);
        Finished::of(&mut command).exits(0)
    };
    let folder = Folder::new();
    let long = book().repeat(4);
    of(&folder, &long, &[]);
    let section = folder.result()["map_reduce"].clone();
    let longest = section["pieces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["end"].as_u64().unwrap() - p["start"].as_u64().unwrap());
    let longest = longest.max().unwrap();
    assert!(
        (7_000..=4 * 8192 / 4).contains(&longest),
        "a quarter of the context, by the server's count: {longest}"
    );
    let folder = Folder::new();
    of(&folder, &book(), &[]);
    assert!(folder.result()["map_reduce"].is_null(), "it fits");
    let folder = Folder::new();
    let finished = of(&folder, &long, &["--constraint", "words=..200"]);
    assert!(finished.stderr.contains("--map-reduce"), "{}", finished.stderr);
}

#[test]
fn files_of_one_name_are_distinguished() {
    let (folder, server) = (Folder::new(), Server::start(model(READER)));
    let mut command = run(&folder, &server);
    folder.write("old/book.txt", "FACT The lighthouse was lit for the first time in 1931.\n");
    Finished::of(command.args(["-f", "old/book.txt"])).exits(0);
    let section = &folder.result()["map_reduce"];
    let of_old = |finding: &&Value| finding["document"] == "old/book.txt";
    assert_eq!(section["findings"].as_array().unwrap().iter().filter(of_old).count(), 1, "{section}");
    assert_eq!(section["findings"].as_array().unwrap().len(), 4);
}

#[test]
fn the_smallest_context_of_all_servers_counts() {
    let place = |tokens: u64| {
        Server::start(move |request: &Request| {
            if request.path.ends_with("/models") {
                let list = json!({"data": [{"id": "m", "max_model_len": tokens}]});
                return vec![Act::Send(http("200 OK", "", list.to_string().as_bytes()))];
            }
            model(READER)(request)
        })
    };
    let (large, small) = (place(100_000), place(4_000));
    let folder = Folder::new();
    folder.write("book.txt", &book());
    let providers = format!(
        "[providers.large]\nbase_url = \"{}\"\n[providers.small]\nbase_url = \"{}\"\n",
        large.url(),
        small.url()
    );
    folder.write("consensus.toml", &providers);
    trust(&folder);
    let run = [
        "run",
        "--roleset",
        "panel_models",
        "--models",
        "large:m,small:m",
        "--thinking",
        "none",
        "-f",
        "book.txt",
    ];
    Finished::of(consensus(&folder).args(run).args(["--prompt", "When was it lit?"])).exits(0);
    assert!(folder.result()["map_reduce"]["pieces"].as_array().unwrap().len() > 1);
}

#[test]
fn what_does_not_go_with_pieces_is_refused() {
    let folder = Folder::new();
    folder.write("book.txt", "Short.");
    folder.write("blank.txt", " \n");
    let run = ["run", "--mock", "--answer", "4", "--prompt", "x", "--map-reduce"];
    for (words, why) in [
        (&[][..], "there is no document"),
        (
            &["-f", "book.txt", "--roleset", "solver_checker", "--canonical", "number"],
            "and so does not go with --constraint",
        ),
        (&["-f", "book.txt", "--redact"], "does not go with redaction"),
        (&["-f", "book.txt", "--redact-pattern", "x"], "does not go with redaction"),
        (&["-f", "blank.txt"], "no document with any text"),
        (&["-f", "book.txt", "--session", "s"], "does not go with --session"),
    ] {
        let refused = Finished::of(consensus(&folder).args(run).args(words)).exits(2);
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
    }
}

#[test]
fn a_plan_counts_every_piece_and_every_merge() {
    let folder = Folder::new();
    folder.write("book.txt", &book());
    let plan = |words: &[&str]| -> Value {
        let fixed = [
            "run",
            "--dry-run",
            "--model",
            "openai:gpt-4o-mini",
            "--roleset",
            "panel_personas",
            "--prompt",
            "x",
            "--format",
            "json",
            "-f",
            "book.txt",
        ];
        serde_json::from_str(&Finished::of(consensus(&folder).args(fixed).args(words)).exits(0).stdout)
            .unwrap()
    };
    let (whole, pieces) = (plan(&[]), plan(&["--map-reduce", "--piece-tokens", "600"]));
    assert!(pieces["calls_max"].as_u64() > Some(5 * whole["calls_max"].as_u64().unwrap()), "{pieces}");
    assert!(pieces["cost_micro_usd_max"].as_u64() > whole["cost_micro_usd_max"].as_u64());
}
