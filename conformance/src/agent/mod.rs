//! Checks an agent by being its gateway: it registers here, beats here, and is given work by the way that its card names.

mod acts;
mod desk;
mod http;
mod links;
mod methods;
mod options;
mod plan;
mod process;
mod serve;
mod sign;
mod stage;
mod started;
mod tokens;
mod work;

pub(crate) use http::{client, lost};
pub(crate) use options::{Asked, Options};
pub(crate) use stage::check;
