//! The check of a program: it is run, and the value that it prints is its author's answer.
//!
//! The input is a reply with a program, and the result of the program once it has run. The output is an accepted envelope or a
//! [`Violation`]. The prompt says that the printed value is the final answer, so the program is its author's declaration. The envelope around the value is written here, for the peer and for the record of positions; it adds nothing to the value.

use super::check::{Accepted, ReplyCheck, fill_in};
use crate::text::{Artifact, Envelope, FinalText, SOLVED_MARKER, Status, StrictValue, Violation};
use crate::turn::{ProgramAnswer, Valid, program_answer};

impl ReplyCheck<'_> {
    /// Checks the program in a reply, and the value that it prints.
    pub(super) fn check_program(&self, reply: &str) -> Result<Valid<Box<Accepted>>, Violation> {
        let ProgramAnswer { source, text } = program_answer(reply, &self.setup.canonical, self.executions)?;
        let answer = self.typed(&FinalText::from(text.as_str()))?;
        self.check_rules(&answer)?;
        let mut envelope = self.enveloped(&source);
        fill_in(&mut envelope, &answer)?;
        let content = Box::new(Accepted { envelope, answer: Some(answer), adopts: None });
        Ok(Valid { content, object: reply.to_owned() })
    }

    fn enveloped(&self, source: &str) -> Envelope {
        let own = &self.setup.agents[self.agent];
        let content = serde_json::json!({ "program": source });
        Envelope {
            role: own.name.clone(),
            domain: own.domain.clone(),
            task_understanding: String::new(),
            meta: None,
            public_message: format!("{SOLVED_MARKER} My program prints this."),
            artifact: Artifact { kind: "results".to_owned(), content: StrictValue(content) },
            needs_from_peer: Vec::new(),
            handoff_to: String::new(),
            tags: Vec::new(),
            request: None,
            status: Status::Solved,
            final_solution: None,
        }
    }
}
