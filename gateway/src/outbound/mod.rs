//! Where the gateway goes when somebody else names the address, a webhook's receiver or an agent's endpoint: one guard that
//! judges addresses, and a resolver that lets no name mean one that is not permitted.

pub mod address;
pub mod resolve;

pub use address::Guard;
pub use resolve::Resolver;
