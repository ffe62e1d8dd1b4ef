//! What a folder that came from elsewhere cannot do by the names in it: rolesets, packs, and models.

use consensus::config::EMBEDDED_ROLESETS;

use super::untrusted_folder::{cloned, visitor};
use crate::support::{Finished, Folder, consensus};

#[test]
fn pack_link_out_of_folder_is_refused() {
    let folder = Folder::new();
    let secret = folder.write("elsewhere/secret.txt", "root:x:0:0");
    let project = folder.path().join("project");
    folder.write(
        "project/rolesets/mine.json",
        EMBEDDED_ROLESETS.iter().find(|(name, _)| *name == "solver_checker.json").unwrap().1,
    );
    folder.write("project/rolesets/packs/checker.md", "You check sums.");
    std::os::unix::fs::symlink(&secret, project.join("rolesets/packs/solver.md")).unwrap();
    let words = ["run", "--mock", "--answer", "4", "--roleset", "mine", "--prompt", "2+2?"];
    let refused = Finished::of(consensus(&folder).current_dir(&project).args(words)).exits(2);
    assert!(refused.stderr.contains("leads out of this folder"), "{}", refused.stderr);
    assert!(!project.join("runs").exists());
    // The same for a roleset, and for the folder of all of them.
    std::fs::remove_file(project.join("rolesets/packs/solver.md")).unwrap();
    folder.write("project/rolesets/packs/solver.md", "You add numbers.");
    Finished::of(consensus(&folder).current_dir(&project).args(words)).exits(0);
    std::fs::rename(project.join("rolesets"), folder.path().join("elsewhere/rolesets")).unwrap();
    std::os::unix::fs::symlink("../elsewhere/rolesets", project.join("rolesets")).unwrap();
    Finished::of(consensus(&folder).current_dir(&project).args(words)).exits(2);
    // A folder that the user names is the user's choice.
    let named = ["--rolesets-dir", "../elsewhere/rolesets"];
    Finished::of(consensus(&folder).current_dir(&project).args(words).args(named)).exits(0);
}

/// A folder's model at a public server needs trust, unless the user's own file calls that server too.
#[test]
fn public_model_needs_trust() {
    let elsewhere = "model = \"openai:gpt-4o\"\n";
    let folder = cloned(elsewhere);
    let run = ["run", "--mock", "--answer", "4", "--prompt", "x"];
    let refused = Finished::of(&mut visitor(&folder, &run)).exits(2);
    assert!(refused.stderr.contains("consensus.toml:1: model = \"openai:gpt-4o\""), "{}", refused.stderr);
    // It is the user's own server then.
    folder.write("config/consensus/config.toml", "model = \"openai:gpt-4o-mini\"\n");
    Finished::of(&mut visitor(&folder, &run)).exits(0);
    for near in ["vllm:m", "ollama:llama3.1:8b", "gpt-4o", "llama3.1:8b"] {
        Finished::of(&mut visitor(&cloned(&format!("model = \"{near}\"\n")), &run)).exits(0);
    }
}

#[test]
fn roleset_naming_public_server_needs_trust() {
    let folder = cloned("");
    let roleset = EMBEDDED_ROLESETS.iter().find(|(name, _)| *name == "solver_checker.json").unwrap().1;
    let elsewhere = roleset.replace("\"solver.md\"", "\"solver.md\", \"model\": \"openrouter:evil/model\"");
    folder.write("rolesets/mine.json", &elsewhere);
    folder.write("rolesets/packs/solver.md", "Add.");
    folder.write("rolesets/packs/checker.md", "Check.");
    let run = ["run", "--mock", "--answer", "4", "--roleset", "mine", "--prompt", "x"];
    let mine = || consensus(&folder);
    let refused = Finished::of(mine().args(run)).exits(2);
    assert!(
        refused.stderr.contains("rolesets/mine.json: model = \"openrouter:evil/model\""),
        "{}",
        refused.stderr
    );
    Finished::of(mine().arg("trust")).exits(0);
    Finished::of(mine().args(run)).exits(0);
    // The trust is void when the file changes.
    folder.write("rolesets/mine.json", &elsewhere.replace("evil/model", "evil/other"));
    Finished::of(mine().args(run)).exits(2);
}

#[test]
fn model_name_never_runs_as_command() {
    // The user's own command goes through a shell; the model is named by the folder.
    let folder = cloned("model = \"x; echo pwned > pwned ;\"\n");
    folder
        .write("config/consensus/config.toml", "launch = 'sh -c \"echo started {model} {port}; sleep 1\"'\n");
    let refused = Finished::of(&mut visitor(&folder, &["run", "--prompt", "x"])).exits(2);
    assert!(refused.stderr.contains("give {model} a word to itself"), "{}", refused.stderr);
    assert!(!folder.path().join("project/pwned").exists() && !folder.path().join("pwned").exists());
}

