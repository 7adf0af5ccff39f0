//! The Agent-Reach gateway: the server, in layers. What is decided is in `reach-core`; what touches the
//! world is here.

pub mod rpc;
pub mod store;
