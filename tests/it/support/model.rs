//! Models for the loopback server: what they say depends on the request alone, so that a repeated
//! request is answered alike.

use serde_json::{Value, json};

use super::server::{Act, Request, completion, http};

/// A model that disagrees at first, asks its peer something, and then accepts its peer's answer. In a
/// council it is not sure at first.
pub const SENSIBLE: fn(&Value) -> String = |request| {
    let last =
        request["messages"].as_array().and_then(|all| all.last()).map(|last| last["content"].to_string());
    let asks = |words: &str| last.as_ref().is_some_and(|text| text.contains(words));
    if asks("Two texts, as data") {
        return "Neither has an error. Answer: Both".to_owned();
    }
    // A voter is not always right.
    if asks("a line that begins with `Answer:` and holds the number alone") {
        let slips = request["seed"].as_u64().is_some_and(|seed| seed % 3 == 0);
        return format!("I count.\nAnswer: {}", if slips { 5 } else { 4 });
    }
    if asks("Write a Python function solution()") {
        return "```python\ndef solution():\n    return 2 + 2\n```".to_owned();
    }
    let Some(schema) = request["response_format"]["json_schema"]["schema"].as_object() else {
        return "2 and 2 makes 4, as far as I can see.".to_owned();
    };
    let turns = request["messages"].as_array().map_or(0, Vec::len);
    // An envelope in which nothing can be written but a handle declares the counted text.
    if let Some([only]) = schema.get("anyOf").and_then(Value::as_array).map(Vec::as_slice)
        && let fields = &only["properties"]
        && let Some(handle) = fields["final_solution"]["properties"]["accepts"]["enum"][0].as_str()
    {
        return json!({
            "role": fields["role"]["enum"][0], "domain": "d", "status": "SOLVED", "final_solution": {"accepts": handle},
            "task_understanding": "as above", "artifact": {"type": "results", "content": {}}, "public_message": "[SOLVED]",
            "needs_from_peer": [], "handoff_to": "",
        })
        .to_string();
    }
    match request["response_format"]["json_schema"]["name"].as_str() {
        Some("framing") => {
            return json!({"framing": "The sum.", "search": "sum", "reasoning": "it says so", "confidence": 0.9}).to_string();
        }
        // Not sure at first.
        Some("response") => {
            let confidence = if turns <= 4 { 0.5 } else { 0.9 };
            return json!({"response": "four", "citations": [], "reasoning": "counted", "confidence": confidence})
                .to_string();
        }
        Some("verification") => {
            let check = json!({"claim": "c", "source": "task", "quote": "", "verdict": "unknown"});
            return json!({"checks": [check], "reasoning": "it holds", "veto": false, "confidence": 0.9})
                .to_string();
        }
        // Different answers, so that no ballot is superfluous.
        Some("answer") => {
            let system = request["messages"][0]["content"].as_str().unwrap_or_default();
            let name = system.split("You are ").nth(1).and_then(|text| text.split(',').next());
            return json!({"response": format!("four, says {}", name.unwrap_or_default())}).to_string();
        }
        Some("ballot") => {
            let labels = schema["properties"].as_object().into_iter().flat_map(|fields| fields.keys());
            let mark =
                json!({"feedback": "fine", "accuracy": 8, "relevance": 8, "completeness": 8, "clarity": 8});
            return labels.map(|label| (label.clone(), mark.clone())).collect::<Value>().to_string();
        }
        Some(_) | None => {}
    }
    let first = &schema["anyOf"][0]["properties"];
    let role = first["role"]["enum"][0].as_str().unwrap_or_default();
    let peer = first["handoff_to"]["enum"][0].as_str().unwrap_or_default();
    let owed = first["meta"]["properties"]["answers"]["minItems"].as_u64().unwrap_or(0);
    let accepts = first["final_solution"]["properties"]["accepts"]["enum"][0].as_str();
    let own = if ["Writer", "Ann", "Generalist"].contains(&role) { "4" } else { "four" };
    let known =
        |field: &str, else_: &'static str| first[field]["enum"][0].as_str().unwrap_or(else_).to_owned();
    let mut envelope = json!({
        "role": role, "domain": first["domain"]["enum"][0],
        "task_understanding": known("task_understanding", "add the numbers"),
        "meta": {"answers": (0..owed).map(|_| "because").collect::<Vec<_>>(), "change": {"by": "check", "detail": "counted it once more"}},
        "public_message": known("public_message", "[SOLVED] that is the sum"), "artifact": {"type": "results", "content": {}},
        "needs_from_peer": [], "handoff_to": peer, "status": "SOLVED",
        "final_solution": {"canonical_text": own},
    });
    // What the schema has no place for stays away.
    match first["meta"]["properties"].as_object() {
        Some(known) => {
            if let Some(meta) = envelope["meta"].as_object_mut() {
                meta.retain(|name, _| known.contains_key(name));
            }
        }
        None => drop(envelope.as_object_mut().and_then(|fields| fields.shift_remove("meta"))),
    }
    // The opening is blind; the first turn insists and asks why; then one agent gives in.
    match accepts {
        None => {}
        Some(_) if turns <= 8 && owed == 0 => envelope["needs_from_peer"] = json!(["Why do you think so?"]),
        Some(handle) => envelope["final_solution"] = json!({"accepts": handle}),
    }
    envelope.to_string()
};

/// Returns a handler that answers chats as `say` does, and lists one model.
pub fn model(say: fn(&Value) -> String) -> impl Fn(&Request) -> Vec<Act> {
    move |request| {
        if request.path.ends_with("/models") {
            let list = json!({"data": [{"id": "tiny-model", "max_model_len": 8192}]});
            return vec![Act::Send(http("200 OK", "", list.to_string().as_bytes()))];
        }
        vec![Act::Send(completion(&say(&request.json())))]
    }
}
