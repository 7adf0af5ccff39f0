//! When the process is asked to stop.

/// Waits until the process is asked to stop: SIGTERM or SIGINT, or Ctrl-C where there are no signals.
pub async fn shutdown_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => tokio::select! {
                _ = terminate.recv() => {}
                () = interrupt() => {}
            },
            Err(error) => {
                tracing::warn!(%error, "cannot listen for SIGTERM");
                interrupt().await;
            }
        }
    }
    #[cfg(not(unix))]
    interrupt().await;
}

async fn interrupt() {
    if let Err(error) = tokio::signal::ctrl_c().await {
        tracing::warn!(%error, "cannot listen for Ctrl-C");
        std::future::pending::<()>().await;
    }
}
