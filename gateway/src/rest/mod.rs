//! The gateway for those who speak plain HTTP: routes, queries, headers and bodies, over the same use cases as
//! JSON-RPC. It never opens a socket: a transport gives it a request that was read whole, and takes the answer.

mod problem;

pub use problem::Problem;
