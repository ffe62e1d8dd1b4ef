//! The columns of a batch: rolesets on models, read and resolved as they are wanted.
//!
//! In: what a person wants of rolesets and servers, and the configuration. Out: columns that are ready to run, those
//! of the batch and those of rolesets that single tasks name. The one file of this module that knows configuration.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::matrix::Column;
use super::scheduler::Columns;
use crate::config::{Chosen, FileConfig, launch_command, resolve_endpoints};
use crate::journal::Limits;
use crate::protocol::Task;
use crate::provider::launch::Launched;
use crate::run::{
    MockChoice, NamedRoleset, Notices, ParamChanges, RedactRequest, RunError, check_prices, launch,
    mock_script, read_named, sought,
};

/// So many rolesets of single tasks are kept ready.
const NAMED_MAX: usize = 256;

/// Columns, or why there are none.
type Found = Result<Rc<[Column]>, String>;

/// What a person wants of the rolesets and models of a batch.
#[derive(Clone, Debug, Default)]
pub struct ColumnRequest {
    /// The rolesets; without any, that of the configuration or the default.
    pub rolesets: Vec<String>,
    /// A folder with rolesets that is searched first.
    pub rolesets_dir: Option<PathBuf>,
    /// Where models are called; of several models the names are separated by commas.
    pub servers: Chosen,
    /// Scripted agents, if they are wanted.
    pub mock: MockChoice,
    /// What must not leave the machine, besides what the rolesets say.
    pub redaction: RedactRequest,
    /// Parameters in place of the rolesets'.
    pub params: ParamChanges,
    /// What each run may use.
    pub limits: Limits,
}

/// Rolesets and models, ready to run.
#[derive(Debug)]
pub struct OpenColumns {
    request: ColumnRequest,
    file: FileConfig,
    chosen: Chosen,
    models: Vec<Option<String>>,
    /// Those of the batch.
    all: Rc<[Column]>,
    /// Those of rolesets that single tasks have named.
    named: RefCell<HashMap<String, Found>>,
}

impl OpenColumns {
    /// Reads the rolesets of a batch, starts the server that is wanted, with its log in `log`, and finds the models.
    ///
    /// # Errors
    ///
    /// [`RunError`]; no model was called.
    pub async fn open(
        request: ColumnRequest,
        file: FileConfig,
        log: &Path,
        notices: &dyn Notices,
    ) -> Result<(Self, Option<Launched>), RunError> {
        let usage = |why: &str| RunError::Usage(why.to_owned());
        let mock = &request.mock;
        mock.has_answers()?;
        let script = mock_script(mock.script.as_deref(), mock.answer.as_deref())?;
        let mut chosen = Chosen { mock_script: script, ..request.servers.clone() };
        let models = models(chosen.model.as_deref());
        if models.is_empty() {
            return Err(usage("--model names no model"));
        }
        if chosen.launch.is_some() && models.len() > 1 {
            return Err(usage("--launch starts a server of one model; give one --model"));
        }
        let command = launch_command(&chosen, &file, None)?;
        let server = launch(command.as_ref(), &mut chosen, &file, log, notices).await?;
        let named = RefCell::default();
        let mut columns = Self { request, file, chosen, models, all: Rc::default(), named };
        columns.all = columns.of_the_batch().await?.into();
        Ok((columns, server))
    }

    async fn of_the_batch(&self) -> Result<Vec<Column>, RunError> {
        let rolesets = &self.request.rolesets;
        let rolesets: Vec<Option<&str>> = if rolesets.is_empty() {
            vec![None]
        } else {
            rolesets.iter().map(|r| Some(r.as_str())).collect()
        };
        let mut all: Vec<Column> = Vec::new();
        for roleset in rolesets {
            all.extend(self.of_roleset(roleset).await?);
        }
        // A run is told from others by its task, roleset, model and seed, by their names.
        for (at, column) in all.iter().enumerate() {
            let Column { roleset, model, .. } = column;
            if all[..at].iter().any(|other| other.roleset == *roleset && other.model == *model) {
                let model = if model.is_empty() { String::new() } else { format!(" on `{model}`") };
                return Err(RunError::Usage(format!(
                    "the roleset `{roleset}`{model} is named twice; give a copy a name of its own, or leave it out"
                )));
            }
        }
        Ok(all)
    }

    /// A roleset on each of the models.
    async fn of_roleset(&self, roleset: Option<&str>) -> Result<Vec<Column>, RunError> {
        let folder = self.request.rolesets_dir.as_ref();
        let NamedRoleset { name, mut roleset, packs } = read_named(roleset, folder, &self.file)?;
        self.request.params.apply(&mut roleset)?;
        let setup = roleset.setup(&name, &packs, Task::default(), 0);
        let sought = sought(&self.request.redaction, &roleset)?;
        let mut columns = Vec::new();
        for model in &self.models {
            let chosen = Chosen { model: model.clone(), ..self.chosen.clone() };
            let endpoints = resolve_endpoints(&chosen, &self.file, &roleset).await?;
            check_prices(self.request.limits, &endpoints)?;
            let column = Column::new(model.clone().unwrap_or_default(), setup.clone(), endpoints);
            columns.push(match &sought {
                Some(sought) => column.redacted(sought.clone()),
                None => column,
            });
        }
        Ok(columns)
    }
}

fn models(named: Option<&str>) -> Vec<Option<String>> {
    match named {
        Some(models) => {
            let named = models.split(',').map(str::trim).filter(|model| !model.is_empty());
            named.map(|model| Some(model.to_owned())).collect()
        }
        None => vec![None],
    }
}

impl Columns for OpenColumns {
    async fn of(&self, roleset: Option<&str>) -> Found {
        let Some(name) = roleset else { return Ok(Rc::clone(&self.all)) };
        if let Some(known) = self.named.borrow().get(name) {
            return known.clone();
        }
        let columns = self.of_roleset(Some(name)).await;
        let columns = columns.map(Rc::from).map_err(|why| format!("{:#}", anyhow::Error::from(why)));
        let mut named = self.named.borrow_mut();
        // A file of tasks may name any number of rolesets that are not there.
        if named.len() < NAMED_MAX {
            named.insert(name.to_owned(), columns.clone());
        }
        columns
    }
}
