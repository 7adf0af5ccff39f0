//! The Model Context Protocol (<https://modelcontextprotocol.io>): its words, and what the gateway says in it. It opens
//! no socket: text or a request goes in, answers and notices come out.

mod catalog;
pub mod server;
pub mod wire;
