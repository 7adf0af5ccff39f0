//! The one table of methods: name, what it needs permission for, and the types of its parameters and result.
//! JSON-RPC over HTTP, WebSocket and stdio, the REST routes, the SDKs and the conformance runner all go by it.

#[cfg(feature = "json-schema")]
use crate::call;

/// What a caller must be allowed to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// Be the agent that the call names.
    Serve,
    /// See agents and capabilities that it may call.
    Discover,
    /// Ask agents for work.
    Call,
    /// See tasks of its own.
    OwnTask,
    /// End tasks of its own.
    EndTask,
    /// Show a key or a join token, and be given a token for it. Whoever may not do anything yet may do this.
    Enrol,
    /// See how the gateway is, and what it has done.
    View,
    /// Operate the gateway.
    Operate,
    /// Change who may do what, and what runs on the gateway's own machine.
    Administer,
}

macro_rules! table {
    ($( $variant:ident = $name:literal, $permission:ident, $params:ty => $result:ty, $summary:literal; )*) => {
        /// A method of the gateway.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Method { $( #[doc = $summary] $variant, )* }

        impl Method {
            /// Every method, in the order of the table.
            pub const ALL: &'static [Self] = &[$( Self::$variant, )*];

            /// The name on the wire.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )* }
            }

            /// What a caller must be allowed to do.
            #[must_use]
            pub const fn permission(self) -> Permission {
                match self { $( Self::$variant => Permission::$permission, )* }
            }

            /// What it does, in a line.
            #[must_use]
            pub const fn summary(self) -> &'static str {
                match self { $( Self::$variant => $summary, )* }
            }

            /// The method with this name.
            #[must_use]
            pub fn by_name(name: &str) -> Option<Self> {
                match name { $( $name => Some(Self::$variant), )* _ => None }
            }

            /// The schemas of its parameters and its result.
            #[cfg(feature = "json-schema")]
            pub fn schemas(self, generator: &mut schemars::SchemaGenerator) -> (schemars::Schema, schemars::Schema) {
                match self {
                    $( Self::$variant => (generator.subschema_for::<$params>(), generator.subschema_for::<$result>()), )*
                }
            }
        }
    };
}

