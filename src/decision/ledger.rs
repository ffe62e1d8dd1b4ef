//! The ledger: every decision of a repository under one roster, append-only and hash-chained.
//!
//! A case is opened with all that its decision follows from, before anything is signed; it is decided, and closed with what
//! became of it. One case is under way at a time. Whoever opens a ledger whose last case is open goes on where it ends.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::error::DecisionError;
use super::keys::KeyFolder;
use super::proposal::Proposal;
use super::record::{Record, Verified};
use crate::crypto::Digest;
use crate::journal::{Record as Line, Writer};
use crate::protocol::approval::court::Court;
use crate::protocol::approval::{Opinion, Registry, Seal, Sequence, Vote};
use crate::repository::{Mark, Oid};

/// What happened.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Entry {
    /// A change is to be decided on.
    Opened(Box<Opened>),
    /// It was.
    Decided { record: Box<Record> },
    /// What became of it.
    Closed { sequence: Sequence, ended: Ended },
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
struct Opened {
    program: String,
    sequence: Sequence,
    /// The run in which it was reviewed.
    run: String,
    change: String,
    opinions: Vec<Opinion>,
}

/// What became of a change.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "ended", rename_all = "snake_case", deny_unknown_fields)]
pub enum Ended {
    /// It is on its branch.
    Landed {
        /// By this commit.
        commit: Oid,
    },
    /// It was approved, and is not on its branch.
    NotLanded {
        /// Why.
        why: String,
    },
    /// It was not approved.
    Rejected,
}

/// A decision that is under way.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its place.
    pub sequence: Sequence,
    /// The run in which it was reviewed.
    pub run: String,
    /// What is decided on.
    pub proposal: Proposal,
    change: String,
    opinions: Vec<Opinion>,
    decided: Option<Decided>,
}

/// What was decided, with its proof, and what that proves.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The proof.
    pub record: Record,
    /// What it proves.
    pub verified: Verified,
}

/// The ledger of a repository's decisions.
#[derive(Debug)]
pub struct Ledger {
    name: String,
    writer: Writer,
    registry: Arc<Registry>,
    court: Court<Seal>,
    case: Option<Case>,
}

impl Case {
    /// Who approves, by name.
    #[must_use]
    pub fn approvers<'a>(&self, registry: &'a Registry) -> Vec<&'a str> {
        let seats = registry.roster().reviewers.iter().zip(&self.opinions);
        seats
            .filter(|(_, opinion)| opinion.vote() == Vote::Approve)
            .map(|(seat, _)| seat.name.as_str())
            .collect()
    }

    /// The SHA-256 of what is decided on.
    #[must_use]
    pub fn change(&self) -> Digest {
        Digest::of(self.change.as_bytes())
    }
}

impl Ledger {
    /// Opens the ledger of these keys for a repository, or makes one; every decision in it is verified.
    ///
    /// It is where the keys are: whoever has them has signed what is in it, in whatever copy of the repository. A key that is
    /// copied without its ledger could sign something else at the same place.
    ///
    /// # Errors
    ///
    /// [`DecisionError`] if it is in use, does not verify, or a key is missing.
    pub fn open(registry: &Arc<Registry>, keys: &KeyFolder) -> Result<Self, DecisionError> {
        let (orchestrator, reviewers) = keys.seals(registry)?;
        let court = Court::new(registry.quorum(), orchestrator, reviewers);
        let name: String = Digest::of(format!("{}\n{}\n", registry.chain(), registry.digest()).as_bytes())
            .to_string()
            .chars()
            .take(16)
            .collect();
        let folder = keys.decisions().join(&name);
        let (writer, lines) = Writer::open::<Entry>(&folder, &registry.chain().to_string())?;
        let mut ledger = Self { name, writer, registry: Arc::clone(registry), court, case: None };
        for line in lines {
            let number = line.seq + 1;
            ledger
                .follow(line)
                .map_err(|why| DecisionError::Ledger { line: number, why: why.to_string() })?;
        }
        Ok(ledger)
    }

    /// The decision that is under way.
    #[must_use]
    pub fn case(&self) -> Option<&Case> {
        self.case.as_ref()
    }

