//! The interpreter in this program, as the process that runs one program of a model uses it.
//!
//! The input is a program in Python and its limits. The output is what it printed, and how it ended. The interpreter has no way to a
//! file, a variable or the network, and the process around it has built a wall before the program is read. Its results are the same on
//! every machine, except where a limit of time or memory cuts a program off.

use std::time::Duration;

use monty::MontyRun;
use monty_types::{CompileOptions, ExcType, MontyException, PrintWriter, ResourceLimits, ResourceTracker};

use super::exits::restate_exits;
use protocol::core::CommandEnd;

/// The name and the version of the interpreter, for records. The number after `+` changes with what is done to a program
/// before it is run.
pub(super) const NAME: &str = "monty";
pub(super) const VERSION: &str = "0.0.23+1";

/// Runs a program. Returns what it printed, at most `output_max` bytes, and how it ended.
pub fn interpret(source: &str, time_max: Duration, output_max: usize) -> (String, CommandEnd) {
    let mut printed = String::new();
    let limits = ResourceLimits { max_duration: Some(time_max), ..ResourceLimits::default() };
    let program = MontyRun::new(restate_exits(source), "program.py", Vec::new(), CompileOptions::default());
    let ended = program.and_then(|program| {
        let out = PrintWriter::CollectString(&mut printed, Some(output_max));
        program.run(Vec::new(), ResourceTracker::new(limits), out)
    });
    let end = match ended {
        Ok(_) => CommandEnd::Exit(0),
        Err(why) => report_failure(&why, &mut printed, output_max),
    };
    (printed, end)
}

/// Returns how a program failed, and adds the error to what it printed.
fn report_failure(why: &MontyException, printed: &mut String, output_max: usize) -> CommandEnd {
    let message = why.message().unwrap_or_default();
    if why.exc_type() == ExcType::TimeoutError && message.starts_with("time limit exceeded") {
        return CommandEnd::Time;
    }
    if why.exc_type() == ExcType::MemoryError && message.starts_with("memory limit exceeded") {
        return CommandEnd::Output;
    }
    // A program may leave as a command does. A code in this place is a text, which stands for a failure.
    if why.exc_type() == ExcType::SystemExit && why.message().is_none() {
        return CommandEnd::Exit(0);
    }
    let summary = format!("{}\n", why.summary());
    if printed.len() + summary.len() <= output_max {
        printed.push_str(&summary);
    }
    CommandEnd::Exit(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(source: &str) -> (String, CommandEnd) {
        interpret(source, Duration::from_secs(2), 4096)
    }

    #[test]
    fn a_program_prints_its_answer() {
        assert_eq!(
            run("def solution():\n    return 3 * 16\nprint(solution())\n"),
            ("48\n".to_owned(), CommandEnd::Exit(0))
        );
        let (printed, end) = run("print(1)\nprint(1 / 0)\n");
        assert_eq!(
            (printed.as_str(), end),
            ("1\nZeroDivisionError: division by zero\n", CommandEnd::Exit(1))
        );
        assert_eq!(run("x = (").1, CommandEnd::Exit(1));
    }

    /// A program may end itself with the code 0 or without a code, and its output counts.
    #[test]
    fn a_program_ends_itself_well() {
        for exit in
            ["raise SystemExit(0)", "raise SystemExit()", "raise SystemExit", "exit()", "exit(0)", "quit()"]
        {
            assert_eq!(
                run(&format!("print(4 * 12)\n{exit}\n")),
                ("48\n".to_owned(), CommandEnd::Exit(0)),
                "{exit}"
            );
        }
        let guarded = "import sys\ndef main():\n    print(4 * 12)\n    sys.exit(0)\n    print(1)\nif __name__ == '__main__':\n    main()\n";
        assert_eq!(run(guarded), ("48\n".to_owned(), CommandEnd::Exit(0)));
        for exit in [
            "raise SystemExit(1)",
            "raise SystemExit('0')",
            "raise SystemExit('')",
            "exit(1)",
            "quit('no')",
            "sys.exit(0)",
            "import sys\nsys.exit(2)",
        ] {
            assert_eq!(run(&format!("print(4 * 12)\n{exit}\n")).1, CommandEnd::Exit(1), "{exit}");
        }
        // The program means a function of its own.
        let own = "def exit():\n    print(6 * 7)\nexit()\n";
        assert_eq!(run(own), ("42\n".to_owned(), CommandEnd::Exit(0)));
    }

    #[test]
    fn nothing_runs_or_prints_without_end() {
        assert_eq!(interpret("while True:\n    pass\n", Duration::from_millis(50), 4096).1, CommandEnd::Time);
        assert_eq!(run("while True:\n    print('x' * 100)\n").1, CommandEnd::Output);
        assert_eq!(run("def f():\n    return f()\nprint(f())\n").1, CommandEnd::Exit(1));
    }

    #[test]
    fn there_is_no_way_out() {
        for source in [
            "print(open('/etc/passwd').read())",
            "import os\nprint(os.environ)",
            "import socket\nprint(socket.socket())",
            "import subprocess\nprint(subprocess.run(['id']))",
            "print(__import__('os').listdir('/'))",
            "from pathlib import Path\nprint(Path('/etc/passwd').read_text())",
        ] {
            assert_ne!(run(source).1, CommandEnd::Exit(0), "{source}");
        }
    }
}
