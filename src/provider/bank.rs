//! A bank: the replies and programs' results that a batch has on record, given again in place of calls.
//!
//! The input is the folder of a batch, then an [`Ask`] or the key of a program. The output is the reply or the result that the batch
//! has on record for the same request. The digest of a request identifies it, so a reply is never given to another question, another
//! seed or another setting. Nothing is called or executed here, and nothing is made up: a sample that was not drawn is an error.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::BufReader;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    replies: HashMap<(String, Digest), Vec<Kept>>,
    /// The place of the result of each program, by its key.
    results: HashMap<Digest, Place>,
}

/// The place of a record.
#[derive(Clone, Copy, Debug)]
struct Place {
    file: usize,
    offset: u64,
    bytes: usize,
}

/// A reply on record.
#[derive(Clone, Debug)]
struct Kept {
    /// The digest of the extra fields of its request.
    extra: Digest,
    /// The model that answered, as its server lists it.
    answers_as: Option<Arc<str>>,
    place: Place,
}

impl Kept {
    /// Names the model of a reply as its server lists it, which the folder of a bank cannot say.
    fn by_its_model(&self, mut replied: Replied) -> Replied {
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
            Endpoint::Bedrock(_) | Endpoint::Mock(_) | Endpoint::Bank(_) => None,
        };
        Self { name: endpoint.model().to_owned(), extra: Digest::new(extra.as_bytes()), answers_as }
    }
}

/// The parts of a run that are needed to place its replies.
#[derive(Debug, Default)]
struct RunInBank {
    /// The model of each agent.
    called: Vec<CalledModel>,
    /// The digest of each request that is not answered yet.
    asked: BTreeMap<CallId, Digest>,
}

impl Bank {
    /// Reads the journals of a batch, and checks their chains.
    ///
    /// # Errors
    ///
    /// [`ProviderError::Setup`] if there is no such batch or its journals are damaged.
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
            let mut runs: HashMap<String, RunInBank> = HashMap::new();
            let read = read_shared(&path, |record: Record, placed: PlacedRecord| {
                let place = Place { file, offset: placed.offset, bytes: placed.bytes };
                bank.take(runs.entry(record.run).or_default(), record.event, place);
                Ok(())
            });
            read.map_err(|why| ProviderError::Setup(why.to_string()))?;
        }
        Ok(bank)
    }

    /// Returns the journals of a batch, in the order of their shards.
    ///
    /// # Errors
    ///
    /// [`ProviderError::Setup`] if there is no such batch.
    pub fn journals(folder: &Path) -> Result<Vec<PathBuf>, ProviderError> {
        let entries = std::fs::read_dir(folder).map_err(|why| unusable(folder, &why))?;
        let shard = |path: &PathBuf| {
            let name = path.file_name()?.to_str()?;
            name.strip_prefix("journal-")?.strip_suffix(".jsonl")?.parse::<u64>().ok()
        };
        let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        found.retain(|path| shard(path).is_some() && path.is_file());
        found.sort_by_key(shard);
        if found.is_empty() {
            let why = format!("`{}` is no bank: it has no journal of a batch", folder.display());
            return Err(ProviderError::Setup(why));
        }
        Ok(found)
    }

    /// Returns the first endpoint of a bank's first run, without reading the rest.
    ///
    /// # Errors
    ///
    /// As for [`Self::open`].
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

    fn take(&mut self, run: &mut RunInBank, entry: Entry, place: Place) {
        match entry {
            Entry::Opened(spec) => run.called = called(&spec.endpoints),
            Entry::Resumed { endpoints: Some(endpoints), .. } => run.called = called(&endpoints),
            Entry::Asked(asked) => drop(run.asked.insert(asked.call, asked.sha256)),
            Entry::Replied(replied) => {
                let model = run.called.get(replied.call.agent).cloned();
                if let Some((CalledModel { name, extra, answers_as }, digest)) =
                    model.zip(run.asked.remove(&replied.call))
                {
                    let kept = Kept { extra, answers_as, place };
                    self.replies.entry((name, digest)).or_default().push(kept);
                }
            }
            Entry::Executed(executed) => drop(self.results.insert(executed.key, place)),
            Entry::Found(_)
            | Entry::LeftOut(_)
            | Entry::Resumed { endpoints: None, .. }
            | Entry::Stopped { .. } => {}
        }
    }

    /// Returns the reply on record for this request to this model.
    ///
    /// # Errors
    ///
    /// [`ProviderError::NotInBank`] without one, and [`ProviderError::Setup`] if it cannot be read.
    pub(super) fn answer(&self, model: &str, ask: &Ask) -> Result<Completion, ProviderError> {
        let missing =
            || ProviderError::NotInBank { folder: self.folder.display().to_string(), call: ask.call };
        let kept = self.replies.get(&(model.to_owned(), ask.digest)).ok_or_else(missing)?;
        let mut found: Option<Replied> = None;
        for kept in kept {
            let Entry::Replied(replied) = self.read(kept.place)? else { return Err(missing()) };
            let replied = kept.by_its_model(replied);
            // Equal replies may name their model differently.
            let is_same = |known: &Replied| {
                let named_alike = Reply { model: replied.reply.model.clone(), ..known.reply.clone() };
                named_alike == replied.reply
            };
            if found.as_ref().is_some_and(|known| !is_same(known)) {
                let folder = self.folder.display().to_string();
                return Err(ProviderError::AmbiguousInBank { folder, call: ask.call });
            }
            found = Some(replied);
        }
        found.map(completion).ok_or_else(missing)
    }

    /// Returns the first reply on record for this request from this model, if there is one that can be read.
    pub(super) fn first(&self, model: &CalledModel, ask: &Ask) -> Option<Completion> {
        let mut kept = self.replies.get(&(model.name.clone(), ask.digest))?.iter();
        let kept = kept.find(|kept| kept.extra == model.extra)?;
        match self.read(kept.place) {
            Ok(Entry::Replied(replied)) => Some(completion(kept.by_its_model(replied))),
            Ok(_) | Err(_) => None,
        }
    }

    /// Returns the result on record for a program, if there is one.
    pub(super) fn executed(&self, key: Digest) -> Option<Executed> {
        match self.read(*self.results.get(&key)?) {
            Ok(Entry::Executed(executed)) => Some(executed),
            Ok(_) | Err(_) => None,
        }
    }

    fn read(&self, place: Place) -> Result<Entry, ProviderError> {
        let mut line = vec![0; place.bytes];
        self.files[place.file]
            .read_exact_at(&mut line, place.offset)
            .map_err(|why| unusable(&self.folder, &why))?;
        let record: Record = serde_json::from_slice(&line).map_err(|why| unusable(&self.folder, &why))?;
        Ok(record.event)
    }
}

fn completion(replied: Replied) -> Completion {
    let Replied { reply, usage, structured, receipt, key_removed, .. } = replied;
    Completion { reply, usage, structured, attempts: 1, receipt, key_removed }
}

fn called(endpoints: &[Endpoint]) -> Vec<CalledModel> {
    endpoints.iter().map(CalledModel::new).collect()
}

fn unusable(path: &Path, why: &dyn std::fmt::Display) -> ProviderError {
    ProviderError::Setup(format!("the bank cannot be read: `{}`: {why}", path.display()))
}
