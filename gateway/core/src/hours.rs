//! The hours in which an agent takes work: weekly windows in the agent's own offset from UTC. A window belongs to the
//! day on which it begins, also where it ends on the next. There are no time zones here, hence no summer time.

use reach_schemas::card::Day;
use reach_schemas::{Hours, Timestamp};

const MINUTES_A_DAY: i64 = 1440;
const MS_A_MINUTE: i64 = 60_000;
/// 1970-01-01 was a Thursday; counted from Monday.
const WEEKDAY_OF_DAY_0: i64 = 3;

/// Whether any of the windows is open. No windows at all: always.
#[must_use]
pub fn takes_work_at(hours: &[Hours], now: Timestamp) -> bool {
    hours.is_empty() || hours.iter().any(|window| is_open(window, now))
}

/// When work is taken next; `now`, if it is taken now. None: never within what a [`Timestamp`] can say.
#[must_use]
pub fn next_open_at(hours: &[Hours], now: Timestamp) -> Option<Timestamp> {
    if takes_work_at(hours, now) {
        return Some(now);
    }
    let next = hours.iter().filter_map(|window| next_start_ms(window, now)).min()?;
    let next = Timestamp::from_ms(next);
    // A time past the last that can be said was cut off and is not a start.
    (next > now).then_some(next)
}

fn is_open(window: &Hours, now: Timestamp) -> bool {
    let today = local_ms(window, now).div_euclid(MINUTES_A_DAY * MS_A_MINUTE);
    let now_ms = local_ms(window, now);
    // It may have begun yesterday and still go on.
    [today - 1, today].into_iter().filter(|day| is_on(window, *day)).any(|day| {
        let start = start_ms(window, day);
        (start..start + length_ms(window)).contains(&now_ms)
    })
}

fn next_start_ms(window: &Hours, now: Timestamp) -> Option<u64> {
    let now_ms = local_ms(window, now);
    let today = now_ms.div_euclid(MINUTES_A_DAY * MS_A_MINUTE);
    // Seven days ahead is today's weekday again, for a window that was open earlier today.
    let starts = (today..=today + 7).filter(|day| is_on(window, *day)).map(|day| start_ms(window, day));
    let next = starts.filter(|start| *start > now_ms).min()?;
    u64::try_from(next - offset_ms(window)).ok()
}

fn is_on(window: &Hours, day: i64) -> bool {
    let weekday = match (day + WEEKDAY_OF_DAY_0).rem_euclid(7) {
        0 => Day::Mon,
        1 => Day::Tue,
        2 => Day::Wed,
        3 => Day::Thu,
        4 => Day::Fri,
        5 => Day::Sat,
        _ => Day::Sun,
    };
    window.days.is_empty() || window.days.contains(&weekday)
}

fn start_ms(window: &Hours, day: i64) -> i64 {
    (day * MINUTES_A_DAY + i64::from(window.from.minutes())) * MS_A_MINUTE
}

/// An end at or before the start is on the next day.
fn length_ms(window: &Hours) -> i64 {
    let minutes = i64::from(window.to.minutes()) - i64::from(window.from.minutes());
    (if minutes > 0 { minutes } else { minutes + MINUTES_A_DAY }) * MS_A_MINUTE
}

fn local_ms(window: &Hours, now: Timestamp) -> i64 {
    // The last timestamp there is fits many times over.
    now.as_ms() as i64 + offset_ms(window)
}

