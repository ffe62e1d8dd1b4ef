//! The ledger: every decision of a repository under one roster, append-only and hash-chained.
//!
//! A case is opened with everything that its decision follows from, before anything is signed. Then it is decided on, and
//! closed with its outcome. One case is under way at a time. A process that opens a ledger with an open case continues there.
//!
//! A ledger is beside the keys: their owner has signed everything in it, in any copy of the repository. Members that share one
//! process share one ledger. Where each member has a process of its own, the orchestrator has another ledger, and each member
//! its own log. The same keys are never used in both ways, since neither place knows of the signatures in the other.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::history::{LandedDecision, LedgerContext, LedgerMatch, compare, landed_decisions};
use super::proposal::Proposal;
use super::record::{DecisionRecord, VerifiedRecord};
use crate::approval::decision_error::DecisionError;
use crate::approval::keys::{KeyFolder, ORCHESTRATOR};
use crate::journal::{Record as Line, Writer};
use crate::program::PROGRAM;
use crate::repository::{LandingMark, Oid, Repository};
use crypto::{Digest, Signature};
use quorum::local_cluster::{DecisionProof, LocalCluster};
use quorum::{Membership, ModelAt, ModelOpinion, Opinion, Proof, RosterSigner, Sequence, Value};

/// The fault of a record that does not belong to the open case.
const OTHER_CASE: &str = "it decides on a case that was not opened";

/// An event of the ledger.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum LedgerEvent {
    /// A change is to be decided on.
    Opened {
        program: String,
        sequence: Sequence,
        /// The run in which the change was reviewed.
        run: String,
        change: String,
        opinions: Vec<Opinion>,
        /// The model that formed each opinion, and the place where it was called.
        models: Vec<Option<ModelAt>>,
    },
    /// The change was decided on.
    Decided { record: Box<DecisionRecord> },
    /// The case has ended.
    Closed { sequence: Sequence, ended: CaseOutcome },
}

/// The outcome of a change.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "ended", rename_all = "snake_case", deny_unknown_fields)]
pub enum CaseOutcome {
    /// The change is on its branch.
    Landed {
        /// The commit that brought it there.
        commit: Oid,
    },
    /// The change was approved, but is not on its branch.
    NotLanded { why: String },
    /// The change was not approved.
    Rejected,
}

/// A decision that is under way.
#[derive(Clone, Debug)]
pub struct Case {
    /// The place of the decision.
    pub sequence: Sequence,
    /// The run in which the change was reviewed.
    pub run: String,
    /// The proposal that is decided on.
    pub proposal: Proposal,
    change: String,
    opinions: Vec<ModelOpinion>,
    decided: Option<RecordedDecision>,
}

/// The placement of the members: in one process, or in several.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Placement {
    /// All members are in this process.
    Local,
    /// Each member is in a process of its own.
    Distributed,
}

/// A decision, with its proof and the verified content of the proof.
#[derive(Clone, Debug)]
pub struct RecordedDecision {
    /// The record that proves the decision.
    pub record: DecisionRecord,
    /// The verified content of the record.
    pub verified: VerifiedRecord,
}

/// The ledger of a repository's decisions.
#[derive(Debug)]
pub struct DecisionLog {
    name: String,
    folder: PathBuf,
    writer: Writer,
    membership: Arc<Membership>,
    /// The proofs of all decisions until now.
    proofs: Vec<(Sequence, Proof<Signature>)>,
    case: Option<Case>,
    /// The last changes that have landed, the newest last.
    landed: VecDeque<LandedCase>,
}

/// A change that has landed.
#[derive(Clone, Debug)]
pub struct LandedCase {
    /// The case of the change.
    pub case: Case,
    /// The decision, with its proof.
    pub decided: RecordedDecision,
    /// The commit on the branch.
    pub commit: Oid,
}

/// The number of landed changes that are remembered, so that a change that is proposed again is recognised.
const LANDED_MAX: usize = 16;

impl Placement {
    /// Returns the folder of the ledger, if the keys were not used in the other placement.
    fn folder(self, keys: &KeyFolder, membership: &Membership) -> Result<PathBuf, DecisionError> {
        match self {
            Self::Local => keys.local_folder(membership),
            Self::Distributed => keys.distributed_folder(membership),
        }
    }
}

impl Case {
    /// Returns the SHA-256 of the text that is decided on.
    pub fn change(&self) -> Digest {
        Digest::new(self.change.as_bytes())
    }

    /// Returns whether a record belongs to this case. Members in processes of their own may have decided on nothing in between,
    /// more than once.
    fn fits(&self, record: &DecisionRecord) -> bool {
        self.sequence <= record.sequence && self.change == record.change && self.decided.is_none()
    }

