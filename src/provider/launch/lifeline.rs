//! The state of a launched server, as its callers know it.

use std::time::Duration;

use tokio::sync::watch;

use super::error::LaunchError;
use crate::provider::error::ProviderError;

/// The time for which a broken call waits for the news that its server has died.
const NEWS_MAX: Duration = Duration::from_secs(3);

/// The state of a launched server.
#[derive(Clone, Debug)]
pub(super) enum Life {
    /// The server answers; it was started this many times.
    Ready(u32),
    /// The server died and is starting again.
    Starting,
    /// The server died for good.
    Dead(LaunchError),
}

/// A receiver through which calls learn the state of their server.
#[derive(Clone, Debug)]
pub struct Lifeline {
    pub(super) life: watch::Receiver<Life>,
    pub(super) base_url: String,
}

impl Lifeline {
    /// Returns true if calls to this base URL go to the launched server.
    pub fn serves(&self, base_url: &str) -> bool {
        self.base_url == base_url
    }

    /// Waits until the server answers, and returns the number of times that it was started.
    pub(in crate::provider) async fn ready(&self) -> Result<u32, ProviderError> {
        let mut life = self.life.clone();
        loop {
            let now = life.borrow_and_update().clone();
            match now {
                Life::Ready(starts) => return Ok(starts),
                Life::Dead(why) => return Err(ProviderError::Launch(Box::new(why))),
                Life::Starting => {}
            }
            if life.changed().await.is_err() {
                let why = LaunchError::Start("it has been stopped".to_owned());
                return Err(ProviderError::Launch(Box::new(why)));
            }
        }
    }

    /// Returns true if the server has died since it was started for the `starts`th time. It waits a moment for the
    /// news, because a broken connection is noticed before an ended process.
    pub(in crate::provider) async fn died_since(&self, starts: u32) -> bool {
        let mut life = self.life.clone();
        let news = life.wait_for(|now| !matches!(now, Life::Ready(count) if *count == starts));
        tokio::time::timeout(NEWS_MAX, news).await.is_ok_and(|news| news.is_ok())
    }
}
