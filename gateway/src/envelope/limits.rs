//! What one frame may ask for. The size of a frame is the transport's to limit, before it is read whole.

/// What one text may hold, however large it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextLimits {
    /// How deep arrays and objects may nest, the text's own braces counted.
    pub nesting_max: usize,
    /// How many messages a batch may hold.
    pub batch_max: usize,
}

impl Default for TextLimits {
    fn default() -> Self {
        // What is read by recursion, `serde_json` reads to this depth.
        Self { nesting_max: 128, batch_max: 100 }
    }
}

/// The bounds of one frame. Beyond each of them the frame, or the part of it that goes too far, is refused.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How deep arrays and objects may nest, the frame's own braces counted. At most 128 keeps every
    /// `params` of an accepted frame inside the depth that `serde_json` decodes by recursion.
    pub depth_max: usize,
    /// How many messages a batch may hold. A longer batch is refused whole.
    pub batch_max: usize,
    /// How many calls of one batch run at the same time; the others wait for their turn.
    pub batch_concurrency_max: usize,
    /// How many bytes of results one batch may gather. Calls that end beyond it are answered with an error.
    pub batch_answer_max: usize,
    /// What becomes of a response where a request was expected.
    pub stray_responses: StrayResponses,
}

/// What becomes of a response that reaches the dispatcher, and so answers nothing that was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrayResponses {
    /// It is answered with an invalid request: right for HTTP, where only the caller asks.
    Refuse,
    /// It is dropped: right where both sides ask (WebSocket, stdio). Answering an answer could make two
    /// peers refuse each other for ever.
    Ignore,
}

impl Limits {
    /// The bounds that are set, for a peer that only asks.
    #[must_use]
    pub const fn of(texts: TextLimits) -> Self {
        Self {
            depth_max: texts.nesting_max,
            batch_max: texts.batch_max,
            batch_concurrency_max: 16,
            batch_answer_max: 16 * 1024 * 1024,
            stray_responses: StrayResponses::Refuse,
        }
    }

    /// The same, for a peer that answers as well.
    #[must_use]
    pub const fn of_peer(texts: TextLimits) -> Self {
        Self { stray_responses: StrayResponses::Ignore, ..Self::of(texts) }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::of(TextLimits::default())
    }
}
