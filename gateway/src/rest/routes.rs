//! Every route of the port: one table, from which the router and the OpenAPI document are both made.

use http::Method as Verb;

/// What a route does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// JSON-RPC over HTTP.
    Rpc,
    /// JSON-RPC over WebSocket.
    RpcSocket,
    /// Registers an agent.
    AgentRegister,
    /// Takes an agent's heartbeat.
    AgentHeartbeat,
    /// Asks one agent, and waits.
    AgentInvoke,
    /// Lists agents.
    AgentList,
    /// Shows one agent.
    AgentGet,
    /// Finds capabilities.
    CapabilityFind,
    /// Asks whoever fits, and waits.
    Reach,
    /// Takes a task on.
    TaskSubmit,
    /// Lists tasks.
    TaskList,
    /// Shows one task.
    TaskGet,
    /// Gives a task's result.
    TaskResult,
    /// Calls a task off.
    TaskCancel,
    /// Shows the decisions taken for a task.
    TaskExplain,
    /// Lists dead letters.
    DeadLetterList,
    /// Sends dead letters again.
    DeadLetterRedrive,
    /// Lists what waits for a person.
    HumanList,
    /// Takes a task for a person.
    HumanTake,
    /// Answers it.
    HumanAnswer,
    /// Refuses it.
    HumanRefuse,
    /// Puts it back.
    HumanReturn,
    /// Lists webhooks.
    WebhookList,
    /// Shows one webhook.
    WebhookGet,
    /// Sends webhooks again.
    WebhookRetry,
    /// Tells whether the gateway is well.
    Health,
    /// Shows how well tasks reach their agents.
    Overview,
    /// The same and more, for a monitoring system.
    Metrics,
    /// Describes the routes.
    OpenApi,
    /// Lists all errors.
    ErrorIndex,
    /// Shows the page of an error.
    ErrorPage,
}

/// One method on one path.
#[derive(Debug)]
pub struct Route {
    /// The HTTP method.
    pub verb: Verb,
    /// The path; the part in braces may be anything.
    pub path: &'static str,
    /// What it does.
    pub operation: Operation,
}

const fn get(path: &'static str, operation: Operation) -> Route {
    Route { verb: Verb::GET, path, operation }
}

const fn post(path: &'static str, operation: Operation) -> Route {
    Route { verb: Verb::POST, path, operation }
}

/// Every route.
pub static ROUTES: &[Route] = &[
    post("/rpc", Operation::Rpc),
    get("/rpc/ws", Operation::RpcSocket),
    post("/agent/register", Operation::AgentRegister),
    post("/agent/heartbeat", Operation::AgentHeartbeat),
    post("/agent/{id}/invoke", Operation::AgentInvoke),
    get("/agents", Operation::AgentList),
    get("/agents/{id}", Operation::AgentGet),
    get("/capabilities", Operation::CapabilityFind),
    post("/reach", Operation::Reach),
    post("/tasks", Operation::TaskSubmit),
    get("/tasks", Operation::TaskList),
    get("/tasks/{id}", Operation::TaskGet),
    get("/tasks/{id}/result", Operation::TaskResult),
    post("/tasks/{id}/cancel", Operation::TaskCancel),
    get("/tasks/{id}/explain", Operation::TaskExplain),
    get("/dead-letters", Operation::DeadLetterList),
    post("/dead-letters/redrive", Operation::DeadLetterRedrive),
    get("/human", Operation::HumanList),
    post("/human/take", Operation::HumanTake),
    post("/human/answer", Operation::HumanAnswer),
    post("/human/refuse", Operation::HumanRefuse),
    post("/human/return", Operation::HumanReturn),
    get("/webhooks", Operation::WebhookList),
    get("/webhooks/{id}", Operation::WebhookGet),
    post("/webhooks/retry", Operation::WebhookRetry),
    get("/healthz", Operation::Health),
    get("/overview", Operation::Overview),
    get("/metrics", Operation::Metrics),
    get("/openapi.json", Operation::OpenApi),
    get("/errors", Operation::ErrorIndex),
    get("/errors/{name}", Operation::ErrorPage),
];
