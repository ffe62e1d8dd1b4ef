//! The newer of OpenAI's two forms, and the description of all paths.

use serde_json::{Value, json};

use super::body;
use crate::support::{Folder, Served};

/// Returns the events of a stream of the newer form, each of which names its type.
fn events(body: &str) -> Vec<Value> {
    let whole = body.split("\n\n").filter(|event| !event.is_empty() && !event.starts_with(':'));
    whole
        .map(|event| {
            let (kind, data) = event.split_once('\n').unwrap();
            let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            assert_eq!(kind, format!("event: {}", data["type"].as_str().unwrap()));
            data
        })
        .collect()
}

/// The newer form and the older one find the same run by the same key.
#[test]
fn response_form_has_same_agreement() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--mock", "--answer", "4"]);
    let respond = |headers: &[&str], body: &Value| {
        let headers = [headers, &["Content-Type: application/json"]].concat();
        served.ask("POST /v1/responses", &headers, &body.to_string())
    };
    let ask = json!({"model": "consensus/solver_checker", "input": "How much is 2+2?", "metadata": {"of": "a test"}});
    let said = respond(&["Idempotency-Key: k"], &ask);
    assert_eq!(said.status, 200, "{said:?}");
    let said = said.json();
    assert_eq!((&said["object"], &said["status"]), (&json!("response"), &json!("completed")));
    assert_eq!(said["output"][0]["content"][0]["text"], "4");
    assert_eq!(said["metadata"], json!({"of": "a test"}));
    assert_eq!(said["consensus"]["how"], "independent");

    // The same key and the same question in the older form find the same run.
    let chat = served.chat(&["Idempotency-Key: k"], &body("solver_checker", "How much is 2+2?")).json();
    assert_eq!(chat["consensus"]["run"], said["consensus"]["run"]);
    assert_eq!(chat["usage"]["total_tokens"], said["usage"]["total_tokens"]);
    let run = served.ask(&format!("GET /v1/runs/{}", said["id"].as_str().unwrap()), &[], "");
    assert_eq!(run.json()["text"], "4", "the id of an answer is that of its run");

    let mut streamed = ask.clone();
    streamed["stream"] = true.into();
    for headers in [&[][..], &["Idempotency-Key: k"]] {
        let events = events(&respond(headers, &streamed).body);
        assert_eq!(
            (&events[0]["type"], &events[0]["response"]["status"]),
            (&json!("response.created"), &json!("in_progress"))
        );
        let last = &events[events.len() - 1];
        assert_eq!(last["type"], "response.completed");
        assert_eq!(last["response"]["output"][1]["content"][0]["text"], "4");
    }
    let refused =
        respond(&[], &json!({"model": "solver_checker", "input": "2+2?", "tools": [{"type": "web_search"}]}));
    assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!("tools")));
}

#[test]
fn every_path_is_described() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--mock", "--answer", "4"]);
    let description = served.ask("GET /openapi.json", &[], "").json();
    let paths: Vec<&String> = description["paths"].as_object().unwrap().keys().collect();
    assert_eq!(
        paths,
        [
            "/health",
            "/metrics",
            "/v1/chat/completions",
            "/v1/models",
            "/v1/models/{name}",
            "/v1/responses",
            "/v1/runs",
            "/v1/runs/{run}",
            "/v1/runs/{run}/events",
            "/v1/runs/{run}/journal",
        ]
    );
    let chat = &description["paths"]["/v1/chat/completions"]["post"];
    assert!(chat["responses"]["429"].is_object() && chat["requestBody"].is_object(), "{chat}");
    let page = &description["paths"]["/v1/runs"]["get"]["parameters"];
    assert_eq!((&page[0]["name"], &page[0]["in"]), (&json!("limit"), &json!("query")), "{page}");
    assert!(
        description["security"].is_array()
            && description["paths"]["/health"]["get"]["security"] == json!([{}])
    );
}

/// A failure after the beginning of a stream is an event of that stream.
#[test]
fn stream_reports_failure_in_its_form() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--mock", "--answer", "4", "--max-tokens-total", "10"]);
    let json = ["Content-Type: application/json"];
    let ask = json!({"model": "solver_checker", "input": "How much is 2+2?"});
    let whole = served.ask("POST /v1/responses", &json, &ask.to_string());
    assert_eq!(
        (whole.status, &whole.json()["error"]["code"]),
        (400, &json!("budget")),
        "no call fits the limit"
    );
    let mut streamed = ask.clone();
    streamed["stream"] = true.into();
    let events = events(&served.ask("POST /v1/responses", &json, &streamed.to_string()).body);
    let last = &events[events.len() - 1];
    assert_eq!((&last["type"], &last["response"]["status"]), (&json!("response.failed"), &json!("failed")));
    let mut chat = body("solver_checker", "How much is 2+2?");
    chat["stream"] = true.into();
    let events = served.chat(&[], &chat).events();
    assert_eq!(events[events.len() - 1]["error"]["code"], "budget");
}
