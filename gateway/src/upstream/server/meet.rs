//! Meeting a server: by one at a time, and not at once again when it could not be met.

use std::sync::Arc;
use std::time::Duration;

use reach_schemas::ServerState;
use tokio::time::{Instant, timeout, timeout_at};

use super::Server;
use crate::mcp::wire::Era;
use crate::upstream::link::Link;
use crate::upstream::reply::Fault;

/// The first wait before a server that could not be met is tried again; doubled each time.
const AGAIN: Duration = Duration::from_millis(250);
/// The longest.
const AGAIN_MAX: Duration = Duration::from_secs(30);
/// A server that was there for less than this and is lost was no better than one that could not be met.
const STEADY: Duration = Duration::from_secs(5);
/// A wait up to this is waited by whoever asks; with a longer one before it, the server is not there.
const PATIENCE: Duration = Duration::from_secs(1);

/// For how long a meeting that goes on takes the place of another. Starting a process is done by then.
const HELD: Duration = Duration::from_millis(500);

/// How meeting it went so far.
#[derive(Default)]
pub(super) struct Tries {
    pub(super) failed: u32,
    pub(super) not_before: Option<Instant>,
    pub(super) met_at: Option<Instant>,
    pub(super) era: Option<Era>,
}

impl Server {
    pub(super) async fn link(&self, until: Instant) -> Result<Arc<Link>, Fault> {
        match self.link.load_full() {
            Some(link) if !link.is_gone() => Ok(link),
            Some(_) | None => self.meet(None, until).await,
        }
    }

    /// Meets the server, unless another has done so meanwhile. `lost` is the link that leads nowhere any more. A meeting
    /// that has begun goes on though its caller does not wait.
    pub(super) async fn meet(&self, lost: Option<Arc<Link>>, until: Instant) -> Result<Arc<Link>, Fault> {
        let me = self.me.upgrade().expect("whoever asks holds the server");
        let meeting = tokio::spawn(async move { me.meet_now(lost).await });
        match timeout_at(until, meeting).await {
            Ok(Ok(met)) => met,
            Ok(Err(_)) => Err(Fault::NeverSent("meeting it broke off".to_owned())),
            Err(_) => Err(Fault::NeverSent("it was not there in time".to_owned())),
        }
    }

    async fn meet_now(&self, lost: Option<Arc<Link>>) -> Result<Arc<Link>, Fault> {
        let mut tries = self.meeting.lock().await;
        let is_lost = |link: &Arc<Link>| link.is_gone() || lost.as_ref().is_some_and(|lost| Arc::ptr_eq(lost, link));
        if let Some(link) = self.link.load_full().filter(|link| !is_lost(link)) {
            return Ok(link);
        }
        if self.stop.is_cancelled() {
            return Err(Fault::NeverSent("it was removed".to_owned()));
        }
        let now = Instant::now();
        if let Some(met_at) = tries.met_at.take().filter(|_| lost.is_none()) {
            tries.failed = if now - met_at < STEADY { tries.failed + 1 } else { 0 };
            tries.not_before = (tries.failed > 0).then(|| now + again(tries.failed));
        }
        let wait = tries.not_before.map_or(Duration::ZERO, |at| at.saturating_duration_since(now));
        if wait > PATIENCE {
            let why = self.state().why.unwrap_or_else(|| "it ends again and again".to_owned());
            self.note(ServerState::Down, Some(why.clone()));
            return Err(Fault::NeverSent(why));
        }
        tokio::time::sleep(wait).await;
        self.note(ServerState::Starting, None);
        let permit = self.shared.meeting.acquire().await;
        let until = Instant::now() + self.spec.start_timeout.into();
        let opened = timeout_at(until, holding(permit, self.open(tries.era, until))).await;
        let opened = opened
            .unwrap_or_else(|_| Err(Fault::NeverSent(format!("it was not there within {}", self.spec.start_timeout))));
        match opened {
            Ok(link) => {
                let link = Arc::new(link);
                (tries.not_before, tries.met_at, tries.era) = (None, Some(Instant::now()), Some(link.era()));
                self.link.store(Some(Arc::clone(&link)));
                self.note(ServerState::Up, None);
                self.met.send_modify(|count| *count += 1);
                Ok(link)
            }
            Err(fault) => {
                tries.failed += 1;
                tries.not_before = Some(Instant::now() + again(tries.failed));
                // It may be another server by now.
                tries.era = None;
                let why = fault.to_string();
                self.note(ServerState::Down, Some(why.clone()));
                Err(Fault::NeverSent(why))
            }
        }
    }

    async fn open(&self, era: Option<Era>, until: Instant) -> Result<Link, Fault> {
        match &self.uri {
            Some(uri) => {
                let headers = self.headers(true)?;
                Link::to_address(&self.shared.client, uri, &headers, until).await
            }
            None => Link::to_process(&self.spec, era, &self.changed, until).await,
        }
    }
}

/// Meets a server under a permit, which is given back early if that takes long: one that says nothing takes no work
/// either, and must not keep others from being met.
async fn holding<P, T>(permit: P, meeting: impl Future<Output = T>) -> T {
    let mut meeting = std::pin::pin!(meeting);
    if let Ok(met) = timeout(HELD, &mut meeting).await {
        return met;
    }
    drop(permit);
    meeting.await
}

fn again(failed: u32) -> Duration {
    AGAIN.saturating_mul(1 << failed.saturating_sub(1).min(10)).min(AGAIN_MAX)
}
