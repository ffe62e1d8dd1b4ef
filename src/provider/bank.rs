//! A bank: the replies and programs' results that a batch has on record, given again in place of calls.
//!
//! The input is the folder of a batch, then an [`Ask`] or the key of a program. The output is the reply or the result that the batch
//! has on record for the same request. The digest of a request identifies it, so a reply is never given to another question, another
//! seed or another setting. Nothing is called or executed here, and nothing is made up: in a bank, a sample that was not drawn is an error.
//! Where the replies of an earlier batch are used again, a request without one goes on to the model.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::BufReader;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::completion::Completion;
use super::error::ProviderError;
use crate::files::read_line;
use crate::journal::{Entry, Executed, PlacedRecord, Record, Replied, read_shared};
use crypto::Digest;
use protocol::core::Endpoint;
use protocol::{Ask, CallId, Reply};

/// The journals of a batch, with the place of everything that can be given again.
#[derive(Debug)]
pub struct Bank {
    folder: PathBuf,
    files: Vec<File>,
    /// The places of the replies to each request, by its model and its digest. Tasks with the same prompt have the same requests.
    replies: HashMap<(String, Digest), Vec<BankedReply>>,
    /// The place of the result of each program, by its key.
    results: HashMap<Digest, RecordPlace>,
}

#[derive(Clone, Copy, Debug)]
struct RecordPlace {
    file: usize,
    offset: u64,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct BankedReply {
    /// The digest of the extra fields of its request.
    extra: Digest,
    /// The model that answered, as its server lists it.
    answers_as: Option<Arc<str>>,
    place: RecordPlace,
}

impl BankedReply {
    /// Names the model of a reply as its server lists it, which the folder of a bank cannot say.
    fn name_model(&self, mut replied: Replied) -> Replied {
        if let Some(name) = &self.answers_as {
            replied.reply.model = Some(name.to_string());
        }
        replied
    }
}

/// A model as it is called. The digest of a request says neither its name nor the fields.
#[derive(Clone, Debug)]
pub struct CalledModel {
    name: String,
    /// The digest of the extra fields of each request.
    extra: Digest,
    /// The model that answers, as its server lists it.
    answers_as: Option<Arc<str>>,
}

impl CalledModel {
    pub(super) fn new(endpoint: &Endpoint) -> Self {
        // Extra fields were read as JSON, and can be written as JSON.
        let extra = serde_json::to_string(&endpoint.extra_fields()).unwrap_or_default();
        let answers_as = match endpoint {
            Endpoint::OpenAi(endpoint) => endpoint.listing.model().map(Arc::from),
            Endpoint::Bedrock(_) | Endpoint::Mock { .. } | Endpoint::Bank { .. } => None,
        };
        Self { name: endpoint.model().to_owned(), extra: Digest::new(extra.as_bytes()), answers_as }
    }
}

/// The parts of a run that are needed to place its replies.
#[derive(Debug, Default)]
struct BankedCalls {
    /// The model of each agent.
    called: Vec<CalledModel>,
    /// The digest of each request that is not answered yet.
    asked: BTreeMap<CallId, Digest>,
}

impl Bank {
    /// Reads the journals of a batch, and checks their chains.
    ///
    /// Returns [`ProviderError::Setup`] if there is no such batch or its journals are damaged.
    pub fn open(folder: &Path) -> Result<Self, ProviderError> {
        let mut bank = Self {
            folder: folder.to_owned(),
            files: Vec::new(),
            replies: HashMap::new(),
            results: HashMap::new(),
        };
        for path in Self::journals(folder)? {
            let file = bank.files.len();
            bank.files.push(File::open(&path).map_err(|why| unusable(&path, &why))?);
            let mut runs: HashMap<String, BankedCalls> = HashMap::new();
            let read = read_shared(&path, |record: Record, placed: PlacedRecord| {
                let place = RecordPlace { file, offset: placed.offset, bytes: placed.bytes };
                bank.add_entry(runs.entry(record.run).or_default(), record.event, place);
                Ok(())
            });
            read.map_err(|why| ProviderError::Setup(why.to_string()))?;
        }
        Ok(bank)
    }

    /// Returns the journals of a batch, in the order of their shards.
    ///
    /// Returns [`ProviderError::Setup`] if there is no such batch.
    pub fn journals(folder: &Path) -> Result<Vec<PathBuf>, ProviderError> {
        let entries = std::fs::read_dir(folder).map_err(|why| unusable(folder, &why))?;
        let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        found.retain(|path| shard_number(path).is_some() && path.is_file());
        found.sort_by_key(|path| shard_number(path));
        if found.is_empty() {
            let why = format!("`{}` is no bank: it has no journal of a batch", folder.display());
            return Err(ProviderError::Setup(why));
        }
        Ok(found)
    }

    /// Returns the first endpoint of a bank's first run, without reading the rest.
    ///
    /// Fails as [`Self::open`] does.
    pub fn first_endpoint(folder: &Path) -> Result<Endpoint, ProviderError> {
        for path in Self::journals(folder)? {
            let file = File::open(&path).map_err(|why| unusable(&path, &why))?;
            let mut line = Vec::new();
            read_line(&mut BufReader::new(file), &mut line).map_err(|why| unusable(&path, &why))?;
            let Ok(record) = serde_json::from_slice::<Record>(&line) else { continue };
            if let Entry::Opened(spec) = record.event
                && let Some(endpoint) = spec.endpoints.into_iter().next()
            {
                return Ok(endpoint);
            }
        }
        Err(ProviderError::Setup(format!("the bank `{}` has no run", folder.display())))
    }