    /// The mark of the decision that comes next. Where it is in a repository, this ledger is an older copy of another one.
    #[must_use]
    pub fn next_mark(&self) -> Mark {
        Mark::of(&self.name, self.court.next())
    }

    /// By what it is told from other ledgers of a repository.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Who takes part.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Opens a case: what each reviewer thinks of a change, as a run has it.
    ///
    /// # Errors
    ///
    /// [`DecisionError::UnderWay`] if one is open.
    pub fn begin(
        &mut self,
        proposal: &Proposal,
        opinions: Vec<Opinion>,
        run: &str,
    ) -> Result<(), DecisionError> {
        self.is_idle()?;
        let change = proposal.change()?.text().to_owned();
        let opened = Opened {
            program: crate::engine::PROGRAM.to_owned(),
            sequence: self.court.next(),
            run: run.to_owned(),
            change,
            opinions,
        };
        self.write(Entry::Opened(Box::new(opened)))
    }

    /// Lets the reviewers decide on the open case; the same again, if that was begun before.
    ///
    /// # Errors
    ///
    /// [`DecisionError`].
    pub fn decide(&mut self) -> Result<(Case, Decided), DecisionError> {
        let case = self.case.clone().ok_or(DecisionError::Idle)?;
        if let Some(decided) = case.decided.clone() {
            return Ok((case, decided));
        }
        let ruling = self.court.decide(case.proposal.change()?, case.opinions.clone())?;
        let record = Record::new(&self.registry, &case.change, &ruling);
        let (verified, _) = record.check(&self.registry)?;
        self.append(Entry::Decided { record: Box::new(record.clone()) })?;
        // The court knows it already.
        let decided = Decided { record, verified };
        self.decided(decided.clone())?;
        Ok((case, decided))
    }

    /// Closes the open case, which was decided.
    ///
    /// # Errors
    ///
    /// [`DecisionError`].
    pub fn close(&mut self, ended: Ended) -> Result<(), DecisionError> {
        let sequence = self.case.as_ref().ok_or(DecisionError::Idle)?.sequence;
        self.write(Entry::Closed { sequence, ended })
    }

    fn write(&mut self, entry: Entry) -> Result<(), DecisionError> {
        let line = self.append(entry)?;
        self.follow(line)
    }

    fn append(&mut self, entry: Entry) -> Result<Line<Entry>, DecisionError> {
        let line = self.writer.append(entry)?;
        self.writer.sync()?;
        Ok(line)
    }

    fn is_idle(&self) -> Result<(), DecisionError> {
        self.case.as_ref().map_or(Ok(()), |case| Err(DecisionError::UnderWay(case.sequence)))
    }

    /// Takes what a line says.
    fn follow(&mut self, line: Line<Entry>) -> Result<(), DecisionError> {
        let wrong = |why: &str| DecisionError::NotProven(why.to_owned());
        if line.run != self.registry.chain().to_string() {
            return Err(wrong("it is of another repository"));
        }
        match line.event {
            Entry::Opened(opened) => {
                self.is_idle()?;
                let Opened { sequence, run, change, opinions, .. } = *opened;
                // It becomes a part of a path.
                uuid::Uuid::parse_str(&run).map_err(|_| wrong("its run has no id"))?;
                if sequence != self.court.next() {
                    return Err(wrong("it is not the next decision"));
                }
                let proposal = Proposal::read(&change)?;
                self.case = Some(Case { sequence, run, proposal, change, opinions, decided: None });
                Ok(())
            }
            Entry::Decided { record } => {
                let (verified, proof) = record.check(&self.registry)?;
                self.court.recall(record.sequence, &proof)?;
                self.decided(Decided { record: *record, verified })
            }
            Entry::Closed { sequence, .. } => {
                let is_it = |case: &Case| case.sequence == sequence && case.decided.is_some();
                if !self.case.as_ref().is_some_and(is_it) {
                    return Err(wrong("it closes what was not decided"));
                }
                self.case = None;
                Ok(())
            }
        }
    }

    fn decided(&mut self, decided: Decided) -> Result<(), DecisionError> {
        let record = &decided.record;
        let fits = |case: &&mut Case| case.sequence == record.sequence && case.change == record.change;
        let case = self.case.as_mut().filter(fits).ok_or(DecisionError::Idle)?;
        case.decided = Some(decided);
        Ok(())
    }
}
