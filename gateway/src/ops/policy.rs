//! The operator's policy over who may do what with whom: shown, changed, and asked.

use reach_core::access::policy::Policy as Compiled;
use reach_core::access::{Grant, allows};
use reach_schemas::call::{Nothing, PolicyPut, PolicyStands, PolicyTest, PolicyTested};
use reach_schemas::{AuditKind, ErrorCode, Failure, Policy, RawJson};
use serde_json::json;

use crate::gateway::Gateway;
use crate::store::{Command, Document, Outcome};

/// Under which name the policy is kept.
const NAME: &str = "policy";
/// How many agents are named that have what they may not declare any more.
const UNDECLARABLE_MAX: usize = 20;

impl Gateway {
    /// Reads the policy that was kept. To be called once, before anyone is answered.
    ///
    /// # Errors
    /// It cannot be read, or not be understood: a wall that is not known is no wall, so nothing may start.
    pub(crate) async fn recover_policy(&self) -> Result<(), Failure> {
        let Some(document) = self.store.document(NAME).await? else { return Ok(()) };
        let unreadable = |why: String| {
            let message = format!("the policy that is kept (version {}) cannot be used: {why}", document.version);
            Failure::new(ErrorCode::Internal, message)
        };
        let policy: Policy = serde_json::from_str(&document.content).map_err(|error| unreadable(error.to_string()))?;
        let checked = Compiled::check(policy.version, policy.across, &policy.rules);
        let (compiled, _) = checked.map_err(|mistakes| unreadable(format!("{} mistakes", mistakes.len())))?;
        self.fleet().set_policy(compiled);
        Ok(())
    }

    /// The policy that stands.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn policy(&self, _grant: Grant, _: Nothing) -> Result<Policy, Failure> {
        let Some(document) = self.store.document(NAME).await? else { return Ok(Policy::default()) };
        serde_json::from_str(&document.content)
            .map_err(|error| Failure::new(ErrorCode::Internal, format!("the policy cannot be read: {error}")))
    }

    /// Puts a policy in the place of the one that stands. It is durable, and holds for every call, before this returns.
    ///
    /// # Errors
    /// Something is wrong with it: all of it, in words and in `data`; or another version stands than the caller saw.
    pub async fn put_policy(&self, grant: Grant, request: PolicyPut) -> Result<PolicyStands, Failure> {
        let PolicyPut { version, across, rules } = request;
        let version = version + 1;
        let (compiled, mut warnings) = Compiled::check(version, across, &rules).map_err(|mistakes| {
            let told: Vec<String> = mistakes.iter().map(|mistake| format!("{} {}", mistake.at, mistake.says)).collect();
            let data: Vec<_> =
                mistakes.iter().map(|mistake| json!({ "at": mistake.at, "says": mistake.says })).collect();
            let data = RawJson::of(&json!({ "mistakes": data })).ok();
            Failure { data, ..Failure::new(ErrorCode::InvalidParams, format!("the policy: {}", told.join("; "))) }
        })?;
        let policy = Policy { version, across, rules };
        let content = serde_json::to_string(&policy)
            .map_err(|error| Failure::new(ErrorCode::Internal, format!("the policy cannot be written: {error}")))?;
        let audit = self.audit_event(AuditKind::PolicyChanged, grant.caller().to_string());
        let audit = audit.with_payload(content.as_bytes()).because(format!("version {version}"));
        let document = Document { name: NAME.to_owned(), version, content };
        match self.committer.submit(Command::PutDocument(document).audited(vec![audit])).await? {
            Outcome::Committed => {}
            Outcome::Conflict { .. }
            | Outcome::Inserted
            | Outcome::KeyTaken { .. }
            | Outcome::Done
            | Outcome::Purged { .. } => return Err(not_what_stands(version - 1)),
        }
        {
            let mut fleet = self.fleet();
            fleet.set_policy(compiled.clone());
            let undeclarable = fleet.nodes().flat_map(|node| compiled.undeclarable(&node.card));
            warnings.extend(undeclarable.take(UNDECLARABLE_MAX).map(|mistake| {
                format!("{}; it is registered with it: deregister it, or have it register anew", mistake.says)
            }));
        }
        // What was made of the cards for a caller is old now.
        self.cards.send_modify(|version| *version += 1);
        self.offer_anew();
        Ok(PolicyStands { policy, warnings })
    }

    /// Whether an agent may do something as things stand, and who says no.
    ///
    /// # Errors
    /// None.
    pub async fn test_policy(&self, _grant: Grant, request: PolicyTest) -> Result<PolicyTested, Failure> {
        let PolicyTest { subject, action, object, capability } = request;
        let fleet = self.fleet();
        let node = fleet.node(&object);
        let access = node.map(|node| node.card.access.clone()).unwrap_or_default();
        let said = allows(&fleet.caller(&subject), action, &object, &access, capability.as_ref());
        let why = said.as_ref().err().map(ToString::to_string);
        Ok(PolicyTested { allowed: said.is_ok(), why, registered: node.is_some() })
    }
}

fn not_what_stands(version: u64) -> Failure {
    let message = format!(
        "version {version} of the policy is not the one that stands: read it with policy/get, make the change there, and \
         put it with the version that was read"
    );
    Failure::new(ErrorCode::VersionConflict, message)
}
