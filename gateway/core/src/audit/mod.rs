//! The audit log: what is written down of who did what to whom, how the rows are chained so that none can be changed,
//! dropped or moved unseen, and how that is found out. It writes nothing itself: a store appends what it is given, in the
//! commit of the change that it tells of.

pub mod chain;
pub mod checkpoint;
pub mod event;
pub mod flood;
pub mod steps;
pub mod verify;

pub use chain::{Cell, Cells, Hash, Mark};
pub use checkpoint::Checkpoint;
pub use event::Event;
pub use flood::Flood;
pub use verify::{Finding, Flaw, Verifier};
