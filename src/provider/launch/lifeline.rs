//! What those who call a launched server know of its life.

use std::time::Duration;

use tokio::sync::watch;

use super::error::LaunchError;
use crate::provider::error::ProviderError;

/// How long a broken call waits to hear whether its server has died.
const NEWS_MAX: Duration = Duration::from_secs(3);

/// How a launched server is doing.
#[derive(Clone, Debug)]
pub(super) enum Life {
    /// It answers; it was started this many times.
    Ready(u32),
    /// It died and is starting again.
    Starting,
    /// It died for good.
    Dead(LaunchError),
}

/// Tells calls how their server is doing.
#[derive(Clone, Debug)]
pub struct Lifeline {
    pub(super) life: watch::Receiver<Life>,
    pub(super) base_url: String,
}

impl Lifeline {
    /// Returns true if calls to this base URL go to the launched server.
    #[must_use]
    pub fn serves(&self, base_url: &str) -> bool {
        self.base_url == base_url
    }

    /// Waits until the server answers, and returns how often it was started.
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
                let why = LaunchError::Start("it was ended".to_owned());
                return Err(ProviderError::Launch(Box::new(why)));
            }
        }
    }

    /// Returns true if the server has died since it was started for the `starts`th time; waits a
    /// moment for the news, since a broken connection is noticed before an ended process.
    pub(in crate::provider) async fn died_since(&self, starts: u32) -> bool {
        let mut life = self.life.clone();
        let news = life.wait_for(|now| !matches!(now, Life::Ready(count) if *count == starts));
        tokio::time::timeout(NEWS_MAX, news).await.is_ok_and(|news| news.is_ok())
    }
}
