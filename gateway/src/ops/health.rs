//! How the gateway itself is.

use std::collections::BTreeMap;

use reach_schemas::call::GatewayHealth;
use reach_schemas::{Failure, PhaseName};

use crate::gateway::Gateway;

impl Gateway {
    /// How the gateway is: well is one that could take a task on, for its store takes a write.
    ///
    /// # Errors
    /// The store does not take one.
    pub async fn health(&self) -> Result<GatewayHealth, Failure> {
        self.store.check().await?;
        let mut open: BTreeMap<PhaseName, u64> = BTreeMap::new();
        let mut waiting_since = None;
        for task in self.open.all() {
            let phase = task.state.phase.name();
            *open.entry(phase).or_default() += 1;
            if phase == PhaseName::Submitted && task.state.phase.human_lease().is_none() {
                let created_at = task.birth.created_at;
                waiting_since = Some(waiting_since.map_or(created_at, |oldest| created_at.min(oldest)));
            }
        }
        Ok(GatewayHealth {
            status: "ok".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            cluster: self.settings().cluster.clone(),
            up_for: self.clock.up_for(),
            open,
            ended: self.metrics.evaluation().ended(),
            waiting_since,
        })
    }
}
