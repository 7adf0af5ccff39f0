//! Names become addresses here, each time anew, and every one of them is judged before it is connected to: a name can be made
//! to mean anything at any time.

use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::vec;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hyper_util::client::legacy::connect::dns;

use super::address::Guard;

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Resolves names to addresses that may be gone to, and to no others. A name that means none of these is an error.
#[derive(Debug, Clone)]
pub struct Resolver(pub Guard);

impl Resolver {
    fn look_up(&self, name: String) -> BoxFuture<'static, Result<vec::IntoIter<SocketAddr>, Failed>> {
        let guard = self.0.clone();
        async move {
            let mut permitted = Vec::new();
            let mut refused = None;
            for found in tokio::net::lookup_host((name.as_str(), 0)).await? {
                match guard.judge(found.ip()) {
                    Ok(()) => permitted.push(found),
                    Err(why) => refused = Some(why),
                }
            }
            match (permitted.is_empty(), refused) {
                (true, Some(why)) => Err(why.into()),
                (_, _) => Ok(permitted.into_iter()),
            }
        }
        .boxed()
    }
}

impl reqwest::dns::Resolve for Resolver {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let found = self.look_up(name.as_str().to_owned());
        Box::pin(async move { Ok(Box::new(found.await?) as reqwest::dns::Addrs) })
    }
}

impl tower::Service<dns::Name> for Resolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = Failed;
    type Future = BoxFuture<'static, Result<Self::Response, Failed>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: dns::Name) -> Self::Future {
        self.look_up(name.as_str().to_owned())
    }
}
