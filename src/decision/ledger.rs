//! The ledger: every decision of a repository under one roster, append-only and hash-chained.
//!
//! A case is opened with all that its decision follows from, before anything is signed; it is decided, and closed with what
//! became of it. One case is under way at a time. Whoever opens a ledger whose last case is open goes on where it ends.
//!
//! A ledger is where the keys are: whoever has them has signed what is in it, in whatever copy of the repository. Those who
//! sit together in one process have one; where each has a process, the one who proposes has another, and each its own log.
//! The same keys never do both, since neither knows what was signed in the other.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::error::DecisionError;
use super::keys::{KeyFolder, ORCHESTRATOR};
use super::proposal::Proposal;
use super::record::{Record, Verified};
use crate::crypto::{Digest, Signature};
use crate::journal::{Record as Line, Writer};
use crate::protocol::approval::court::{Court, Ruling};
use crate::protocol::approval::{Opinion, Proof, Registry, Seal, Sequence};
use crate::repository::{Mark, Oid};

/// What is wrong with a record that is not of the open case.
const OTHER_CASE: &str = "it decides on what was not opened";

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

/// Where those who take part are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sitting {
    /// All are in this process.
    Together,
    /// Each is in a process of its own.
    Apart,
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
    /// The decisions so far.
    proofs: Vec<(Sequence, Proof<Signature>)>,
    case: Option<Case>,
}

impl Case {
    /// The SHA-256 of what is decided on.
    #[must_use]
    pub fn change(&self) -> Digest {
        Digest::of(self.change.as_bytes())
    }

    /// Whether a record is of this case. Those who sit apart may have decided on nothing in between, more than once.
    fn fits(&self, record: &Record) -> bool {
        self.sequence <= record.sequence && self.change == record.change && self.decided.is_none()
    }

    /// What each reviewer thinks of it, if they sit together.
    #[must_use]
    pub fn opinions(&self) -> &[Opinion] {
        &self.opinions
    }
}

impl Ledger {
    /// Opens the ledger of these keys for a repository, or makes one; every decision in it is verified.
    ///
    /// A key that is copied without its ledger could sign something else at the same place.
    ///
    /// # Errors
    ///
    /// [`DecisionError`] if it is in use, does not verify, or the keys sit otherwise.
    pub fn open(registry: &Arc<Registry>, keys: &KeyFolder, sitting: Sitting) -> Result<Self, DecisionError> {
        // Whoever has no keys leaves no ledger.
        match sitting {
            Sitting::Together => _ = keys.seals(registry)?,
            Sitting::Apart => _ = keys.apart_as(ORCHESTRATOR, registry)?,
        }
        let place = || match sitting {
            Sitting::Together => keys.together(registry),
            Sitting::Apart => keys.apart(registry),
        };
        let (writer, lines) = Writer::open::<Entry>(&place()?, &registry.chain().to_string())?;
        // Somebody may have begun otherwise meanwhile: whoever comes second sees it.
        place()?;
        let name = KeyFolder::ledger_name(registry);
        let mut ledger =
            Self { name, writer, registry: Arc::clone(registry), proofs: Vec::new(), case: None };
        for line in lines {
            let number = line.seq + 1;
            ledger
                .follow(line)
                .map_err(|why| DecisionError::Ledger { line: number, why: why.to_string() })?;
        }
        Ok(ledger)
    }

    /// All parties in this process, who know of every decision so far.
    ///
    /// # Errors
    ///
    /// [`DecisionError`] if a key is missing, or they cannot have decided what is in here.
    pub fn court(&self, keys: &KeyFolder) -> Result<Court<Seal>, DecisionError> {
        let (orchestrator, reviewers) = keys.seals(&self.registry)?;
        let mut court = Court::new(self.registry.quorum(), orchestrator, reviewers);
        for (sequence, proof) in &self.proofs {
            court.recall(*sequence, proof)?;
        }
        Ok(court)
    }

    /// The decision that is under way.
    #[must_use]
    pub fn case(&self) -> Option<&Case> {
        self.case.as_ref()
    }

    /// The mark of the decision that comes next. Where it is in a repository, this ledger is an older copy of another one.
    #[must_use]
    pub fn next_mark(&self) -> Mark {
        Mark::of(&self.name, self.next())
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

    /// The place of the next decision, at the earliest.
    fn next(&self) -> Sequence {
        self.proofs.last().map_or(0, |(sequence, _)| *sequence) + 1
    }

    /// Opens a case: what each reviewer thinks of a change, as a run has it; nothing yet, if they sit apart.
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
            sequence: self.next(),
            run: run.to_owned(),
            change,
            opinions,
        };
        self.write(Entry::Opened(Box::new(opened)))
    }

    /// The open case and what was decided on it, if that is in here.
    ///
    /// # Errors
    ///
    /// [`DecisionError::Idle`] if no case is open.
    pub fn decision(&self) -> Result<(Case, Option<Decided>), DecisionError> {
        let case = self.case.clone().ok_or(DecisionError::Idle)?;
        let decided = case.decided.clone();
        Ok((case, decided))
    }

    /// Takes what was decided on the open case.
    ///
    /// # Errors
    ///
    /// [`DecisionError`] if it does not verify, or is on something else.
    pub fn decided(&mut self, ruling: &Ruling<Signature>) -> Result<Decided, DecisionError> {
        let case = self.case.as_ref().ok_or(DecisionError::Idle)?;
        let record = Record::new(&self.registry, &case.change, ruling);
        record.check(&self.registry)?;
        // What would not be taken when it is read must not be written.
        if !case.fits(&record) {
            return Err(DecisionError::NotProven(OTHER_CASE.to_owned()));
        }
        self.write(Entry::Decided { record: Box::new(record) })?;
        self.decision()?.1.ok_or(DecisionError::Idle)
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
                if sequence != self.next() {
                    return Err(wrong("it is not the next decision"));
                }
                let proposal = Proposal::read(&change)?;
                self.case = Some(Case { sequence, run, proposal, change, opinions, decided: None });
                Ok(())
            }
            Entry::Decided { record } => {
                let (verified, proof) = record.check(&self.registry)?;
                let case = self.case.as_mut().filter(|case| case.fits(&record));
                let case = case.ok_or_else(|| wrong(OTHER_CASE))?;
                case.sequence = record.sequence;
                self.proofs.push((record.sequence, proof));
                case.decided = Some(Decided { record: *record, verified });
                Ok(())
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
}
