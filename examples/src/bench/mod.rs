//! What the benchmarks are made of. Client and echo agent speak HTTP/1.1 by hand, so that most of the machine is left to
//! the gateway that is measured.

pub mod disk;
pub mod echo;
pub mod gateway;
pub mod load;
pub mod mcp;
pub mod process;
pub mod wire;
