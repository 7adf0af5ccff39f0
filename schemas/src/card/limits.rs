//! How much one card may say. Who registers is told which limit is in the way; the JSON Schema has those that it can
//! express.

use crate::Span;

/// How many capabilities one card may hold.
pub const CAPABILITIES_MAX: usize = 256;
/// How many ways to reach it one agent may name.
pub const ENDPOINTS_MAX: usize = 16;
/// How many tags a card, or one capability, may have.
pub const TAGS_MAX: usize = 64;
/// How many exclusions one capability may have.
pub const EXCLUSIONS_MAX: usize = 64;
/// How many fallback steps one capability may have.
pub const FALLBACK_MAX: usize = 16;
/// How many dependencies one agent may name.
pub const DEPENDENCIES_MAX: usize = 64;
/// How many rows its hours may have: several for each day of the week.
pub const AVAILABILITY_MAX: usize = 64;
/// How many addresses may hear of its failures.
pub const CALLBACKS_MAX: usize = 16;
/// How many patterns each side of its access rules may have.
pub const PATTERNS_MAX: usize = 256;

/// The longest text of one field that is prose, in bytes.
pub const TEXT_MAX: usize = 4096;
/// The longest name, tag or version, in bytes.
pub const NAME_MAX: usize = 256;
/// The longest address, in bytes.
pub const ADDRESS_MAX: usize = 2048;
/// The longest description of an MCP server's tool, in bytes.
pub const TOOL_MAX: usize = 256 * 1024;
/// The longest fixed result of a fallback, in bytes.
pub const STATIC_MAX: usize = 64 * 1024;

/// The shortest interval between heartbeats, and between probes.
pub const INTERVAL_MIN: Span = Span::from_ms(100);
/// The longest interval, timeout or span of a policy.
pub const SPAN_MAX: Span = Span::from_hours(24);
/// The longest that a probe may wait for its answer.
pub const PROBE_TIMEOUT_MAX: Span = Span::from_mins(1);
/// The most calls that a breaker may look back on, and the most failures in a row that it may wait for.
pub const BREAKER_WINDOW_MAX: u32 = 1000;
/// The offsets from UTC that there are, in minutes.
pub const UTC_OFFSET_MIN: i16 = -720;
/// See [`UTC_OFFSET_MIN`].
pub const UTC_OFFSET_MAX: i16 = 840;
