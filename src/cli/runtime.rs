//! Runs the asynchronous work of a command.

/// Runs one piece of asynchronous work to its end.
pub(super) fn block_on<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(work);
    // A thread that still reads documents does not delay the command.
    runtime.shutdown_background();
    Ok(done)
}
