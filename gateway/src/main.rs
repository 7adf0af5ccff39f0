//! The gateway's binary.

use std::process::ExitCode;

/// Many small allocations on many threads are what a gateway does; this allocator is made for it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    reach_gateway::cli::run()
}
