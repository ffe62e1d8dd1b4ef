//! The server from its start to its end.

use std::collections::HashMap;
use std::future::IntoFuture as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use super::error::ServeError;
use super::guard::Guard;
use super::http::router;
use super::intake::{Intake, PREFIX};
use super::service::Service;
use crate::batch::{BatchStats, Column, Columns, OpenColumns, Options, ResultPlaces, Shard, TaskReader, run};
use crate::engine::StopRequest;

/// The time that clients have to read their last bytes once all runs have ended.
const LAST_BYTES: Duration = Duration::from_secs(5);

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
    let unfinished = shard.unfinished()?;
    let places = queue + options.concurrency;
    let (orders_in, orders) = mpsc::channel(places);
    // Each run in the channel has one of the places.
    let (lines_in, lines) = mpsc::channel(places + unfinished.len());
    let models = rolesets.iter().map(|name| format!("{PREFIX}{name}")).collect();
    let service = Arc::new(Service::new(guard, orders_in, places, models, ended));
    let options =
        Options { onlooker: Some(Arc::<Service>::clone(&service) as _), gives_up: false, ..options };
    let intake =
        Intake { service: Arc::clone(&service), columns, known: HashMap::new(), lines: lines_in, count: 0 };
    let mut stopping = stop.clone();
    let stopped = async move { drop(stopping.wait_for(|request| *request != StopRequest::None).await) };
    let answers = axum::serve(listener, router(Arc::clone(&service))).with_graceful_shutdown(stopped);
    let answers = tokio::spawn(answers.into_future());
    let runs = run(shard, TaskReader::new(lines), &NoColumns, options, stop.clone(), &service);
    let told_to_stop = async {
        while stop.changed().await.is_ok() {
            service.stop_all(*stop.borrow_and_update());
        }
        std::future::pending::<()>().await;
    };
    let figures = tokio::select! {
        figures = runs => figures,
        () = async { tokio::join!(intake.run(unfinished, orders), told_to_stop); } => unreachable!("it never ends"),
    };
    let _ = tokio::time::timeout(LAST_BYTES, answers).await;
    Ok(Served { figures: figures?, left: service.left() })
}
