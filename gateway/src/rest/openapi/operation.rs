//! One operation of the document: what goes in, and what may come out.

use reach_schemas::call::GatewayHealth;
use reach_schemas::{AgentId, ErrorCode, IdempotencyKey, Method, Span, TaskId, Traceparent, WebhookId};
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::super::routes::{Operation, Route};
use super::schema_of;

/// What the document says of one route, apart from its schemas.
struct Words {
    /// The method that does the same over JSON-RPC.
    twin: Option<Method>,
    id: &'static str,
    summary: &'static str,
    /// Where the method's parameters are given.
    takes: Takes,
    /// Each status of success, with what it means and what its body is.
    answers: &'static [(u16, &'static str, Gives)],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    Body,
    /// A body that is a task to take on, and the headers that go with one.
    Submit,
    Query,
    /// How long to wait.
    Wait,
    Rpc,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Gives {
    Nothing,
    /// The method's result.
    Result,
    /// Any JSON.
    Any,
    Markdown,
    Metrics,
    Health,
}

const fn like(method: Method, id: &'static str, takes: Takes) -> Words {
    Words { twin: Some(method), id, summary: method.summary(), takes, answers: &[(200, "Done.", Gives::Result)] }
}

const REACHED: &[(u16, &str, Gives)] = &[
    (200, "The task completed; `result` is as the agent wrote it.", Gives::Result),
    (202, "The wait is over and the task is not: look again at `Location`.", Gives::Result),
];

const RPC: Words = Words {
    twin: None,
    id: "rpc",
    summary: "Answers a JSON-RPC 2.0 request, notification or batch.",
    takes: Takes::Rpc,
    answers: &[(200, "The answer, errors included.", Gives::Any), (204, "Nothing may be said.", Gives::Nothing)],
};

const RPC_SOCKET: Words = itself(
    "rpcSocket",
    "Opens a WebSocket for JSON-RPC 2.0, over which agents are pushed their work.",
    &[(101, "Each message is one frame, either way.", Gives::Nothing)],
);

