//! Noticing that a server has changed, or is gone.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Server;
use crate::mcp::wire::Era;
use crate::upstream::ask::Ask;
use crate::upstream::http::Ended;

/// How long to wait before changes are listened for again.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);

impl Server {
    /// Asks whether it is there.
    ///
    /// # Errors
    /// It is not: why.
    pub async fn ping(&self, until: Instant) -> Result<(), String> {
        let link = self.link(until).await.map_err(|fault| fault.to_string())?;
        let method = match link.era() {
            Era::Handshake => "ping",
            Era::Stateless => "server/discover",
        };
        // An answer of any kind is a sign of life.
        self.ask(&Ask { method, ..Ask::default() }, until, &mut |_| {})
            .await
            .map(drop)
            .map_err(|fault| fault.to_string())
    }

    /// Returns when what the server offers may have changed: it said so, or it was met anew, or it is lost.
    pub async fn offers_may_have_changed(&self) {
        let mut met = self.met.subscribe();
        let Some(link) = self.link.load_full() else { return };
        let listening = async {
            loop {
                let changed = Arc::clone(&self.changed);
                match link
                    .listen(&mut |word| {
                        if word.method.ends_with("/list_changed") {
                            changed.notify_one()
                        }
                    })
                    .await
                {
                    Ended::NotGiven => std::future::pending::<()>().await,
                    Ended::SessionGone => {
                        let until = Instant::now() + self.spec.start_timeout.into();
                        // If it cannot be met now, it is when it is needed.
                        let _ = self.meet(Some(Arc::clone(&link)), until).await;
                        return;
                    }
                    Ended::Cut if link.is_gone() => return,
                    Ended::Cut => {
                        tokio::time::sleep(LISTEN_AGAIN).await;
                        let until = Instant::now() + self.spec.start_timeout.into();
                        // What it is after its stream broke may differ from what it was.
                        if self.ping(until).await.is_ok() {
                            return;
                        }
                    }
                }
            }
        };
        tokio::select! {
            () = listening => {}
            () = self.changed.notified() => {}
            _ = met.changed() => {}
        }
    }
}
