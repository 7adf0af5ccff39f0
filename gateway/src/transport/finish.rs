//! A call whose caller went away is given a moment more: what it had begun to store must also have its effects, and
//! a word that was sent and received must not be lost because its sender did not stay for the answer.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// How long a call goes on without its caller.
pub(super) const WITHOUT_CALLER: Duration = Duration::from_secs(5);

/// A future that goes on for [`WITHOUT_CALLER`] if it is dropped unfinished.
pub(super) struct Finishing<F>(Option<Pin<Box<F>>>)
where
    F: Future<Output: Send> + Send + 'static;

/// Has a future finish even if it is dropped, if that does not take long.
pub(super) fn finishing<F>(future: F) -> Finishing<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    Finishing(Some(Box::pin(future)))
}

impl<F> Future for Finishing<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // A future that has been ready, or panicked, is not polled again.
        let Some(mut future) = self.0.take() else { return Poll::Pending };
        let polled = future.as_mut().poll(cx);
        if polled.is_pending() {
            self.0 = Some(future);
        }
        polled
    }
}

impl<F> Drop for Finishing<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    fn drop(&mut self) {
        if let (Some(future), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(async move { tokio::time::timeout(WITHOUT_CALLER, future).await.is_ok() });
        }
    }
}

/// A future that goes on to its own end if it is dropped unfinished, and is told that nobody waits for it any more.
pub(super) struct GoingOn<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    future: Option<Pin<Box<F>>>,
    gone: CancellationToken,
}

/// Has a future go on even if it is dropped; `gone` is cancelled then, and it is for the future to end soon.
pub(super) fn going_on<F>(future: F, gone: CancellationToken) -> GoingOn<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    GoingOn { future: Some(Box::pin(future)), gone }
}

impl<F> Future for GoingOn<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(mut future) = self.future.take() else { return Poll::Pending };
        let polled = future.as_mut().poll(cx);
        if polled.is_pending() {
            self.future = Some(future);
        }
        polled
    }
}

impl<F> Drop for GoingOn<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    fn drop(&mut self) {
        if let (Some(future), Ok(runtime)) = (self.future.take(), Handle::try_current()) {
            self.gone.cancel();
            runtime.spawn(future);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_dropped_unfinished_goes_on_for_a_while() {
        for (takes, is_finished) in [(WITHOUT_CALLER / 2, true), (WITHOUT_CALLER * 2, false)] {
            let (done, is_done) = tokio::sync::oneshot::channel();
            let call = finishing(async move {
                tokio::time::sleep(takes).await;
                done.send(())
            });
            drop(call);
            assert_eq!(is_done.await.is_ok(), is_finished, "{takes:?}");
        }
    }
}