    /// Returns the opinion of each reviewer, with its model, if the reviewers share one process.
    pub fn opinions(&self) -> &[ModelOpinion] {
        &self.opinions
    }
}

impl DecisionLog {
    /// Opens the ledger of these keys for a repository, or creates it. Every decision in it is verified.
    ///
    /// A key that is copied without its ledger could sign something else at the same place.
    ///
    /// Returns [`DecisionError`] if the ledger is in use or does not verify, or if the keys were used in the other placement.
    pub fn open(
        membership: &Arc<Membership>,
        keys: &KeyFolder,
        placement: Placement,
    ) -> Result<Self, DecisionError> {
        // A caller without the keys must not create a ledger.
        match placement {
            Placement::Local => _ = keys.signers(membership)?,
            Placement::Distributed => _ = keys.seat(ORCHESTRATOR, membership)?,
        }
        let folder = placement.folder(keys, membership)?;
        let (writer, lines) = Writer::open::<LedgerEvent>(&folder, &membership.chain().to_string())?;
        // Another process may have begun in the other placement meanwhile: the second of the two notices it here.
        placement.folder(keys, membership)?;
        let name = KeyFolder::ledger_name(membership);
        let mut ledger = Self {
            name,
            folder,
            writer,
            membership: Arc::clone(membership),
            proofs: Vec::new(),
            case: None,
            landed: VecDeque::new(),
        };
        for line in lines {
            let number = line.seq + 1;
            ledger
                .follow(line)
                .map_err(|why| DecisionError::Ledger { line: number, why: why.to_string() })?;
        }
        Ok(ledger)
    }

    /// Returns all parties in this process, which know of every decision in the ledger.
    ///
    /// Returns [`DecisionError`] if a key is missing, or if the parties cannot have made these decisions.
    pub fn cluster(&self, keys: &KeyFolder) -> Result<LocalCluster<RosterSigner>, DecisionError> {
        let (orchestrator, reviewers) = keys.signers(&self.membership)?;
        let mut cluster = LocalCluster::new(self.membership.quorum(), orchestrator, reviewers);
        for (sequence, proof) in &self.proofs {
            cluster.recall(*sequence, proof)?;
        }
        Ok(cluster)
    }

    /// Returns the decision that is under way.
    pub fn case(&self) -> Option<&Case> {
        self.case.as_ref()
    }

    /// Returns the last changes that have landed, the newest first.
    pub fn landed_cases(&self) -> impl Iterator<Item = &LandedCase> {
        self.landed.iter().rev()
    }

    /// Returns the mark of the next decision. If a repository has this mark already, this ledger is an older copy of another
    /// one.
    pub fn next_mark(&self) -> LandingMark {
        LandingMark::new(&self.name, self.next())
    }

    /// Returns the name that distinguishes this ledger from others of a repository.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the membership.
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// Returns the earliest place of the next decision.
    fn next(&self) -> Sequence {
        self.proofs.last().map_or(0, |(sequence, _)| *sequence) + 1
    }

    /// Opens a case with the opinion of each reviewer on a change, as a run has them. The list is empty if the reviewers are in
    /// processes of their own.
    ///
    /// Returns [`DecisionError::UnderWay`] if a case is open.
    pub fn begin(
        &mut self,
        proposal: &Proposal,
        readings: Vec<ModelOpinion>,
        run: &str,
    ) -> Result<(), DecisionError> {
        self.require_idle()?;
        let (opinions, models) =
            readings.into_iter().map(|ModelOpinion { opinion, model }| (opinion, model)).unzip();
        self.write(LedgerEvent::Opened {
            program: PROGRAM.to_owned(),
            sequence: self.next(),
            run: run.to_owned(),
            change: proposal.change()?.text().to_owned(),
            opinions,
            models,
        })
    }

    /// Returns the open case, with its decision if that is in the ledger.
    ///
    /// Returns [`DecisionError::Idle`] if no case is open.
    pub fn decision(&self) -> Result<(Case, Option<RecordedDecision>), DecisionError> {
        let case = self.case.clone().ok_or(DecisionError::Idle)?;
        let decided = case.decided.clone();
        Ok((case, decided))
    }

    /// Takes the decision on the open case.
    ///
    /// Returns [`DecisionError`] if the decision does not verify, or is on something else.
    pub fn record_decision(
        &mut self,
        decision: &DecisionProof<Signature>,
    ) -> Result<RecordedDecision, DecisionError> {
        let case = self.case.as_ref().ok_or(DecisionError::Idle)?;
        let record = DecisionRecord::new(&self.membership, &case.change, decision);
        record.check(&self.membership)?;
        // A record that would be refused when it is read must not be written.
        if !case.fits(&record) {
            return Err(DecisionError::NotProven(OTHER_CASE.to_owned()));
        }
        self.write(LedgerEvent::Decided { record: Box::new(record) })?;
        self.decision()?.1.ok_or(DecisionError::Idle)
    }

