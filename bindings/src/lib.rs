//! The Python face of Agent-Reach, over the Rust SDK. A member of the workspace so that its place is kept; nothing is in
//! it yet.
