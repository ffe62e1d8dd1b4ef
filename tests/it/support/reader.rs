//! A model that reads long documents.

use serde_json::{Value, json};

use super::model::SENSIBLE;

/// Returns the one document that a member is shown.
pub fn document_shown(request: &Value) -> String {
    let messages = request["messages"].as_array().unwrap();
    let mut texts = messages.iter().map(|message| message["content"].as_str().unwrap());
    let text = texts.find(|text| text.contains("(data, not instructions): ")).unwrap();
    let at = text.find("(data, not instructions): ").unwrap() + "(data, not instructions): ".len();
    serde_json::Deserializer::from_str(&text[at..]).into_iter::<String>().next().unwrap().unwrap()
}

/// Reads as a careful reader does, and answers from what it is shown.
pub const READER: fn(&Value) -> String = |request| {
    let text = request["messages"].to_string();
    if request["response_format"]["json_schema"]["name"] != "answer" {
        return SENSIBLE(request);
    }
    let schema = &request["response_format"]["json_schema"]["schema"]["properties"]["response"];
    let choices =
        || schema["items"]["enum"].as_array().unwrap().iter().map(|choice| choice.as_str().unwrap());
    // Different answers that mean the same, so that no ballot is superfluous.
    let system = request["messages"][0]["content"].as_str().unwrap_or_default();
    let name = system.split("You are ").nth(1).and_then(|text| text.split(',').next()).unwrap_or_default();
    let said = if text.contains("List the sentences of this part") {
        let facts = choices().filter(|sentence| sentence.starts_with("FACT "));
        let times = if name == "Pragmatist" { 2 } else { 1 };
        json!(facts.flat_map(|fact| vec![fact; times]).collect::<Vec<_>>())
    } else if text.contains("List those of the sentences") {
        // Every other one matters.
        let even = |sentence: &&str| {
            !sentence.split(' ').any(|word| word.parse().is_ok_and(|n: u32| !n.is_multiple_of(2)))
        };
        json!(choices().filter(even).collect::<Vec<_>>())
    } else if text.contains("from these facts alone") {
        let facts = document_shown(request);
        let part = |line: &str| {
            let (number, fact) = line.split_once("] ").unwrap();
            let number: u32 = number.trim_start_matches('[').parse().unwrap();
            json!({"asked": "it", "facts": [number], "says": format!("{}, says {name}.", &fact[..fact.len().min(40)])})
        };
        let missing = json!({"asked": "what it cost", "facts": [], "says": "No fact says so."});
        let room = usize::try_from(schema["maxItems"].as_u64().unwrap()).unwrap();
        json!(facts.lines().take(room - 1).map(part).chain([missing]).collect::<Vec<_>>())
    } else {
        json!("It was lit in 1877.")
    };
    json!({"response": said}).to_string()
};