    /// Closes the open case, which was decided on.
    pub fn close(&mut self, ended: CaseOutcome) -> Result<(), DecisionError> {
        let sequence = self.case.as_ref().ok_or(DecisionError::Idle)?.sequence;
        self.write(LedgerEvent::Closed { sequence, ended })
    }

    /// Refuses a branch that carries a decision under this roster that the ledger lacks, or has otherwise. The next signature
    /// could then be the second one at its place.
    ///
    /// [`DecisionError::NotInLedger`] names the decision, and says how to get the ledger that has it.
    pub fn require_agreement(&self, repository: &Repository, branch: &str) -> Result<(), DecisionError> {
        let tip = repository.commit_of(branch)?;
        let landed = landed_decisions(repository, &self.membership, &tip, None)?;
        let context = LedgerContext {
            branch,
            place: &self.folder,
            starts_at: None,
            known: self.next() - 1,
            may_learn: false,
            is_reviewer: false,
        };
        compare(&landed, &context, |decision| self.find(decision))?;
        Ok(())
    }

    /// Returns the state in this ledger of a decision that a branch carries. A decision under way may have landed already.
    fn find(&self, landed: &LandedDecision) -> LedgerMatch {
        if let Some((_, proof)) = self.proofs.iter().find(|(sequence, _)| *sequence == landed.sequence) {
            let proven = proof.check(self.membership.quorum());
            return landed.match_with(proven.map_or(Value::Nothing, |proven| proven.value));
        }
        match &self.case {
            Some(case) if case.sequence <= landed.sequence && landed.change == Some(case.change()) => {
                LedgerMatch::Same
            }
            Some(_) | None => LedgerMatch::Nothing,
        }
    }

    fn write(&mut self, entry: LedgerEvent) -> Result<(), DecisionError> {
        let line = self.writer.append(entry)?;
        self.writer.sync()?;
        self.follow(line)
    }

    fn require_idle(&self) -> Result<(), DecisionError> {
        match &self.case {
            Some(case) => Err(DecisionError::UnderWay(case.sequence)),
            None => Ok(()),
        }
    }

    /// Applies a line of the ledger.
    fn follow(&mut self, line: Line<LedgerEvent>) -> Result<(), DecisionError> {
        if line.run != self.membership.chain().to_string() {
            return Err(not_proven("it belongs to another repository"));
        }
        match line.event {
            LedgerEvent::Opened { program, sequence, run, change, opinions, models } => {
                self.require_idle()?;
                if opinions.len() != models.len() {
                    return Err(not_proven("its opinions and models differ in number"));
                }
                if program != PROGRAM {
                    return Err(not_proven("it names another program in a form that no program writes"));
                }
                // The id becomes a part of a path.
                uuid::Uuid::parse_str(&run).map_err(|_| not_proven("its run has no valid id"))?;
                if sequence != self.next() {
                    return Err(not_proven("it is not the next decision"));
                }
                let proposal = Proposal::read(&change)?;
                let opinions = opinions.into_iter().zip(models);
                let opinions = opinions.map(|(opinion, model)| ModelOpinion { opinion, model }).collect();
                self.case = Some(Case { sequence, run, proposal, change, opinions, decided: None });
                Ok(())
            }
            LedgerEvent::Decided { record } => {
                let (verified, proof) = record.check(&self.membership)?;
                let Some(case) = self.case.as_mut().filter(|case| case.fits(&record)) else {
                    return Err(not_proven(OTHER_CASE));
                };
                case.sequence = record.sequence;
                self.proofs.push((record.sequence, proof));
                case.decided = Some(RecordedDecision { record: *record, verified });
                Ok(())
            }
            LedgerEvent::Closed { sequence, ended } => {
                let case = self.case.take_if(|case| case.sequence == sequence && case.decided.is_some());
                let case = case.ok_or_else(|| not_proven("it closes an undecided case"))?;
                if let (Some(decided), CaseOutcome::Landed { commit }) = (case.decided.clone(), ended) {
                    self.landed.push_back(LandedCase { case, decided, commit });
                    self.landed.drain(..self.landed.len().saturating_sub(LANDED_MAX));
                }
                Ok(())
            }
        }
    }
}

fn not_proven(why: &str) -> DecisionError {
    DecisionError::NotProven(why.to_owned())
}
