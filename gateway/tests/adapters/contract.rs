//! What every adapter promises, whatever it speaks: checked against peers that behave in each of these ways.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reach_core::task::event::Trace;
use reach_gateway::adapter::{Adapter, Delivered};
use reach_gateway::clock::Clock;
use reach_schemas::{
    AgentId, Delivery, Effect, Endpoint, ErrorCode, Failure, FencingToken, ProbePolicy, Protocol, RawJson, Span, TaskId,
};

/// How long the peer that never answers is waited for.
const PATIENCE: Duration = Duration::from_millis(300);
/// How long any other peer may take at most.
pub(crate) const LONG: Span = Span::from_secs(10);

/// Peers of one protocol.
pub(crate) struct Peers {
    pub(crate) adapter: Arc<dyn Adapter>,
    pub(crate) clock: Clock,
    /// Works, and what comes of a delivery to it.
    pub(crate) well: (Endpoint, Delivered),
    /// Takes a delivery and says nothing.
    pub(crate) silent: Endpoint,
    /// Takes a delivery and is gone.
    pub(crate) dying: Endpoint,
    /// Is not there.
    pub(crate) absent: Endpoint,
}

/// An endpoint of version 1.
pub(crate) fn endpoint(protocol: Protocol, address: impl Into<String>) -> Endpoint {
    Endpoint { protocol, version: "1".to_owned(), address: address.into() }
}

/// An agent's id.
pub(crate) fn agent() -> AgentId {
    "worker@tests".parse().unwrap()
}

/// The agent at an endpoint: a connected one is found by its name, so the address is its name here.
pub(crate) fn agent_at(endpoint: &Endpoint) -> AgentId {
    if endpoint.protocol == Protocol::Websocket {
        format!("{}@tests", endpoint.address).parse().unwrap()
    } else {
        agent()
    }
}

/// A delivery with the given parameters.
pub(crate) fn delivery(clock: Clock, effect: Effect, params: &str, within: impl Into<Span>) -> Delivery {
    Delivery {
        task_id: TaskId::from_parts(clock.now().as_ms(), number_of(params)),
        token: FencingToken(7),
        attempt: 1,
        agent_id: agent(),
        capability: "do_it".parse().unwrap(),
        effect,
        params: Some(RawJson::parse(params).unwrap()),
        intent: None,
        from_agent: None,
        idempotency_key: "order 17".to_owned(),
        attempt_until: clock.now() + within.into(),
        deadline_at: clock.now() + Span::from_mins(1),
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().ok(),
    }
}

/// A probe that may take so long.
pub(crate) fn probing(timeout: Span) -> ProbePolicy {
    ProbePolicy { timeout, ..ProbePolicy::default() }
}

/// The failure of a delivery and what is known of the work.
#[track_caller]
pub(crate) fn failed(delivered: Delivered) -> (Failure, Trace) {
    match delivered {
        Delivered::Failed { failure, trace } => (failure, trace),
        other @ (Delivered::Done { .. } | Delivered::Accepted) => panic!("a failure was expected, not {other:?}"),
    }
}

/// A result as it came.
pub(crate) fn done(text: &str) -> Delivered {
    Delivered::Done { result: RawJson::parse(text).unwrap(), token_count: None }
}

impl Peers {
    /// Hands out work over the adapter.
    pub(crate) async fn deliver(&self, to: &Endpoint, effect: Effect, within: impl Into<Span>) -> Delivered {
        let delivery = delivery(self.clock, effect, PARAMS, within);
        self.adapter.deliver(to, Delivery { agent_id: agent_at(to), ..delivery }).await
    }

    /// Checks every promise.
    pub(crate) async fn keep_the_contract(&self) {
        let (well, expected) = &self.well;
        assert_eq!(self.deliver(well, Effect::Write, LONG).await, *expected, "well");
        self.adapter.probe(well, &agent_at(well), &probing(LONG)).await.expect("a peer that is well passes the probe");

        let begun = Instant::now();
        let (failure, trace) = failed(self.deliver(&self.silent, Effect::Read, PATIENCE).await);
        assert_eq!((failure.code, trace), (ErrorCode::Timeout, Trace::Unknown), "silent: {failure:?}");
        // Instants of the wire are whole milliseconds.
        let took = begun.elapsed();
        assert!(took + Duration::from_millis(1) >= PATIENCE && took < PATIENCE * 5, "took {took:?}");

        for effect in [Effect::Read, Effect::Write] {
            let (failure, trace) = failed(self.deliver(&self.dying, effect, LONG).await);
            assert_eq!((failure.code, trace), (ErrorCode::AgentLost, Trace::Unknown), "dying: {failure:?}");
        }

        let (failure, trace) = failed(self.deliver(&self.absent, Effect::Write, LONG).await);
        assert_eq!((failure.code, trace), (ErrorCode::Unreachable, Trace::NotStarted), "absent: {failure:?}");
        let told = self
            .adapter
            .probe(&self.absent, &agent_at(&self.absent), &probing(LONG))
            .await
            .expect_err("nobody is there to be well");
        assert!(!told.is_empty());

        // Calling off what is not there harms nobody.
        for endpoint in [well, &self.absent] {
            self.adapter.cancel(endpoint, &agent_at(endpoint), TaskId::from_parts(1, 1), FencingToken(1)).await;
        }
        assert_eq!(self.deliver(well, Effect::Write, LONG).await, *expected, "well after all this");
    }
}

/// Parameters in which everything shows that must not be changed on the way.
pub(crate) const PARAMS: &str = r#"{"z":1.10,"a":123456789012345678901234567890,"text":"\u00e9 中文"}"#;

fn number_of(text: &str) -> u128 {
    text.bytes().fold(7, |sum, byte| sum * 31 % 1_000_003 + u128::from(byte))
}
