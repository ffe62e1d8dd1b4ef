//! The server from its start to its end.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};

use super::cancelled::CancelledKeys;
use super::error::ServeError;
use super::guard::Guard;
use super::http::router;
use super::intake::{Intake, PREFIX};
use super::listen::listen;
use super::service::Service;
use crate::batch::{BatchStats, Column, Columns, OpenColumns, Options, ResultPlaces, Shard, TaskReader, run};
use crate::engine::StopRequest;

/// Everything that a server starts from.
#[derive(Debug)]
pub struct ServeRequest {
    /// The folder of the runs.
    pub folder: PathBuf,
    /// The rules by which requests are heard.
    pub guard: Guard,
    /// The names of the rolesets that are served.
    pub rolesets: Vec<String>,
    /// The most runs that wait for their turn.
    pub queue: usize,
    /// The options of the runs.
    pub options: Options,
}

/// The columns of a batch all of whose lines bring their own.
struct NoColumns;

impl Columns for NoColumns {
    async fn of(&self, _roleset: Option<&str>) -> Result<Arc<[Column]>, String> {
        Err("the line names no roleset".to_owned())
    }
}

/// The end of a server.
#[derive(Debug)]
pub struct Served {
    /// The figures of its runs.
    pub figures: BatchStats,
    /// The number of runs that were put down, and go on when the next server starts.
    pub left: u64,
}

/// Serves requests until `stop` says so. Runs that are under way then are put down after their open calls, and those with a key go on
/// when the next server starts.
///
/// # Errors
///
/// [`ServeError`]; durable records remain.
pub async fn serve(
    request: ServeRequest,
    shard: &mut Shard,
    columns: &OpenColumns,
    listener: TcpListener,
    mut stop: watch::Receiver<StopRequest>,
) -> Result<Served, ServeError> {
    let ServeRequest { folder, guard, rolesets, queue, options } = request;
    let ended = ResultPlaces::open(&folder, options.shard.index)?;
    let cancelled = CancelledKeys::open(&folder)?;
    let unfinished = shard.unfinished()?;
    let places = queue + options.concurrency;
    let (submissions_in, submissions) = mpsc::channel(places);
    // Each run in the channel has one of the places.
    let (lines_in, lines) = mpsc::channel(places + unfinished.len());
    let models = rolesets.iter().map(|name| format!("{PREFIX}{name}")).collect();
    let service = Arc::new(Service::new(guard, submissions_in, places, models, ended, cancelled));
    let options =
        Options { onlooker: Some(Arc::<Service>::clone(&service) as _), gives_up: false, ..options };
    let intake =
        Intake { service: Arc::clone(&service), columns, known: HashMap::new(), lines: lines_in, count: 0 };
    let mut stopping = stop.clone();
    let stopped = async move { drop(stopping.wait_for(|request| *request != StopRequest::None).await) };
    let (runs_ended, all_ended) = oneshot::channel::<()>();
    let all_ended = async { drop(all_ended.await) };
    let answers = tokio::spawn(listen(listener, router(Arc::clone(&service)), stopped, all_ended));
    let runs = run(shard, TaskReader::new(lines), &NoColumns, options, stop.clone(), &service);
    let told_to_stop = async {
        while stop.changed().await.is_ok() {
            service.stop_all(*stop.borrow_and_update());
        }
        std::future::pending::<()>().await;
    };
    let figures = tokio::select! {
        figures = runs => figures,
        () = async { tokio::join!(intake.run(unfinished, submissions), told_to_stop); } => unreachable!("it never ends"),
    };
    // Requests learn of the ends of their runs before the connections are closed.
    service.end_all();
    drop(runs_ended);
    let left = service.left().len() as u64;
    let figures = figures?;
    let _ = answers.await;
    Ok(Served { figures, left })
}
