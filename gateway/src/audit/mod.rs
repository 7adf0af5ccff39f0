//! The audit log between the core, which chains it, and the store, which keeps it: what is written down on the way, the
//! key that signs checkpoints, and what a verification comes to on the wire. Nothing here keeps a call waiting.

mod beside;
mod key_file;
mod recorder;
mod signer;
mod trust;
mod verdict;

use std::sync::Arc;

use reach_schemas::Span;

pub use beside::{Beside, Doubt, Told, unvouched};
pub use key_file::KEY;
pub use recorder::Recorder;
pub use signer::{NoCheckpoint, Signer, holds, of_wire, to_wire};
pub use trust::Trust;
pub use verdict::{Pins, altered, mark_of_wire, mark_to_wire, told, unsigned, verified};

/// How the audit log is looked after.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What signs checkpoints. None: nobody does, and an end that is cut off may not be missed.
    pub signer: Option<Arc<Signer>>,
    /// What is told beside the log of who signs it, and whose checkpoints are believed. None: nobody's are.
    pub beside: Option<Arc<Beside>>,
    /// A checkpoint is made when the log has grown by so many rows,
    pub checkpoint_rows: u64,
    /// or has grown, and the last one is so old.
    pub checkpoint_every: Span,
}

impl Default for Settings {
    fn default() -> Self {
        Self { signer: None, beside: None, checkpoint_rows: 1000, checkpoint_every: Span::from_mins(5) }
    }
}
