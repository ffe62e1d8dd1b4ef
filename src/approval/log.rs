//! The ledger: every decision of a repository under one roster, append-only and hash-chained.
//!
//! A case is opened with all that its decision follows from, before anything is signed; it is decided, and closed with what
//! became of it. One case is under way at a time. Whoever opens a ledger whose last case is open goes on where it ends.
//!
//! A ledger is where the keys are: whoever has them has signed what is in it, in whatever copy of the repository. Those who
//! sit together in one process have one; where each has a process, the one who proposes has another, and each its own log.
//! The same keys never do both, since neither knows what was signed in the other.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::decision_error::DecisionError;
use super::history::{Beside, LandedDecision, LedgerMatch, compare, told};
use super::keys::{KeyFolder, ORCHESTRATOR};
use super::proposal::Proposal;
use super::record::{DecisionRecord, FIRST_FORM, FORM, Verified};
use crate::bft::local_cluster::{DecisionProof, LocalCluster};
use crate::bft::{Membership, ModelAt, ModelOpinion, Opinion, Proof, Seal, Sequence, SignedMessage, Value};
use crate::core::PROGRAM;
use crate::crypto::{Digest, Signature};
use crate::journal::{Record as Line, Writer};
use crate::repository::{LandingMark, Oid, Repository};

/// What is wrong with a record that is not of the open case.
const OTHER_CASE: &str = "it decides on what was not opened";

/// What happened.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Entry {
    /// A change is to be decided on.
    Opened(Box<Opened>),
    /// It was.
    Decided { record: Box<DecisionRecord> },
    /// What became of it.
    Closed { sequence: Sequence, ended: Ended },
    /// Its owner says that decisions below this place, which a branch shows without a roster, were other keys'.
    StartsAt { sequence: Sequence },
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
    /// The model that formed each opinion, and where it was called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    models: Vec<Option<ModelAt>>,
    /// In which form the decision is recorded and landed: what version 0.1 began ends as 0.1 would have ended it.
    #[serde(default = "first_form", skip_serializing_if = "is_first_form")]
    form: u32,
}

fn first_form() -> u32 {
    FIRST_FORM
}

fn is_first_form(form: &u32) -> bool {
    *form == FIRST_FORM
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
    opinions: Vec<ModelOpinion>,
    form: u32,
    decided: Option<Decided>,
}

/// Where those who take part are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Placement {
    /// All are in this process.
    Local,
    /// Each is in a process of its own.
    Distributed,
}

/// What was decided, with its proof, and what that proves.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The proof.
    pub record: DecisionRecord,
    /// What it proves.
    pub verified: Verified,
}

/// The ledger of a repository's decisions.
#[derive(Debug)]
pub struct DecisionLog {
    name: String,
    folder: PathBuf,
    writer: Writer,
    membership: Arc<Membership>,
    /// The decisions so far.
    proofs: Vec<(Sequence, Proof<Signature>)>,
    case: Option<Case>,
    /// The last changes that have landed, the newest last.
    landed: VecDeque<LandedCase>,
    starts_at: Option<Sequence>,
}

/// A change that has landed.
#[derive(Clone, Debug)]
pub struct LandedCase {
    /// What was decided on.
    pub case: Case,
    /// The decision, with its proof.
    pub decided: Decided,
    /// The commit on the branch.
    pub commit: Oid,
}

/// So many changes that have landed are remembered, so that one that is proposed again is known.
const LANDED_MAX: usize = 16;

impl Case {
    /// The SHA-256 of what is decided on.
    #[must_use]
    pub fn change(&self) -> Digest {
        Digest::new(self.change.as_bytes())
    }

    /// Whether a record is of this case. Those who sit apart may have decided on nothing in between, more than once.
    fn fits(&self, record: &DecisionRecord) -> bool {
        let is_of_its_form = self.form <= record.form();
        let is_of_it = self.sequence <= record.sequence && self.change == record.change;
        is_of_it && is_of_its_form && self.decided.is_none()
    }

    /// What each reviewer thinks of it, and on which model, if they sit together.
    #[must_use]
    pub fn opinions(&self) -> &[ModelOpinion] {
        &self.opinions
    }

