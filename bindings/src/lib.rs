//! The Python face of Agent-Reach, over the Rust SDK: the module `agent_reach._core`, which only the Python package
//! beside it uses.
//!
//! No thread of the runtime here ever takes the interpreter's lock. What they have to say goes into a [`mailbox`], and the
//! event loop that it belongs to empties it. So a busy interpreter does not hold up the network, nor the network the
//! interpreter, and there is nothing left that could touch an interpreter which has ended.

mod agent;
mod answer;
mod client;
mod connection;
#[cfg(feature = "gateway")]
mod gateway;
mod logs;
mod mailbox;
mod op;
mod runtime;
mod works;

/// The module `agent_reach._core`.
#[pyo3::pymodule(gil_used = false)]
#[pyo3(name = "_core")]
mod core {
    #[pymodule_export]
    use crate::agent::Agent;
    #[pymodule_export]
    use crate::client::{Client, Watch};
    #[cfg(feature = "gateway")]
    #[pymodule_export]
    use crate::gateway::Gateway;
    #[pymodule_export]
    use crate::logs::{next_logs, take_logs};
    #[pymodule_export]
    use crate::mailbox::{Mailbox, Ticket};
    #[pymodule_export]
    use crate::runtime::shutdown;

    /// The version of the distribution.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
