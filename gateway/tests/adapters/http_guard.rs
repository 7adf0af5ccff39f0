//! Where agents over HTTP may not be: no connection is opened there, whoever names the address and however.

use futures_util::FutureExt;
use reach_core::access::{Caller, authorize};
use reach_core::task::event::Trace;
use reach_gateway::adapter::Adapter;
use reach_gateway::adapter::http::HttpAdapter;
use reach_gateway::clock::Clock;
use reach_gateway::gateway::Settings;
use reach_gateway::outbound::Guard;
use reach_schemas::{AgentCard, Effect, ErrorCode, Permission, Protocol};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::common;
use crate::contract::{LONG, PARAMS, agent, delivery, endpoint, failed, probing};

#[tokio::test]
async fn work_and_probes_go_to_no_address_that_is_not_permitted() {
    let clock = Clock::start();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let adapter = HttpAdapter::new(clock, Guard::of_endpoints(Vec::new()));
    let local = ["127.0.0.1", "127.1", "0x7f000001", "2130706433", "localhost", "[::ffff:127.0.0.1]", "[::1]"];
    for host in local.iter().chain(&["169.254.169.254", "10.0.0.1", "[fe80::1]"]) {
        for scheme in ["http", "https"] {
            let place = endpoint(Protocol::Http, format!("{scheme}://{host}:{port}/work"));
            let (failure, trace) = failed(adapter.deliver(&place, delivery(clock, Effect::Write, PARAMS, LONG)).await);
            assert_eq!((failure.code, trace), (ErrorCode::Unreachable, Trace::NotStarted), "{host}: {failure:?}");
            assert!(failure.message.starts_with("the address of the endpoint is"), "{host}: {}", failure.message);
            let told = adapter.probe(&place, &agent(), &probing(LONG)).await.unwrap_err();
            assert!(told.contains("is not a public address") || told.contains("link-local or metadata"), "{told}");
        }
    }
    assert!(listener.accept().now_or_never().is_none(), "it was connected to");
}

#[tokio::test]
async fn a_redirect_is_not_followed_wherever_it_leads() {
    let clock = Clock::start();
    let adapter = HttpAdapter::new(clock, Guard::of_endpoints(Guard::loopback()));
    let target = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let local = format!("http://{}/", target.local_addr().unwrap());
    for location in [local.as_str(), "http://169.254.169.254/latest/meta-data/", "http://localhost:1/"] {
        for status in ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let place = endpoint(Protocol::Http, format!("http://{}/", listener.local_addr().unwrap()));
            let answer = format!("HTTP/1.1 {status}\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
            let served = tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = vec![0; 64 * 1024];
                let _ = stream.read(&mut request).await.unwrap();
                stream.write_all(answer.as_bytes()).await.unwrap();
                listener
            });
            let delivered = adapter.deliver(&place, delivery(clock, Effect::Read, PARAMS, LONG)).await;
            let (failure, _) = failed(delivered);
            assert!(failure.message.contains("redirects are not followed"), "{status}: {}", failure.message);
            assert!(served.await.unwrap().accept().now_or_never().is_none(), "it was asked once");
        }
    }
    assert!(target.accept().now_or_never().is_none(), "the redirect was followed");
}

#[tokio::test]
async fn a_card_with_an_endpoint_where_nothing_may_be_is_refused_at_the_door() {
    let stop = CancellationToken::new();
    let _stopped = stop.clone().drop_guard();
    let register = async |endpoints: Option<Guard>, address: &str| {
        let usual = Settings::default();
        let settings = Settings { endpoints: endpoints.unwrap_or(usual.endpoints.clone()), ..usual };
        let gateway = common::gateway(settings, &stop);
        let card: AgentCard = serde_json::from_value(json!({
            "agent_id": "a@n", "capabilities": [{ "name": "work" }],
            "endpoints": [{ "protocol": "websocket" }, { "protocol": "http", "address": address }],
        }))
        .unwrap();
        let grant = authorize(Caller::OPERATOR, Permission::Serve).unwrap();
        gateway.register(grant, card, None).await.map(drop).map_err(|failure| (failure.code, failure.message))
    };
    for address in ["http://127.0.0.1:9000/work", "http://localhost/", "https://agents.example.com/", "http://8.8.8.8/"]
    {
        assert_eq!(register(None, address).await, Ok(()), "{address}");
    }
    let at = "endpoints[1].address: is";
    for address in
        ["http://10.0.0.1/", "http://192.168.1.1/", "http://169.254.169.254/latest", "http://[fd00:ec2::254]/"]
    {
        let (code, message) = register(None, address).await.unwrap_err();
        assert!(code == ErrorCode::InvalidCard && message.starts_with(at), "{address}: {message}");
    }
    let wide = || Some(Guard::of_endpoints(vec!["10.0.0.0/8".parse().unwrap(), "0.0.0.0/0".parse().unwrap()]));
    assert_eq!(register(wide(), "http://10.0.0.1/").await, Ok(()));
    assert!(register(wide(), "http://169.254.169.254/").await.unwrap_err().1.contains("nothing goes there"));
    let none = Some(Guard::of_endpoints(Vec::new()));
    assert!(register(none, "http://127.0.0.1:9000/").await.unwrap_err().1.contains("[endpoints] allow"));
}