#[test]
fn folder_roleset_does_not_replace_default() {
    let folder = cloned("");
    let roleset = EMBEDDED_ROLESETS.iter().find(|(name, _)| *name == "generalist_critic.json").unwrap().1;
    let elsewhere = roleset.replace(
        "\"pack\": \"generalist.md\"",
        "\"pack\": \"generalist.md\", \"model\": \"openrouter:evil/model\"",
    );
    assert_ne!(roleset, elsewhere);
    for place in ["rolesets", "project/rolesets"] {
        folder.write(&format!("{place}/generalist_critic.json"), &elsewhere);
        folder.write(&format!("{place}/packs/generalist.md"), "Answer.");
        folder.write(&format!("{place}/packs/critic.md"), "Answer.");
    }
    let said =
        Finished::of(&mut visitor(&folder, &["run", "--dry-run", "--prompt", "x", "--format", "json"]))
            .exits(0);
    assert!(!said.stdout.contains("openrouter"), "{}", said.stdout);
}

#[test]
fn reading_command_reports_link_out_of_folder() {
    let folder = cloned("");
    std::fs::create_dir_all(folder.path().join("project")).unwrap();
    std::os::unix::fs::symlink("../elsewhere", folder.path().join("project/runs")).unwrap();
    let mut reading = visitor(&folder, &["runs"]);
    let read = Finished::of(reading.current_dir(folder.path().join("project"))).exits(0);
    assert!(read.stderr.contains("runs: a link that leads out of the folder"), "{}", read.stderr);
}

/// Bash is offered no name with characters that it could run, and zsh and fish quote what they insert.
#[test]
fn completion_offers_no_runnable_name() {
    let folder = Folder::new();
    for name in ["team$(touch x)", "a;touch x;", "two words", "osc\u{1b}]0;x\u{7}"] {
        folder.write(&format!("rolesets/{name}.json"), "{}");
        folder.write(&format!("notes/{name}"), "");
    }
    folder.write("rolesets/plain.json", "{}");
    folder.write("notes/plain.txt", "");
    let offered = |shell: &str, words: &[&str]| {
        let mut command = consensus(&folder);
        command.env("CONSENSUS_COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", (words.len()).to_string());
        command.env("_CLAP_COMPLETE_COMP_TYPE", "9").args(["--", "consensus"]).args(words);
        Finished::of(&mut command).exits(0).stdout
    };
    for words in [["run", "--roleset", ""], ["run", "--file", "notes/"]] {
        let bash = offered("bash", &words);
        assert!(bash.contains("plain") && !bash.contains([';', '$', ' ', '\u{1b}']), "{bash:?}");
        // These quote what they insert, and cannot be acted on.
        for shell in ["zsh", "fish"] {
            let offered = offered(shell, &words);
            assert!(offered.contains("two words") && !offered.contains('\u{1b}'), "{shell}: {offered:?}");
        }
    }
}

#[test]
fn manual_pages_and_bundles_follow_no_link() {
    let folder = Folder::new();
    let private = folder.write("private.txt", "mine");
    std::fs::create_dir(folder.path().join("man")).unwrap();
    std::os::unix::fs::symlink(&private, folder.path().join("man/consensus.1")).unwrap();
    let refused = Finished::of(consensus(&folder).args(["man", "--output", "man"])).exits(1).stderr;
    assert!(refused.contains("man/consensus.1") && refused.contains("is a link"), "{refused}");
    Finished::of(consensus(&folder).args(["run", "--mock", "--answer", "4", "2+2 is?"])).exits(0);
    std::fs::remove_file(folder.run().join("transcript.md")).unwrap();
    std::os::unix::fs::symlink(&private, folder.run().join("transcript.md")).unwrap();
    let export = ["export", folder.run().to_str().unwrap(), "--bundle", "out.tar.gz"].map(str::to_owned);
    let refused = Finished::of(consensus(&folder).args(export)).exits(2).stderr;
    assert!(refused.contains("transcript.md") && refused.contains("is a link"), "{refused}");
    assert_eq!(std::fs::read_to_string(private).unwrap(), "mine");
}

/// A terminal gets escape characters in readable form, and a program gets the answer as it is.
#[test]
fn terminal_escapes_are_shown_escaped() {
    let folder = Folder::new();
    let answer = "red \u{1b}[31m \u{200e}text";
    let finished =
        Finished::of(consensus(&folder).args(["run", "--mock", "--task", "x", "--answer", answer])).exits(0);
    assert_eq!(finished.stdout, format!("{answer}\n"), "a program gets the text as it is");
    let mut script = std::process::Command::new("script");
    let inside = format!("{} show --replay -q --last", env!("CARGO_BIN_EXE_consensus"));
    let on_terminal =
        Finished::of(script.args(["-qec", &inside, "/dev/null"]).current_dir(folder.path())).exits(0);
    assert_eq!(on_terminal.stdout.trim(), "red \\u001b[31m \\u200etext");
    let shown = Finished::of(consensus(&folder).args(["show", "--full", "--last"])).exits(0);
    assert!(!shown.stdout.contains('\u{1b}') && !finished.stderr.contains('\u{1b}'));
}