table! {
    AgentRegister = "agent/register", Serve, call::Register => call::Registered, "Registers an agent, or registers it again.";
    AgentHeartbeat = "agent/heartbeat", Serve, call::Heartbeat => call::HeartbeatAnswer, "Renews an agent's lease and reports its load.";
    AgentDrain = "agent/drain", Serve, call::AgentRef => call::Drained, "Sends an agent no new work; what it has may finish.";
    AgentDeregister = "agent/deregister", Serve, call::AgentRef => call::Drained, "Forgets an agent; what it has is taken back.";
    AgentGet = "agent/get", Discover, call::AgentRef => call::AgentView, "Shows one agent and how it is.";
    AgentList = "agent/list", Discover, call::AgentList => call::Agents, "Lists agents and how they are.";
    CapabilityFind = "capability/find", Discover, call::CapabilityFind => call::Capabilities, "Finds capabilities by words.";
    Reach = "reach", Call, call::Submit => crate::TaskView, "Submits a task and waits for its end.";
    Resolve = "resolve", Discover, call::Submit => call::Resolved, "Tells which agent would get a task and where it is, and submits nothing.";
    TaskSubmit = "task/submit", Call, call::Submit => crate::TaskView, "Takes on a task; it is durable before this returns.";
    TaskWait = "task/wait", OwnTask, call::TaskWait => crate::TaskView, "Waits until a task ends, and answers what it is then.";
    TaskGet = "task/get", OwnTask, call::TaskRef => crate::TaskView, "Shows a task as it is now.";
    TaskList = "task/list", OwnTask, call::TaskList => call::Tasks, "Lists tasks, newest first.";
    TaskCancel = "task/cancel", EndTask, call::TaskRef => crate::TaskView, "Calls a task off and tells its agent.";
    TaskExplain = "task/explain", OwnTask, call::TaskRef => crate::Explanation, "Shows every routing decision taken for a task.";
    TaskClaim = "task/claim", Serve, call::Claim => call::Claimed, "Pulls work under a lease with a fencing token.";
    TaskAccept = "task/accept", Serve, call::Accept => call::Noted, "The agent has it and will work on it now.";
    TaskProgress = "task/progress", Serve, call::Progress => call::Noted, "The agent is still at it; renews the lease.";
    TaskComplete = "task/complete", Serve, call::Complete => call::Noted, "The agent is done.";
    TaskFail = "task/fail", Serve, call::Fail => call::Noted, "The agent did not succeed.";
    TaskRelease = "task/release", Serve, call::Release => call::Noted, "The agent gives a task back.";
    TaskSubscribe = "task/subscribe", OwnTask, call::Subscribe => crate::TaskView, "Sends `task/changed` on this connection until the task ends.";
    MetricsOverview = "metrics/overview", View, call::Nothing => call::Overview, "Shows how well tasks reach their agents, over the last 15 minutes.";
    HumanList = "human/list", View, call::HumanList => call::Tasks, "Lists tasks that wait for a person, or are with one.";
    HumanTake = "human/take", Operate, call::HumanTake => call::HumanWork, "A person takes a task, under a lease with a fencing token.";
    HumanAnswer = "human/answer", Operate, call::HumanAnswer => crate::TaskView, "The person answers it; that is its result.";
    HumanRefuse = "human/refuse", Operate, call::HumanRefuse => crate::TaskView, "The person refuses it; it becomes a dead letter with the reason.";
    HumanReturn = "human/return", Operate, call::HumanReturn => crate::TaskView, "The person puts it back for somebody else.";
    DeadLetterList = "dead_letter/list", View, call::TaskList => call::Tasks, "Lists tasks that were given up on.";
    DeadLetterGet = "dead_letter/get", View, call::TaskRef => crate::Explanation, "Shows one of them with its history.";
    DeadLetterRedrive = "dead_letter/redrive", Operate, call::Redrive => call::Redriven, "Sends them again, by name or by filter, at a rate.";
    WebhookList = "webhook/list", View, call::WebhookList => call::Webhooks, "Lists webhooks and how their sending goes.";
    WebhookGet = "webhook/get", View, call::WebhookRef => crate::WebhookView, "Shows one webhook with its body.";
    ServerAdd = "server/add", Administer, call::ServerAdd => crate::ServerView, "Makes an agent of an MCP server, for good.";
    ServerRemove = "server/remove", Administer, call::ServerRef => crate::ServerView, "Forgets an MCP server that was added, and its agents.";
    ServerList = "server/list", View, call::Nothing => call::Servers, "Lists MCP servers and how they are.";
    ConfigShow = "config/show", View, call::Nothing => call::ConfigView, "Shows what configuration is in force, and where each value came from.";
    ConfigReload = "config/reload", Administer, call::ConfigReload => call::ConfigReloaded, "Reads the configuration file again, and goes by all of it or by nothing new.";
    PolicyGet = "policy/get", View, call::Nothing => crate::Policy, "Shows the operator's policy over who may do what with whom.";
    PolicyPut = "policy/put", Administer, call::PolicyPut => call::PolicyStands, "Puts a policy in the place of the one that stands; it holds from the next call on.";
    PolicyTest = "policy/test", View, call::PolicyTest => call::PolicyTested, "Tells whether an agent may do something, and who says no.";
    WebhookRetry = "webhook/retry", Operate, call::WebhookRetry => call::WebhooksRetried, "Sends webhooks again now, under their own ids.";
    AuditTail = "audit/tail", View, call::AuditTail => call::AuditRows, "Shows the newest rows of the audit log.";
    AuditSearch = "audit/search", View, call::AuditSearch => call::AuditRows, "Finds rows of the audit log.";
    AuditVerify = "audit/verify", View, call::AuditVerify => call::AuditVerified, "Checks that the audit log is what was written, and names the first bad row.";
    AuditExport = "audit/export", View, call::AuditExport => call::AuditRows, "Gives the audit log a page at a time.";
    AuditCheckpoint = "audit/checkpoint", Operate, call::Nothing => crate::AuditCheckpoint, "Signs the audit log as it stands, for keeping elsewhere.";
    AuditAccept = "audit/accept", Administer, call::Nothing => crate::AuditCheckpoint, "Signs an audit log again that is not as it was signed last, from here on; what is before is vouched for by nobody.";
    TokenIssue = "token/issue", Enrol, call::TokenIssue => call::AgentToken, "Gives an agent a token for the key that it proves to have.";
    TokenCreateJoin = "token/create_join", Administer, call::JoinCreate => call::JoinToken, "Makes a token by which one agent can join, once.";
    TokenCreateOperator = "token/create_operator", Administer, call::OperatorCreate => call::OperatorToken, "Makes a token for a person or tool that operates the gateway.";
    TokenTrustKey = "token/trust_key", Administer, call::KeyTrust => call::KnownAgent, "Makes an agent known by its public key, for clients that cannot join.";
    TokenList = "token/list", View, call::Nothing => call::Tokens, "Lists who may call: agents with keys, operators, join tokens, signing keys.";
    TokenRevoke = "token/revoke", Administer, call::TokenRevoke => call::Revoked, "Ends tokens at once: of an agent, of an operator, or one by its id.";
}

/// Messages that the gateway sends to a connected agent or subscriber.
pub mod push {
    /// A request: here is work (`Delivery`); answer with any result to say "I have it".
    pub const DELIVER: &str = "task/deliver";
    /// A notification: work that may be claimed (`TaskRef` and capability).
    pub const OFFER: &str = "task/offer";
    /// A notification: stop working on this attempt (`Working`).
    pub const CANCEL: &str = "task/stop";
    /// A notification: a task that was subscribed to has changed (`TaskView`).
    pub const CHANGED: &str = "task/changed";
    /// A request: are you well? Answered with `Health`.
    pub const PROBE: &str = "agent/probe";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_finds_its_method() {
        for method in Method::ALL {
            assert_eq!(Method::by_name(method.name()), Some(*method));
        }
        assert_eq!(Method::by_name("no/such"), None);
    }
}