fn words(operation: Operation) -> Words {
    match operation {
        Operation::Rpc => RPC,
        Operation::RpcSocket => RPC_SOCKET,
        Operation::AgentRegister => like(Method::AgentRegister, "registerAgent", Takes::Body),
        Operation::AgentHeartbeat => like(Method::AgentHeartbeat, "heartbeat", Takes::Body),
        Operation::AgentInvoke => Words {
            summary: "Asks one agent, and waits for the end. The body is a task without `to_agent`.",
            answers: REACHED,
            ..like(Method::Reach, "invokeAgent", Takes::Submit)
        },
        Operation::AgentList => like(Method::AgentList, "listAgents", Takes::Query),
        Operation::AgentGet => like(Method::AgentGet, "getAgent", Takes::Nothing),
        Operation::CapabilityFind => like(Method::CapabilityFind, "findCapabilities", Takes::Query),
        Operation::Reach => Words { answers: REACHED, ..like(Method::Reach, "reach", Takes::Submit) },
        Operation::TaskSubmit => Words {
            answers: &[
                (202, "Taken on; `Location` is where to look.", Gives::Result),
                (200, "The same as an earlier request with this key: the same task.", Gives::Result),
            ],
            ..like(Method::TaskSubmit, "submitTask", Takes::Submit)
        },
        Operation::TaskList => like(Method::TaskList, "listTasks", Takes::Query),
        Operation::TaskGet => like(Method::TaskGet, "getTask", Takes::Nothing),
        Operation::TaskResult => Words {
            summary: "Gives a task's result, as the agent wrote it, or the problem if it did not end well.",
            answers: &[
                (200, "The result.", Gives::Any),
                (202, "Not ended yet: the task as it is now. Look again after `Retry-After`.", Gives::Result),
            ],
            ..like(Method::TaskWait, "getTaskResult", Takes::Wait)
        },
        Operation::TaskCancel => like(Method::TaskCancel, "cancelTask", Takes::Nothing),
        Operation::TaskExplain => like(Method::TaskExplain, "explainTask", Takes::Nothing),
        Operation::DeadLetterList => like(Method::DeadLetterList, "listDeadLetters", Takes::Query),
        Operation::DeadLetterRedrive => like(Method::DeadLetterRedrive, "redriveDeadLetters", Takes::Body),
        Operation::HumanList => like(Method::HumanList, "listBeforePeople", Takes::Query),
        Operation::HumanTake => like(Method::HumanTake, "takeAsPerson", Takes::Body),
        Operation::HumanAnswer => like(Method::HumanAnswer, "answerAsPerson", Takes::Body),
        Operation::HumanRefuse => like(Method::HumanRefuse, "refuseAsPerson", Takes::Body),
        Operation::HumanReturn => like(Method::HumanReturn, "returnAsPerson", Takes::Body),
        Operation::WebhookList => like(Method::WebhookList, "listWebhooks", Takes::Query),
        Operation::WebhookGet => like(Method::WebhookGet, "getWebhook", Takes::Nothing),
        Operation::WebhookRetry => like(Method::WebhookRetry, "retryWebhooks", Takes::Body),
        Operation::Health => {
            itself("health", "Tells whether the gateway could take a task on.", &[(200, "It could.", Gives::Health)])
        }
        Operation::Overview => like(Method::MetricsOverview, "overview", Takes::Query),
        Operation::Metrics => itself(
            "metrics",
            "Gives everything that is measured in the text form of Prometheus, or of OpenMetrics if that is accepted.",
            &[(200, "The metrics.", Gives::Metrics)],
        ),
        Operation::OpenApi => itself("openApi", "Describes every route.", &[(200, "This document.", Gives::Any)]),
        Operation::ErrorIndex => {
            itself("errorIndex", "Lists all errors with their pages.", &[(200, "The list.", Gives::Markdown)])
        }
        Operation::ErrorPage => {
            itself("errorPage", "Says what an error means and what to do.", &[(200, "The page.", Gives::Markdown)])
        }
    }
}

const fn itself(id: &'static str, summary: &'static str, answers: &'static [(u16, &'static str, Gives)]) -> Words {
    Words { twin: None, id, summary, takes: Takes::Nothing, answers }
}

/// An operation whose schemas are known to the generator.
pub(super) struct Described {
    words: Words,
    path: &'static str,
    params: Value,
    result: Value,
    part: Option<(&'static str, Value)>,
    headers: Vec<Value>,
    wait: Value,
    health: Value,
}

impl Described {
    pub(super) fn new(route: &Route, generator: &mut SchemaGenerator) -> Self {
        let words = words(route.operation);
        let (params, result) = match words.twin {
            Some(method) => {
                let (params, result) = method.schemas(generator);
                (params.to_value(), result.to_value())
            }
            None => (Value::Null, Value::Null),
        };
        let part = match route.path.split_once('{') {
            None => None,
            Some((_, "name}")) => Some(("name", schema_of::<ErrorCode>(generator))),
            Some((path, _)) if path.starts_with("/webhooks") => Some(("id", schema_of::<WebhookId>(generator))),
            Some((path, _)) if path.starts_with("/agent") => Some(("id", schema_of::<AgentId>(generator))),
            Some(_) => Some(("id", schema_of::<TaskId>(generator))),
        };
        let headers = match words.takes {
            Takes::Submit => vec![idempotency_key(generator), traceparent(generator)],
            Takes::Rpc => vec![traceparent(generator)],
            Takes::Nothing | Takes::Body | Takes::Query | Takes::Wait => Vec::new(),
        };
        let (wait, health) = (schema_of::<Span>(generator), schema_of::<GatewayHealth>(generator));
        Self { words, path: route.path, params, result, part, headers, wait, health }
    }

