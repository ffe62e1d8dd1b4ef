//! One piece of asynchronous work for one command.

/// Blocks on one piece of asynchronous work.
pub(super) fn block_on<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(work);
    // A thread that still reads documents is not waited for.
    runtime.shutdown_background();
    Ok(done)
}
