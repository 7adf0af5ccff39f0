//! The weights of the matcher: few, general, and fitted on labelled intents by halves.

/// How the parts of a description and of an intent weigh. Every field is a plain factor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tuning {
    /// Weight of a word of the name.
    pub name: f32,
    /// Weight of a word of a tag.
    pub tag: f32,
    /// Weight of a word of the description.
    pub description: f32,
    /// Weight of a word of a parameter's name or description.
    pub parameter: f32,
    /// Weight of a word of the agent's own description.
    pub agent: f32,
    /// BM25's saturation: the count at which a word has half its effect.
    pub saturation: f32,
    /// BM25's length normalisation, 0 to 1, against [`Tuning::usual_length`].
    pub length: f32,
    /// The number of units of a usual description; fixed, so that one document's weight never
    /// depends on the others.
    pub usual_length: f32,
    /// Documents that the corpus is imagined to have besides its own, so that rarity means
    /// something in a small fleet.
    pub imagined: f32,
    /// Weight of a clause that only tells, where another one asks.
    pub told: f32,
    /// Weight of a clause that is put aside; negative pushes down what it names.
    pub aside: f32,
    /// How much an exclusion that the intent meets takes from the score, 0 to 1.
    pub exclusion: f32,
    /// How much an exclusion that the intent puts aside itself adds to the score.
    pub agreed: f32,
    /// Weight of a parameter that the caller passes and the capability names.
    pub passed: f32,
}

impl Default for Tuning {
    fn default() -> Self {
        Tuning {
            name: 2.0,
            tag: 2.5,
            description: 1.2,
            parameter: 0.5,
            agent: 0.4,
            saturation: 1.0,
            length: 0.4,
            usual_length: 20.0,
            imagined: 40.0,
            told: 0.7,
            aside: -0.1,
            exclusion: 0.6,
            agreed: 0.3,
            passed: 0.5,
        }
    }
}