fn offset_ms(window: &Hours) -> i64 {
    i64::from(window.utc_offset_minutes) * MS_A_MINUTE
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `"mon,tue 08:00-18:00 +120"`: days (or `*`), window, offset in minutes.
    fn window(text: &str) -> Hours {
        let parts: Vec<&str> = text.split_whitespace().collect();
        let (from, to) = parts[1].split_once('-').unwrap();
        let days = parts[0].split(',').filter(|day| *day != "*");
        Hours {
            days: days.map(|day| serde_json::from_value(day.into()).unwrap()).collect(),
            from: from.parse().unwrap(),
            to: to.parse().unwrap(),
            utc_offset_minutes: parts[2].parse().unwrap(),
        }
    }

    /// At `now`, the next time that work is taken is `expected`; the same time means that it is taken now.
    #[track_caller]
    fn check(windows: &[&str], now: &str, expected: &str) {
        let hours: Vec<Hours> = windows.iter().map(|text| window(text)).collect();
        let (now, expected): (Timestamp, Timestamp) = (now.parse().unwrap(), expected.parse().unwrap());
        assert_eq!(next_open_at(&hours, now), Some(expected));
        assert_eq!(takes_work_at(&hours, now), now == expected);
    }

    // 2026-11-30 is a Monday.

    #[test]
    fn no_windows_is_always_and_a_window_has_a_first_and_no_last_minute() {
        check(&[], "2026-11-30T03:00:00Z", "2026-11-30T03:00:00Z");
        check(&["* 08:30-18:00 0"], "2026-11-30T08:29:59.999Z", "2026-11-30T08:30:00Z");
        check(&["* 08:30-18:00 0"], "2026-11-30T08:30:00Z", "2026-11-30T08:30:00Z");
        check(&["* 08:30-18:00 0"], "2026-11-30T17:59:59.999Z", "2026-11-30T17:59:59.999Z");
        check(&["* 08:30-18:00 0"], "2026-11-30T18:00:00Z", "2026-12-01T08:30:00Z");
        check(&["* 00:00-24:00 0"], "2026-11-30T23:59:59Z", "2026-11-30T23:59:59Z");
    }

    #[test]
    fn only_on_its_days_and_a_week_ahead_if_it_was_open_earlier_today() {
        check(&["mon,tue 08:00-09:00 0"], "2026-12-01T10:00:00Z", "2026-12-07T08:00:00Z");
        check(&["mon 08:00-09:00 0"], "2026-11-30T10:00:00Z", "2026-12-07T08:00:00Z");
        check(&["sun 08:00-09:00 0", "fri 20:00-21:00 0"], "2026-11-30T10:00:00Z", "2026-12-04T20:00:00Z");
    }

    #[test]
    fn a_window_over_midnight_belongs_to_the_day_it_begins_on() {
        check(&["sun 22:00-06:00 0"], "2026-11-30T05:59:00Z", "2026-11-30T05:59:00Z");
        check(&["sun 22:00-06:00 0"], "2026-11-30T06:00:00Z", "2026-12-06T22:00:00Z");
        check(&["mon 22:00-06:00 0"], "2026-11-30T05:00:00Z", "2026-11-30T22:00:00Z");
        check(&["mon 09:00-09:00 0"], "2026-12-01T08:59:00Z", "2026-12-01T08:59:00Z");
    }

    #[test]
    fn the_offset_moves_the_hours_and_the_day() {
        check(&["mon 08:00-18:00 480"], "2026-11-29T23:59:00Z", "2026-11-30T00:00:00Z");
        check(&["mon 08:00-18:00 480"], "2026-11-30T00:00:00Z", "2026-11-30T00:00:00Z");
        check(&["mon 20:00-23:00 -300"], "2026-12-01T03:00:00Z", "2026-12-01T03:00:00Z");
        check(&["mon 20:00-23:00 -300"], "2026-12-01T04:00:00Z", "2026-12-08T01:00:00Z");
    }

    #[test]
    fn the_ends_of_time_are_no_trouble() {
        let hours = [window("mon 22:00-06:00 -720")];
        assert_eq!(next_open_at(&hours, Timestamp::from_ms(u64::MAX)), None);
        assert!(!takes_work_at(&hours, Timestamp::from_ms(0)));
        assert!(next_open_at(&hours, Timestamp::from_ms(0)).is_some());
    }

    proptest! {
        #[test]
        fn it_is_open_at_its_next_opening_and_closed_until_then(
            from in 0_u16..1440, length in 1_u16..1440, offset in -720_i16..=840, day in 0_usize..7,
            minute in 0_u64..100_000,
        ) {
            let clock = |minutes: u16| format!("{:02}:{:02}", minutes / 60, minutes % 60);
            let day = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"][day];
            let hours = [window(&format!("{day} {}-{} {offset}", clock(from), clock((from + length) % 1440)))];
            let now = Timestamp::from_ms(1_780_000_000_000 + minute * 60_000);
            let next = next_open_at(&hours, now).unwrap();
            prop_assert!(takes_work_at(&hours, next));
            prop_assert!(next.since(now).as_ms() <= 7 * 86_400_000);
            if next > now {
                let between = now.as_ms() + (next.since(now).as_ms() - 1) * (minute % 100) / 100;
                prop_assert!(!takes_work_at(&hours, Timestamp::from_ms(between)));
                prop_assert!(!takes_work_at(&hours, Timestamp::from_ms(next.as_ms() - 1)));
            }
        }
    }
}
