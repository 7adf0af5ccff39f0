//! A body that ends early when something happens, with a last word.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

/// A body, and what ends it, which may have something more to say.
pub(super) struct Until {
    pub(super) body: Body,
    pub(super) ended: Pin<Box<dyn Future<Output = Option<Bytes>> + Send>>,
}

impl HttpBody for Until {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Poll::Ready(last) = self.ended.as_mut().poll(cx) {
            // It is not asked again.
            self.ended = Box::pin(std::future::pending());
            self.body = last.map_or_else(Body::empty, Body::from);
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_body_goes_on_until_it_is_ended() {
        let (end, ended) = oneshot::channel::<Bytes>();
        let (say, said) = tokio::sync::mpsc::channel::<Result<Bytes, std::convert::Infallible>>(1);
        let stream = futures_util::stream::unfold(said, |mut said| async { Some((said.recv().await?, said)) });
        let ended = Box::pin(async move { ended.await.ok() });
        let mut body = Until { body: Body::from_stream(stream), ended };
        say.send(Ok(Bytes::from_static(b"a"))).await.unwrap();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, "a");
        end.send(Bytes::from_static(b"z")).unwrap();
        let last = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(last, "z");
        assert!(body.frame().await.is_none() && body.frame().await.is_none());
        drop(say);
    }
}
