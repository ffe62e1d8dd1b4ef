//! How sure a council is: as its members say, or as their servers measure.

use serde_json::{Value, json};

use crate::support::{Act, Finished, Folder, Request, SENSIBLE, Server, consensus, http, model};

fn run(folder: &Folder, words: &[&str]) -> Finished {
    let run = ["run", "--roleset", "council_tripartite", "--seed", "1", "--prompt", "How much is 2 and 2?"];
    Finished::of(consensus(folder).args(run).args(words))
}

/// A council whose members say that they are sure, and whose words are this likely, in ten-thousandths.
fn council(folder: &Folder, yes: Option<u16>, words: &[&str]) -> Finished {
    let mut rule = json!({"policy": "honest", "answer": "4"});
    if let Some(yes) = yes {
        rule["yes"] = yes.into();
    }
    folder.write("script.jsonl", &rule.to_string());
    run(folder, &[&["--mock-script", "script.jsonl", "--confidence", "logprob"], words].concat())
}

#[test]
fn a_measured_confidence_counts_and_both_are_recorded() {
    for (yes, exit, measured) in [(9_000, 0, 0.9), (8_500, 0, 0.85), (8_499, 3, 0.8499)] {
        let folder = Folder::new();
        council(&folder, Some(yes), &["--max-rounds", "1"]).exits(exit);
        let result = folder.result();
        let round = &result["council"]["rounds"][0];
        assert_eq!(
            (&round["response"]["confidence"], &round["response"]["sound"]),
            (&json!(0.95), &json!("yes"))
        );
        assert_eq!(round["response"]["measured"], json!(measured));
        assert_eq!(round["confidences"]["ethos"], json!(measured));
        assert_eq!(result["degraded"], json!([]));
        Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
    }
}

/// Without measured probabilities the spoken confidence counts, and the result is degraded.
#[test]
fn unmeasured_confidence_falls_back_to_words() {
    let folder = Folder::new();
    council(&folder, None, &[]).exits(0);
    let result = folder.result();
    assert_eq!(result["council"]["rounds"][0]["confidences"]["logos"], json!(0.95));
    let kinds: Vec<&Value> =
        result["degraded"].as_array().unwrap().iter().map(|loss| &loss["kind"]).collect();
    assert_eq!(kinds, ["confidence_not_measured"; 3]);
}

/// Answers as [`SENSIBLE`] does, sure of itself in words and 60 to 40 in its tokens.
fn torn(request: &Request) -> Vec<Act> {
    let body = request.json();
    let Some(fields) = body["response_format"]["json_schema"]["schema"]["properties"].as_object() else {
        return model(SENSIBLE)(request);
    };
    let mut form: Value = serde_json::from_str(&SENSIBLE(&body)).unwrap();
    assert!(fields.contains_key("sound") && body["logprobs"] == true, "{body}");
    form["confidence"] = json!(0.95);
    form["sound"] = json!("yes");
    let text = form.to_string();
    let at = text.rfind("yes").unwrap();
    let tops = json!([{"token": "yes", "logprob": 0.6_f64.ln()}, {"token": "no", "logprob": 0.4_f64.ln()}]);
    let tokens = json!([
        {"token": &text[..at], "logprob": 0.0, "top_logprobs": []},
        {"token": "yes", "logprob": 0.6_f64.ln(), "top_logprobs": tops},
        {"token": &text[at + 3..], "logprob": 0.0, "top_logprobs": []},
    ]);
    let choice =
        json!({"message": {"content": text}, "finish_reason": "stop", "logprobs": {"content": tokens}});
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 10});
    vec![Act::Send(http("200 OK", "", json!({"choices": [choice], "usage": usage}).to_string().as_bytes()))]
}

#[test]
fn a_servers_probabilities_are_read() {
    let server = Server::start(torn);
    let folder = Folder::new();
    run(&folder, &["--base-url", &server.url(), "--confidence", "logprob", "--max-rounds", "1"]).exits(3);
    let round = &folder.result()["council"]["rounds"][0];
    assert_eq!(round["confidences"], json!({"pathos": 0.6, "logos": 0.6, "ethos": 0.6}));
    // Thoughts are not measured.
    let thoughts = server.chats().into_iter().filter(|request| !request.body.contains("json_schema"));
    assert!(thoughts.map(|request| request.json()).all(|body| body["logprobs"].is_null()));
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

#[test]
fn weights_are_taken_from_a_file() {
    let folder = Folder::new();
    folder.write("weights.json", r#"{"pathos": 0.2, "logos": 0.4, "ethos": 0.4}"#);
    let mock = ["--mock", "--answer", "4", "--weights-from"];
    run(&folder, &[&mock[..], &["weights.json"]].concat()).exits(0);
    assert_eq!(folder.result()["council"]["weights"]["ethos"], json!(0.4));
    // As a fit writes them: with all their digits, and a mark at the beginning.
    let third = 1.0 / 3.0;
    let exact = format!("\u{FEFF}{}", json!({"pathos": third, "logos": third, "ethos": third}));
    folder.write("thirds.json", &exact);
    let thirds = Folder::new();
    thirds.write("thirds.json", &exact);
    run(&thirds, &[&mock[..], &["thirds.json"]].concat()).exits(0);
    let weights = &thirds.result()["council"]["weights"];
    assert_eq!((&weights["pathos"], &weights["ethos"]), (&json!(0.3333), &json!(0.3334)));
    for (name, text, why) in [
        ("half.json", r#"{"pathos": 0.2, "logos": 0.4, "ethos": 0.3}"#, "must sum to 1"),
        ("words.json", r#"{"pathos": "much"}"#, "`words.json` is not a file of weights"),
    ] {
        folder.write(name, text);
        let refused = run(&folder, &[&mock[..], &[name]].concat()).exits(2);
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
    }
    let pair = ["run", "--mock", "--answer", "4", "--prompt", "2+2?", "--weights-from", "weights.json"];
    let refused = Finished::of(consensus(&folder).args(pair)).exits(2);
    assert!(refused.stderr.contains("rolesets of `council` only"), "{}", refused.stderr);
}