    /// The operation, once all schemas are known by name.
    pub(super) fn into_json(self, schemas: &Map<String, Value>) -> Value {
        let mut operation = json!({
            "operationId": self.words.id,
            "summary": self.words.summary,
            "tags": [self.tag()],
            "responses": self.responses(),
        });
        if let Some(method) = self.words.twin {
            operation["x-method"] = method.name().into();
        }
        match self.words.takes {
            Takes::Body | Takes::Submit => operation["requestBody"] = body(self.params.clone()),
            Takes::Rpc => operation["requestBody"] = body(json!({ "type": ["object", "array"] })),
            Takes::Nothing | Takes::Query | Takes::Wait => {}
        }
        let parameters = self.parameters(schemas);
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        operation
    }

    fn tag(&self) -> &'static str {
        match self.path.split('/').nth(1) {
            Some("agent" | "agents" | "capabilities") => "agents",
            Some("reach" | "tasks" | "dead-letters") => "tasks",
            Some("human") => "people",
            Some("webhooks") => "webhooks",
            Some("rpc") => "json-rpc",
            Some(_) | None => "gateway",
        }
    }

    fn parameters(self, schemas: &Map<String, Value>) -> Vec<Value> {
        let mut parameters = Vec::new();
        if let Some((name, schema)) = self.part {
            parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
        }
        match self.words.takes {
            Takes::Query => parameters.extend(query(&self.params, schemas)),
            Takes::Wait => parameters.push(json!({
                "name": "wait", "in": "query", "schema": self.wait,
                "description": "How long to wait for the end, at most 5 min. None: not at all.",
            })),
            Takes::Nothing | Takes::Body | Takes::Submit | Takes::Rpc => {}
        }
        parameters.extend(self.headers);
        parameters
    }

    fn responses(&self) -> Value {
        let mut responses = Map::new();
        for (status, description, gives) in self.words.answers {
            let mut response = json!({ "description": description });
            if let Some((media, schema)) = self.content(*gives) {
                response["content"] = json!({ media: { "schema": schema } });
            }
            responses.insert(status.to_string(), response);
        }
        responses.insert("default".to_owned(), json!({ "$ref": "#/components/responses/Problem" }));
        Value::Object(responses)
    }

    fn content(&self, gives: Gives) -> Option<(&'static str, Value)> {
        match gives {
            Gives::Nothing => None,
            Gives::Result => Some(("application/json", self.result.clone())),
            Gives::Any => Some(("application/json", json!({}))),
            Gives::Metrics => Some(("text/plain", json!({ "type": "string" }))),
            Gives::Markdown => Some(("text/markdown", json!({ "type": "string" }))),
            Gives::Health => Some(("application/json", self.health.clone())),
        }
    }
}

fn body(schema: Value) -> Value {
    json!({ "required": true, "content": { "application/json": { "schema": schema } } })
}

fn idempotency_key(generator: &mut SchemaGenerator) -> Value {
    json!({
        "name": "Idempotency-Key", "in": "header", "schema": schema_of::<IdempotencyKey>(generator),
        "description": "The caller's name for this intention, with or without quotes: the same as `idempotency_key` of the body.",
    })
}

fn traceparent(generator: &mut SchemaGenerator) -> Value {
    json!({
        "name": "traceparent", "in": "header", "schema": schema_of::<Traceparent>(generator),
        "description": "W3C trace context, carried to the agent if the body names no other. A malformed one is left out.",
    })
}

/// The fields of a method's parameters, as parameters of a query.
fn query(params: &Value, schemas: &Map<String, Value>) -> Vec<Value> {
    let name = params["$ref"].as_str().and_then(|target| target.rsplit('/').next()).unwrap_or_default();
    let fields = schemas.get(name).and_then(|schema| schema["properties"].as_object());
    let parameter = |(name, schema): (&String, &Value)| {
        let mut schema = schema.clone();
        let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        json!({ "name": name, "in": "query", "schema": schema, "description": description })
    };
    fields.into_iter().flatten().map(parameter).collect()
}
