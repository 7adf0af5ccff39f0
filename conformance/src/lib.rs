//! Validates agents and gateways against the wire, and shares no code with the SDK, so that it cannot share its mistakes.
//! A member of the workspace so that its place is kept; nothing is in it yet.
