//! Reads a card, or a policy. What is wrong with its form is told at once, and not the first flaw only: whoever writes one by
//! hand corrects it once.

use reach_core::fleet::{Mistake, form_mistakes, policy_form_mistakes};
use reach_schemas::call::PolicyPut;
use reach_schemas::{AgentCard, Failure};
use serde::Deserialize;

use super::params::decode;

/// Reads a card that the caller sent, and that goes by the name of `whole`.
///
/// # Errors
/// It does not have the form of one: all that is wrong with that, the first flaw with its line and column.
pub fn decode_card(text: &str, whole: &str) -> Result<AgentCard, Failure> {
    decode(text, whole).map_err(|failure| with_the_others(form_mistakes(text), whole, failure))
}

/// Reads a policy that is put, as [`decode_card`] reads a card.
///
/// # Errors
/// It does not have the form of one.
pub fn decode_policy(text: &str, whole: &str) -> Result<PolicyPut, Failure> {
    decode(text, whole).map_err(|failure| with_the_others(policy_form_mistakes(text), whole, failure))
}

fn with_the_others(mistakes: Vec<Mistake>, whole: &str, failure: Failure) -> Failure {
    #[derive(Deserialize)]
    struct Place {
        at: String,
    }
    let place = failure.data.as_ref().and_then(|data| data.read::<Place>().ok());
    let at = place.map(|place| place.at).unwrap_or_default();
    let others = mistakes.into_iter().filter(|mistake| !is_told(mistake, &at, &failure.message));
    let others: Vec<String> = others.map(|mistake| named(&mistake, whole)).collect();
    if others.is_empty() {
        return failure;
    }
    let message = format!("{}; also {}", failure.message, others.join("; "));
    Failure { message, ..failure }
}

fn named(Mistake { at, says, .. }: &Mistake, whole: &str) -> String {
    if at.is_empty() { format!("{whole}: {says}") } else { format!("`{at}`: {says}") }
}

/// Whether a mistake is the very one that the reader stopped at, `at` being where.
fn is_told(mistake: &Mistake, at: &str, message: &str) -> bool {
    let parent = at.rfind(['.', '[']).map_or("", |end| &at[..end]);
    let is_here = mistake.at == at || mistake.at == parent;
    match mistake.says.split_once('`') {
        // Of a member: the reader says it of the member, or of what lacks it.
        Some(_) => is_here && message.contains(&mistake.says),
        None => mistake.at == at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_flaw_has_its_line_and_column_and_each_other_its_place() {
        assert!(decode_card(r#"{"agent_id":"a@n","capabilities":[{"name":"x"}]}"#, "params").is_ok());
        let card = r#"{"agent_id":"a@n","capabilities":[{"name":"x","effect":"raed"},{"name":"y","routing_weight":"high"},{}]}"#;
        let message = decode_card(card, "params").unwrap_err().message;
        assert!(message.starts_with("`capabilities[0].effect`: unknown variant `raed`, expected one of "), "{message}");
        assert!(
            message.ends_with(
                " of params); also `capabilities[1].routing_weight`: \"high\" is not of type \"integer\"; `capabilities[2]`: \
                 missing field `name`"
            ),
            "{message}"
        );
        let message = decode_card(r#"{"agent_id":"a@n","colour":1,"capabilities":[{"nmae":"x"}]}"#, "params");
        let message = message.unwrap_err().message;
        assert!(message.starts_with("`colour`: unknown field `colour`, expected one of "), "{message}");
        assert!(
            message.ends_with("also `capabilities[0]`: unknown field `nmae`; `capabilities[0]`: missing field `name`"),
            "{message}"
        );
    }

    #[test]
    fn every_flaw_of_a_policy_is_told_once() {
        let policy = r#"{"version":0,"across":"card","rules":[{"ruling":"maybe","actions":"call"},{"ruling":"may"}]}"#;
        let message = decode_policy(policy, "policy.json").unwrap_err().message;
        assert!(
            message.starts_with("`across`: unknown variant `card`, expected `cards` or `rules` (line 1, "),
            "{message}"
        );
        for flaw in
            ["`rules[0].ruling`: unknown variant `maybe`", "`rules[1].ruling`: unknown variant `may`", "`subject`"]
        {
            assert!(message.contains(flaw), "{flaw}: {message}");
        }
        assert_eq!(message.matches("`card`").count(), 1, "{message}");
    }

    #[test]
    fn two_flaws_in_one_place_are_both_told() {
        let message = decode_card(r#"{"capabilities":[]}"#, "the body").unwrap_err().message;
        assert!(message.starts_with("the body: missing field `agent_id` "), "{message}");
        assert!(message.ends_with("; also `capabilities`: [] has less than 1 item"), "{message}");
        let message = decode_card("{}", "the body").unwrap_err().message;
        assert!(message.contains("missing field `agent_id`") && message.contains("missing field `capabilities`"));
    }
}