    fn add_entry(&mut self, run: &mut BankedCalls, entry: Entry, place: RecordPlace) {
        match entry {
            Entry::Opened(spec) => run.called = called_models(&spec.endpoints),
            Entry::Resumed { endpoints: Some(endpoints), .. } => run.called = called_models(&endpoints),
            Entry::Asked(asked) => drop(run.asked.insert(asked.call, asked.sha256)),
            Entry::Replied(replied) => {
                let model = run.called.get(replied.call.agent).cloned();
                let digest = run.asked.remove(&replied.call);
                if let (Some(CalledModel { name, extra, answers_as }), Some(digest)) = (model, digest) {
                    let reply = BankedReply { extra, answers_as, place };
                    self.replies.entry((name, digest)).or_default().push(reply);
                }
            }
            Entry::Executed(executed) => drop(self.results.insert(executed.key, place)),
            Entry::Lost(_)
            | Entry::Found(_)
            | Entry::LeftOut(_)
            | Entry::Permitted(_)
            | Entry::Closed(_)
            | Entry::Resumed { endpoints: None, .. }
            | Entry::Stopped { .. } => {}
        }
    }

    /// Returns the reply on record for this request to this model.
    ///
    /// Returns [`ProviderError::NotInBank`] without one, and [`ProviderError::Setup`] if it cannot be read.
    pub(super) fn answer(&self, model: &str, ask: &Ask) -> Result<Completion, ProviderError> {
        let missing =
            || ProviderError::NotInBank { folder: self.folder.display().to_string(), call: ask.call };
        let banked = self.replies.get(&(model.to_owned(), ask.digest)).ok_or_else(missing)?;
        let mut found: Option<Replied> = None;
        for reply in banked {
            let Entry::Replied(replied) = self.read(reply.place)? else { return Err(missing()) };
            let replied = reply.name_model(replied);
            if let Some(known) = &found {
                // Equal replies may name their model differently.
                let named_alike = Reply { model: replied.reply.model.clone(), ..known.reply.clone() };
                if named_alike != replied.reply {
                    let folder = self.folder.display().to_string();
                    return Err(ProviderError::AmbiguousInBank { folder, call: ask.call });
                }
            }
            found = Some(replied);
        }
        found.map(completion).ok_or_else(missing)
    }

    /// Returns the first reply on record for this request from this model, if there is one that can be read.
    pub(super) fn first(&self, model: &CalledModel, ask: &Ask) -> Option<Completion> {
        let banked = self.replies.get(&(model.name.clone(), ask.digest))?;
        let reply = banked.iter().find(|reply| reply.extra == model.extra)?;
        match self.read(reply.place) {
            Ok(Entry::Replied(replied)) => Some(completion(reply.name_model(replied))),
            Ok(_) | Err(_) => None,
        }
    }

    /// Returns the result on record for a program, if there is one.
    pub(super) fn recorded_result(&self, key: Digest) -> Option<Executed> {
        match self.read(*self.results.get(&key)?) {
            Ok(Entry::Executed(executed)) => Some(executed),
            Ok(_) | Err(_) => None,
        }
    }

    fn read(&self, place: RecordPlace) -> Result<Entry, ProviderError> {
        let mut line = vec![0; place.bytes];
        self.files[place.file]
            .read_exact_at(&mut line, place.offset)
            .map_err(|why| unusable(&self.folder, &why))?;
        let record: Record = serde_json::from_slice(&line).map_err(|why| unusable(&self.folder, &why))?;
        Ok(record.event)
    }
}

/// Earlier batches, and how many requests they have answered.
#[derive(Debug, Default)]
pub struct ReusedReplies {
    banks: Vec<Bank>,
    found: AtomicU64,
    missed: AtomicU64,
}

impl ReusedReplies {
    /// Uses the replies of these batches.
    pub fn new(banks: Vec<Bank>) -> Self {
        Self { banks, ..Self::default() }
    }

    /// Returns true if there is no batch.
    pub(super) fn is_empty(&self) -> bool {
        self.banks.is_empty()
    }

    /// Returns the reply that the first batch which has one has on record for this request from this model.
    pub(super) fn answer(&self, model: &CalledModel, ask: &Ask) -> Option<Completion> {
        let answer = self.banks.iter().find_map(|bank| bank.first(model, ask));
        let count = if answer.is_some() { &self.found } else { &self.missed };
        count.fetch_add(1, Ordering::Relaxed);
        answer
    }

    /// Returns the number of requests that had a reply on record, and the number of all requests.
    pub fn counts(&self) -> (u64, u64) {
        let found = self.found.load(Ordering::Relaxed);
        (found, found + self.missed.load(Ordering::Relaxed))
    }
}

/// Returns the number of the shard whose journal has this path.
fn shard_number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix("journal-")?.strip_suffix(".jsonl")?.parse().ok()
}

fn completion(replied: Replied) -> Completion {
    let Replied { reply, usage, structured, receipt, key_removed, .. } = replied;
    Completion { reply, usage, structured, attempts: 1, receipt, key_removed }
}

fn called_models(endpoints: &[Endpoint]) -> Vec<CalledModel> {
    endpoints.iter().map(CalledModel::new).collect()
}

fn unusable(path: &Path, why: &dyn std::fmt::Display) -> ProviderError {
    ProviderError::Setup(format!("the bank cannot be read: `{}`: {why}", path.display()))
}
