//! Parameters and results of the methods, one pair a method where it has fields of its own.

mod answers;
mod params;

pub use answers::*;
pub use params::*;

use crate::Span;

/// The longest wait that one call may ask for; ask again for more.
pub const WAIT_MAX: Span = Span::from_mins(5);
/// How many entries a list answers at most.
pub const LIST_MAX: u32 = 1000;