    /// Whether its commit names the roster; what version 0.1 began does not.
    #[must_use]
    pub fn names_its_roster(&self) -> bool {
        self.form > FIRST_FORM
    }
}

impl Opened {
    /// What each reviewer thinks, with its model, where that was written down.
    fn readings(&self) -> Option<Vec<ModelOpinion>> {
        if self.models.is_empty() {
            return Some(self.opinions.iter().cloned().map(ModelOpinion::from).collect());
        }
        let is_whole = self.models.len() == self.opinions.len() && self.form > FIRST_FORM;
        let both = self.opinions.iter().cloned().zip(self.models.iter().cloned());
        is_whole.then(|| both.map(|(opinion, model)| ModelOpinion { opinion, model }).collect())
    }
}

impl DecisionLog {
    /// Opens the ledger of these keys for a repository, or makes one; every decision in it is verified.
    ///
    /// A key that is copied without its ledger could sign something else at the same place.
    ///
    /// # Errors
    ///
    /// [`DecisionError`] if it is in use, does not verify, or the keys sit otherwise.
    pub fn open(
        membership: &Arc<Membership>,
        keys: &KeyFolder,
        placement: Placement,
    ) -> Result<Self, DecisionError> {
        // Whoever has no keys leaves no ledger.
        match placement {
            Placement::Local => _ = keys.seals(membership)?,
            Placement::Distributed => _ = keys.seat(ORCHESTRATOR, membership)?,
        }
        let place = || match placement {
            Placement::Local => keys.local_folder(membership),
            Placement::Distributed => keys.distributed_folder(membership),
        };
        let folder = place()?;
        let (writer, lines) = Writer::open::<Entry>(&folder, &membership.chain().to_string())?;
        // Somebody may have begun otherwise meanwhile: whoever comes second sees it.
        place()?;
        let name = KeyFolder::ledger_name(membership);
        let mut ledger = Self {
            name,
            folder,
            writer,
            membership: Arc::clone(membership),
            proofs: Vec::new(),
            case: None,
            landed: VecDeque::new(),
            starts_at: None,
        };
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
    pub fn cluster(&self, keys: &KeyFolder) -> Result<LocalCluster<Seal>, DecisionError> {
        let (orchestrator, reviewers) = keys.seals(&self.membership)?;
        let mut cluster = LocalCluster::new(self.membership.quorum(), orchestrator, reviewers);
        for (sequence, proof) in &self.proofs {
            cluster.recall(*sequence, proof)?;
        }
        Ok(cluster)
    }

    /// The decision that is under way.
    #[must_use]
    pub fn case(&self) -> Option<&Case> {
        self.case.as_ref()
    }

    /// The last changes that have landed, the newest first.
    pub fn landed(&self) -> impl Iterator<Item = &LandedCase> {
        self.landed.iter().rev()
    }

    /// The mark of the decision that comes next. Where it is in a repository, this ledger is an older copy of another one.
    #[must_use]
    pub fn next_mark(&self) -> LandingMark {
        LandingMark::new(&self.name, self.next())
    }

    /// By what it is told from other ledgers of a repository.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Who takes part.
    #[must_use]
    pub fn membership(&self) -> &Membership {
        &self.membership
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
        readings: Vec<ModelOpinion>,
        run: &str,
    ) -> Result<(), DecisionError> {
        self.is_idle()?;
        let readings = readings.into_iter().map(|ModelOpinion { opinion, model }| (opinion, model));
        let (opinions, models): (Vec<Opinion>, Vec<Option<ModelAt>>) = readings.unzip();
        let change = proposal.change()?.text().to_owned();
        let opened = Opened {
            program: PROGRAM.to_owned(),
            sequence: self.next(),
            run: run.to_owned(),
            change,
            opinions,
            models,
            form: FORM,
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
    pub fn decided(&mut self, decision: &DecisionProof<Signature>) -> Result<Decided, DecisionError> {
        let case = self.case.as_ref().ok_or(DecisionError::Idle)?;
        // Of what version 0.1 began, reviewers who came later may have named their models.
        let has_model =
            |message: &SignedMessage<Signature>| message.opinion.as_ref().is_some_and(|o| o.model.is_some());
        let form = if decision.votes.iter().any(has_model) { FORM } else { case.form };
        let record = DecisionRecord::new(&self.membership, &case.change, decision, form);
        record.check(&self.membership)?;
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

    /// Refuses a branch that carries a decision under this roster that is not in here, or is another one in here: what is
    /// signed next could be signed for the second time.
    ///
    /// `starts_at` is the word of the owner that decisions below that place were other keys', where a commit names no roster:
    /// version 0.1 wrote none. It is written down if it settles the matter, once and for all; the same again changes nothing.
    ///
    /// # Errors
    ///
    /// [`DecisionError::NotInLedger`] says which decision, and how to get the ledger that knows it;
    /// [`DecisionError::StartsElsewhere`] if another place was said before.
    pub fn agrees_with(
        &mut self,
        repository: &Repository,
        branch: &str,
        starts_at: Option<Sequence>,
    ) -> Result<(), DecisionError> {
        if let (Some(known), Some(given)) = (self.starts_at, starts_at)
            && known != given
        {
            return Err(DecisionError::StartsElsewhere { known, given });
        }
        let tip = repository.commit_of(branch)?;
        let told = told(repository, &self.membership, &tip, None)?;
        let beside = Beside {
            branch,
            place: &self.folder,
            starts_at: self.starts_at.or(starts_at),
            known: self.next() - 1,
            may_learn: false,
            is_reviewer: false,
        };
        compare(&told, &beside, |told| self.find(told))?;
        match starts_at.filter(|_| self.starts_at.is_none()) {
            Some(sequence) => self.write(Entry::StartsAt { sequence }),
            None => Ok(()),
        }
    }

    /// What is in here of a decision that a branch tells of. One that is under way may have landed already.
    fn find(&self, told: &LandedDecision) -> LedgerMatch {
        let is_at = |(sequence, _): &&(Sequence, Proof<Signature>)| *sequence == told.sequence;
        if let Some((_, proof)) = self.proofs.iter().find(is_at) {
            return told
                .is(proof.check(self.membership.quorum()).map_or(Value::Nothing, |proven| proven.value));
        }
        let is_under_way = |case: &Case| case.sequence <= told.sequence && told.change == Some(case.change());
        if self.case.as_ref().is_some_and(is_under_way) { LedgerMatch::Same } else { LedgerMatch::Nothing }
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
        if line.run != self.membership.chain().to_string() {
            return Err(wrong("it is of another repository"));
        }
        match line.event {
            Entry::Opened(opened) => {
                self.is_idle()?;
                let opinions =
                    opened.readings().ok_or_else(|| wrong("its opinions and models differ in number"))?;
                if !(FIRST_FORM..=FORM).contains(&opened.form) {
                    return Err(wrong("its form is not known to this program, which may be too old"));
                }
                let Opened { sequence, run, change, form, .. } = *opened;
                // It becomes a part of a path.
                uuid::Uuid::parse_str(&run).map_err(|_| wrong("its run has no id"))?;
                if sequence != self.next() {
                    return Err(wrong("it is not the next decision"));
                }
                let proposal = Proposal::read(&change)?;
                self.case = Some(Case { sequence, run, proposal, change, opinions, form, decided: None });
                Ok(())
            }
            Entry::Decided { record } => {
                let (verified, proof) = record.check(&self.membership)?;
                let case = self.case.as_mut().filter(|case| case.fits(&record));
                let case = case.ok_or_else(|| wrong(OTHER_CASE))?;
                case.sequence = record.sequence;
                self.proofs.push((record.sequence, proof));
                case.decided = Some(Decided { record: *record, verified });
                Ok(())
            }
            Entry::Closed { sequence, ended } => {
                let is_it = |case: &mut Case| case.sequence == sequence && case.decided.is_some();
                let case = self.case.take_if(is_it).ok_or_else(|| wrong("it closes what was not decided"))?;
                if let (Some(decided), Ended::Landed { commit }) = (case.decided.clone(), ended) {
                    self.landed.push_back(LandedCase { case, decided, commit });
                    self.landed.drain(..self.landed.len().saturating_sub(LANDED_MAX));
                }
                Ok(())
            }
            Entry::StartsAt { sequence } => match self.starts_at.replace(sequence) {
                Some(_) => Err(wrong("it says twice where it starts")),
                None => Ok(()),
            },
        }
    }
}
