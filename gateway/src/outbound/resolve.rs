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

/// Resolves names to addresses that may be gone to, and to no others. A name that means none of these is an error. What it
/// answers is what is connected to: nothing asks again in between.
#[derive(Debug, Clone)]
pub struct Resolver {
    guard: Guard,
    names: Names,
}

/// Who knows what a name means.
#[derive(Debug, Clone)]
enum Names {
    /// The system.
    System,
    /// A test: what it means each time that it is asked.
    #[cfg(test)]
    Given(tests::Given),
}

impl Names {
    async fn mean(&self, name: &str) -> std::io::Result<Vec<SocketAddr>> {
        match self {
            Self::System => tokio::net::lookup_host((name, 0)).await.map(Iterator::collect),
            #[cfg(test)]
            Self::Given(given) => Ok(given.next(name)),
        }
    }
}

impl Resolver {
    /// One that asks the system, and judges what it says.
    #[must_use]
    pub const fn new(guard: Guard) -> Self {
        Self { guard, names: Names::System }
    }

    fn look_up(&self, name: String) -> BoxFuture<'static, Result<vec::IntoIter<SocketAddr>, Failed>> {
        let Self { guard, names } = self.clone();
        async move {
            let mut permitted = Vec::new();
            let mut refused = None;
            for found in names.mean(&name).await? {
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

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use bytes::Bytes;
    use http::Request;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::Instant;

    use super::*;
    use crate::outbound::{Client, Silence};

    /// A name server that may say another thing each time that it is asked.
    #[derive(Debug, Clone)]
    pub(super) struct Given {
        answers: Arc<Mutex<Vec<Vec<IpAddr>>>>,
        asked: Arc<Mutex<usize>>,
    }

    impl Given {
        /// In this order; the last one stays.
        fn saying(answers: &[&[&str]]) -> Self {
            let read = |answer: &&[&str]| answer.iter().map(|ip| ip.parse().unwrap()).collect();
            let answers = answers.iter().rev().map(read).collect();
            Self { answers: Arc::new(Mutex::new(answers)), asked: Arc::default() }
        }

        pub(super) fn next(&self, _: &str) -> Vec<SocketAddr> {
            *self.asked.lock().unwrap() += 1;
            let mut answers = self.answers.lock().unwrap();
            let answer = if answers.len() > 1 { answers.pop().unwrap() } else { answers[0].clone() };
            answer.into_iter().map(|ip| (ip, 0).into()).collect()
        }
    }

    /// A server on this machine that answers whoever comes, and counts them.
    async fn inner() -> (u16, Arc<Mutex<usize>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, count) = (listener.local_addr().unwrap().port(), Arc::<Mutex<usize>>::default());
        let counted = Arc::clone(&count);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                *counted.lock().unwrap() += 1;
                let _ = stream.read(&mut [0; 1024]).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await;
            }
        });
        (port, count)
    }

    async fn ask(guard: Guard, given: &Given, scheme: &str, port: u16) -> Result<(), Silence> {
        let client = Client::over(Resolver { guard, names: Names::Given(given.clone()) });
        let request = Request::post(format!("{scheme}://agent.example:{port}/")).body(Bytes::new()).unwrap();
        client.send(request, Instant::now() + Duration::from_secs(30)).await.map(drop)
    }

    #[tokio::test]
    async fn a_name_that_means_another_address_by_the_time_of_the_connection_leads_nowhere() {
        let (port, connected) = inner().await;
        for scheme in ["http", "https"] {
            for inside in
                ["127.0.0.1", "::ffff:127.0.0.1", "169.254.169.254", "::ffff:a9fe:a9fe", "fd00:ec2::254", "10.0.0.1"]
            {
                // When the card was checked it meant a public address; now it means one inside.
                let given = Given::saying(&[&["8.8.8.8"], &[inside]]);
                assert_eq!(given.next("agent.example").len(), 1);
                let refused = ask(Guard::of_endpoints(Vec::new()), &given, scheme, port).await;
                let Err(Silence::NeverSent(why)) = refused else { panic!("{inside}: {refused:?}") };
                assert!(why.contains("not a public address") || why.contains("nothing goes there"), "{why}");
            }
        }
        assert_eq!(*connected.lock().unwrap(), 0);
    }

    #[tokio::test]
    async fn what_was_judged_is_what_is_connected_to_and_nothing_asks_again() {
        let (port, connected) = inner().await;
        // Allowed at first; whoever asked a second time would be led to the metadata.
        let given = Given::saying(&[&["127.0.0.1"], &["169.254.169.254"]]);
        ask(Guard::of_endpoints(Guard::loopback()), &given, "http", port).await.unwrap();
        assert_eq!((*given.asked.lock().unwrap(), *connected.lock().unwrap()), (1, 1));
    }

    #[tokio::test]
    async fn of_several_addresses_only_those_are_tried_that_may_be_gone_to() {
        let (port, connected) = inner().await;
        let given = Given::saying(&[&["169.254.169.254", "10.0.0.1", "127.0.0.1"]]);
        ask(Guard::of_endpoints(Guard::loopback()), &given, "http", port).await.unwrap();
        assert_eq!(*connected.lock().unwrap(), 1);
        let found = Resolver { guard: Guard::of_endpoints(Guard::loopback()), names: Names::Given(given) };
        let found: Vec<SocketAddr> = found.look_up("agent.example".to_owned()).await.unwrap().collect();
        assert_eq!(found, ["127.0.0.1:0".parse().unwrap()]);
    }
}
