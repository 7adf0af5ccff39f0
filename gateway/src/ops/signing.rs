//! The audit log is signed now and then, and only as far as the gateway can vouch for it: if it goes on from where it was signed
//! last. Where it does not, the gateway works on and signs nothing, until an administrator accepts what there is.

use reach_core::access::Grant;
use reach_core::audit::{Checkpoint, Mark};
use reach_schemas::call::Nothing;
use reach_schemas::{AuditCheckpoint, AuditKind, ErrorCode, Failure};

use crate::audit::{Doubt, Settings, Signer, to_wire};
use crate::gateway::Gateway;
use crate::store::{AuditQuery, Command, Error};

/// Why nothing was signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotSigned {
    #[error("the audit log is empty")]
    Empty,
    #[error("this gateway has no key that signs")]
    NoKey,
    #[error("{0}")]
    Doubt(Doubt),
}

fn refused(message: String) -> Failure {
    Failure::new(ErrorCode::InvalidRequest, message)
}

impl Gateway {
    /// Why the gateway cannot vouch for the log. None: the log goes on from where it was signed last.
    pub(crate) async fn audit_doubt(&self) -> Result<Option<Doubt>, Error> {
        let Some(beside) = self.settings().audit.beside.clone() else { return Ok(None) };
        if !beside.is_key_as_left() {
            return Ok(Some(Doubt::KeyMoved));
        }
        let (signed, pin) = (beside.signed(), beside.pin());
        let told = [signed, pin.map(|pin| pin.mark)];
        for mark in told.into_iter().flatten() {
            if !self.stands(&mark).await? {
                return Ok(Some(Doubt::Elsewhere(mark)));
            }
        }
        if told != [None, None] || self.store.audit_head().await? == Mark::origin() {
            return Ok(None);
        }
        // A key of the form before, whose log was signed when this was told in the log alone.
        let last = self.store.audit_checkpoint().await?.filter(|last| beside.trust.believes(last));
        Ok(match last {
            None => Some(Doubt::Untold),
            Some(last) if self.stands(&last.mark).await? => None,
            Some(last) => Some(Doubt::Elsewhere(last.mark)),
        })
    }

    /// Whether the log has this row.
    async fn stands(&self, mark: &Mark) -> Result<bool, Error> {
        let Mark { seq, hash } = *mark;
        if seq == 0 {
            return Ok(true);
        }
        let row = AuditQuery { after: seq - 1, limit: 1, ..AuditQuery::default() };
        let row = self.store.audit_list(row).await?;
        Ok(row.first().is_some_and(|row| row.seq == seq && row.hash == hash.to_string()))
    }

    /// Signs the log as it stands and keeps the checkpoint, unless the gateway cannot vouch for it: what somebody wrote anew is
    /// not made good by a signature.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub(crate) async fn pin_audit(&self) -> Result<Result<Checkpoint, NotSigned>, Error> {
        let settings = self.settings().audit.clone();
        let Some(signer) = &settings.signer else { return Ok(Err(NotSigned::NoKey)) };
        let _one_at_a_time = self.audit.signing.lock().await;
        if let Some(doubt) = self.audit_doubt().await? {
            tracing::error!(
                "{doubt}; it is not signed any more: see reachctl audit verify, and to go on all the same reachctl audit accept"
            );
            return Ok(Err(NotSigned::Doubt(doubt)));
        }
        self.sign_audit(&settings, signer, false).await.map(|signed| signed.ok_or(NotSigned::Empty))
    }

    /// Signs the log as it stands, whatever was before. None: it is empty.
    async fn sign_audit(
        &self,
        settings: &Settings,
        signer: &Signer,
        is_accepted: bool,
    ) -> Result<Option<Checkpoint>, Error> {
        let head = self.store.audit_head().await?;
        if head == Mark::origin() {
            return Ok(None);
        }
        let checkpoint = signer.sign(head, self.now());
        self.committer.submit(Command::PinAudit(checkpoint.clone())).await?;
        if let Some(Err(error)) = settings.beside.as_ref().map(|beside| beside.put(&checkpoint, is_accepted)) {
            tracing::warn!(%error, "where the audit log was signed last cannot be written beside it");
        }
        let wire = to_wire(&checkpoint);
        tracing::info!(seq = wire.seq, hash = %wire.hash, at = %wire.at, key = %wire.key, signature = %wire.signature, "audit checkpoint");
        Ok(Some(checkpoint))
    }

    /// Writes down that the gateway starts; and if it cannot vouch for the log, that, in the log too. It goes on all the same: who
    /// cut the log off should not be able to stop the work as well.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn open_audit(&self) -> Result<(), Error> {
        let doubt = self.audit_doubt().await?;
        if doubt.is_none()
            && let Some(last) = self.store.audit_checkpoint().await?
            && !self.stands(&last.mark).await?
        {
            tracing::error!(seq = last.mark.seq, "the audit log is not as it was signed: see reachctl audit verify");
        }
        let version = format!("version {}", env!("CARGO_PKG_VERSION"));
        let mut events = vec![self.audit_event(AuditKind::GatewayStarted, "gateway").because(version)];
        if let Some(doubt) = doubt {
            tracing::error!("{doubt}; it is not signed: see reachctl audit verify, and to go on reachctl audit accept");
            events.push(self.audit_event(AuditKind::AuditDoubted, "gateway").because(doubt.to_string()));
        }
        self.write_audit(events).await
    }

    /// Writes down that the gateway stops, and what was not written yet, and signs the whole. To be called last, when
    /// nothing runs any more.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn close_audit(&self) -> Result<(), Error> {
        let mut events = self.audit.finish();
        events.push(self.audit_event(AuditKind::GatewayStopped, "gateway"));
        self.write_audit(events).await?;
        self.pin_audit().await.map(drop)
    }

    /// Signs the log as it stands, for keeping elsewhere.
    ///
    /// # Errors
    /// The log is empty, nobody signs, the gateway cannot vouch for the log, or the store cannot be read or written.
    pub async fn audit_checkpoint(&self, _grant: Grant, _: Nothing) -> Result<AuditCheckpoint, Failure> {
        self.write_audit(self.audit.due(self.now())).await?;
        let signed = self.pin_audit().await?;
        signed.as_ref().map(to_wire).map_err(|not| {
            let how = if matches!(not, NotSigned::Doubt(_)) { "; see reachctl audit verify" } else { "" };
            refused(format!("nothing is signed: {not}{how}"))
        })
    }

    /// Has a log signed again from here on that the gateway cannot vouch for, and writes that down first. What is before stays
    /// vouched for by nobody.
    ///
    /// # Errors
    /// There is nothing to accept, nobody signs, or the store cannot be read or written.
    pub async fn audit_accept(&self, grant: Grant, _: Nothing) -> Result<AuditCheckpoint, Failure> {
        self.write_audit(self.audit.due(self.now())).await?;
        let settings = self.settings().audit.clone();
        let Some(signer) = &settings.signer else { return Err(refused(NotSigned::NoKey.to_string())) };
        let _one_at_a_time = self.audit.signing.lock().await;
        let Some(doubt) = self.audit_doubt().await? else {
            return Err(refused(
                "there is nothing to accept: the audit log goes on from where it was signed".to_owned(),
            ));
        };
        let event = self.audit_event(AuditKind::AuditAccepted, grant.caller().to_string()).because(doubt.to_string());
        self.committer.submit(Command::Audit(vec![event])).await?;
        let signed = self.sign_audit(&settings, signer, true).await?;
        signed.as_ref().map(to_wire).ok_or_else(|| refused(NotSigned::Empty.to_string()))
    }
}
