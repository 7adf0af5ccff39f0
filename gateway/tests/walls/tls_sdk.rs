//! The SDK over TLS: it trusts whom it was told to, shows its certificate where that is asked for, and says at once who does not
//! trust whom.

use std::sync::Arc;
use std::time::Duration;

use agent_reach_sdk::schemas::call::AgentList;
use agent_reach_sdk::{Agent, Client, ClientBuilder, Context, Effect, Error, Task, capability, card};
use reach_gateway::transport::Tls;
use reach_schemas::Capability;
use serde_json::{Value, json};

use super::tls::{Authority, serving, url};
use crate::common::Running;

const WITHIN: Duration = Duration::from_secs(30);

/// A client by HTTPS, and one by a WebSocket over TLS.
fn both(running: &Running, authority: &Authority) -> [ClientBuilder; 2] {
    let https = url(running, "");
    [https.clone(), https.replace("https", "wss")]
        .map(|url| Client::builder().url(url).ca_file(authority.path("ca.pem")))
}

async fn agents(builder: ClientBuilder) -> Result<usize, Error> {
    let list = AgentList { namespace: None, limit: None, after: None };
    let asked = async { builder.connect().await?.agents(&list).await };
    Ok(tokio::time::timeout(WITHIN, asked).await.expect("an answer in time")?.len())
}

#[tokio::test]
async fn agents_and_callers_speak_tls() {
    let authority = Authority::new("ours");
    authority.sign("port", "gateway");
    let running = serving(Arc::new(Tls::open(authority.files("port", None)).unwrap())).await;
    let [https, wss] = both(&running, &authority);
    let echo = Capability { effect: Effect::Read, ..capability("echo").unwrap() };
    let agent = Agent::builder(card("echo@tests").unwrap())
        .connection(https.clone())
        .capability(echo, |task: Task, _: Context| async move { task.params::<Value>() })
        .start()
        .await
        .unwrap();
    for builder in [https, wss] {
        let client = builder.connect().await.unwrap();
        let said = json!({ "say": "hello" });
        let task = client.task("echo").params(&said).submit().await.unwrap();
        let mut watch = client.watch(task.id()).unwrap();
        let done = task.wait().await.unwrap();
        assert_eq!(done.result::<Value>().unwrap(), said);
        let told = tokio::time::timeout(WITHIN, watch.next()).await.expect("a view in time").unwrap();
        assert!(told.is_some(), "a watch goes over TLS too");
    }
    drop(agent);
}

#[tokio::test]
async fn who_is_not_trusted_is_told_at_once() {
    let (authority, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    authority.sign("port", "gateway");
    authority.sign("caller", "agent");
    theirs.sign("caller", "agent");
    let running = serving(Arc::new(Tls::open(authority.files("port", Some(&authority))).unwrap())).await;
    let shows =
        |builder: ClientBuilder, of: &Authority| builder.client_cert(of.path("caller.pem"), of.path("caller.key"));
    for (builder, is_https) in both(&running, &authority).into_iter().zip([true, false]) {
        assert_eq!(agents(shows(builder.clone(), &authority)).await.unwrap(), 0);
        // Over HTTPS, why the connection was closed may not be known to the library any more when the call is lost.
        let told = |refused: Result<usize, Error>, says: &str| match refused {
            Err(Error::Config(why)) => assert!(why.contains(says), "{why}"),
            Err(Error::Transport { .. }) if is_https => {}
            other => panic!("{other:?}"),
        };
        told(agents(builder.clone()).await, "wants a certificate");
        told(agents(shows(builder, &theirs)).await, "does not trust our certificate");
    }
    for builder in both(&running, &theirs) {
        let refused = agents(shows(builder.clone(), &authority)).await.unwrap_err();
        assert!(matches!(&refused, Error::Config(why) if why.contains("not trusted")), "{refused}");
        let agent = Agent::builder(card("x@tests").unwrap()).connection(builder).start();
        let refused = tokio::time::timeout(WITHIN, agent).await.expect("an answer in time").err();
        assert!(matches!(refused, Some(Error::Config(_))), "it does not wait for a gateway that it does not trust");
    }
    let unreadable = Client::builder().url(url(&running, "")).ca_file(authority.path("port.key")).connect().await;
    assert!(matches!(&unreadable, Err(Error::Config(why)) if why.contains("port.key") && !why.contains("BEGIN")));
}
