//! Who a caller is: what tokens say, which of them still stand, who may join, and when keys change. It never signs and
//! never reads a signature: what is judged here was proven to be written by the key that it names.

mod assertion;
mod book;
mod claims;
mod keys;
mod principal;
mod proof;
mod tickets;

#[cfg(test)]
mod tests;

pub use assertion::{Assertion, AssertionFlaw, Audience};
pub use book::{Book, Joining, Refusal};
pub use claims::{Claims, Confirmation, Lifetimes, Rejection};
pub use keys::{KeyState, MAX_AGE, Schedule, Turn, turn};
pub use principal::{Principal, Used};
pub use proof::{Proof, ProofFlaw};
pub use tickets::{Join, OperatorRow};
