//! `[health]`, `[intent]` and `[defaults]`, and the bounds of plain numbers: what the core goes by, held to what makes sense.

use reach_core::fleet::Defaults;
use reach_core::health::HealthPolicy;
use reach_core::lexical::Thresholds;
use reach_core::score::MOST_MAX;
use reach_schemas::Span;
use reach_schemas::card::limits::SPAN_MAX;

use super::HUMAN_WAIT_MAX;
use crate::gateway::Settings;

/// How many results in a row may be waited for.
const IN_ROW_MAX: u32 = 1000;

/// Tells what is out of bounds.
pub(super) fn check(settings: &Settings, mistakes: &mut Vec<String>) {
    if settings.open_max == 0 {
        mistakes.push("open_max: is 0: no task could be taken on".to_owned());
    }
    let fleet = &settings.fleet;
    let tiers = &fleet.tier_limits;
    for (tier, seats) in [("fast", tiers.fast), ("normal", tiers.normal), ("long", tiers.long)] {
        if seats == 0 {
            mistakes.push(format!("tiers.{tier}: is 0: work of this tier would wait for ever"));
        }
    }
    if fleet.human_wait > HUMAN_WAIT_MAX {
        mistakes.push(format!("human_wait: is {}: it is at most {HUMAN_WAIT_MAX}", fleet.human_wait));
    }
    if !(0.0..=MOST_MAX).contains(&fleet.learning.most) {
        mistakes.push(format!("learning.most: is {}: it is 0 to {MOST_MAX}", fleet.learning.most));
    }
    health(&fleet.health, mistakes);
    intent(&fleet.thresholds, mistakes);
    defaults(&fleet.defaults, mistakes);
}

fn health(policy: &HealthPolicy, mistakes: &mut Vec<String>) {
    let counts = [
        ("slow_in_row", policy.slow_in_row),
        ("failed_in_row", policy.failed_in_row),
        ("passed_in_row", policy.passed_in_row),
        ("full_in_row", policy.full_in_row),
    ];
    for (field, count) in counts.into_iter().filter(|(_, count)| !(1..=IN_ROW_MAX).contains(count)) {
        mistakes.push(format!("health.{field}: is {count}: it is 1 to {IN_ROW_MAX}"));
    }
    if policy.slow_factor == 0 {
        mistakes.push("health.slow_factor: is 0: every probe would be slow".to_owned());
    }
    let spans = [
        ("slow_above", policy.slow_above),
        ("never_slow_below", policy.never_slow_below),
        ("slow_start_step", policy.slow_start_step),
    ];
    for (field, span) in spans.into_iter().filter(|(_, span)| !(Span::from_ms(1)..=SPAN_MAX).contains(span)) {
        mistakes.push(format!("health.{field}: is {span}: it is 1ms to {SPAN_MAX}"));
    }
}

fn intent(thresholds: &Thresholds, mistakes: &mut Vec<String>) {
    let rates = [("accept", thresholds.accept), ("margin", thresholds.margin)];
    // Not a number is within no range.
    for (field, rate) in rates.into_iter().filter(|(_, rate)| !(0.0..=1.0).contains(rate)) {
        mistakes.push(format!("intent.{field}: is {rate}: it is 0 to 1"));
    }
}

fn defaults(defaults: &Defaults, mistakes: &mut Vec<String>) {
    if let Err(error) = defaults.check() {
        mistakes.extend(error.mistakes.iter().map(ToString::to_string));
    }
}
