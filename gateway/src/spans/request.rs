//! The span of one request. Whether it hangs under a caller's is known only when its parameters are read; one that takes on
//! no task and whose caller brought no trace has none.

use std::borrow::Cow;

use reach_schemas::Traceparent;

use super::{Ended, Scope, Side, Spans, Value};

/// A request that has come.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Over what it came: `http`, `websocket` or `stdio`.
    pub transport: &'static str,
    /// The trace that it belongs to, by its transport.
    pub parent: Option<Traceparent>,
}

impl Asked {
    /// Does what is asked for in a scope of its own, and records how long it took. `name` is the method or the route, and
    /// `flaw` says why an answer is none.
    pub async fn answer<T>(
        self,
        spans: &Spans,
        name: impl FnOnce() -> Cow<'static, str>,
        work: impl Future<Output = T>,
        flaw: impl FnOnce(&T) -> Option<String>,
    ) -> T {
        let began = spans.now();
        let answered = async {
            let answer = work.await;
            (answer, Scope::current().unwrap_or_default())
        };
        let (answer, scope) = Scope::of_request(self.parent).within(answered).await;
        if let Some(context) = scope.span.filter(|context| spans.are_wanted(context)) {
            let mut attributes: Vec<(&'static str, Value)> = vec![("network.transport", self.transport.into())];
            attributes.extend(scope.reach_id.map(|id| ("reach_id", id.to_string().into())));
            spans.put(Ended {
                context,
                parent: scope.parent,
                is_parent_remote: scope.parent.is_some(),
                side: Side::Server,
                name: name(),
                began,
                ended: spans.now(),
                attributes,
                events: Vec::new(),
                error: flaw(&answer),
            });
        }
        answer
    }
}
