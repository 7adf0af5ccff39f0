//! Bounds on concurrent work: seats at each agent, and seats of each tier over all agents, so that one slow agent or
//! much long work cannot take the room of everything else. It counts; it never queues and never waits.

use std::collections::BTreeMap;

use reach_schemas::{AgentId, FencingToken, TaskId, Tier, Timestamp};
use serde::{Deserialize, Serialize};

/// One attempt's place. It is named after the attempt, so that giving it back twice does no harm and the seats can
/// be counted anew from the attempts in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Seat {
    /// The task.
    pub task_id: TaskId,
    /// Its attempt.
    pub token: FencingToken,
}

/// How many attempts of each tier may be out at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TierLimits {
    /// Of the tier `fast`.
    pub fast: u32,
    /// Of the tier `normal`.
    pub normal: u32,
    /// Of the tier `long`.
    pub long: u32,
}

impl TierLimits {
    /// The limit of one tier.
    #[must_use]
    pub const fn of(&self, tier: Tier) -> u32 {
        match tier {
            Tier::Fast => self.fast,
            Tier::Normal => self.normal,
            Tier::Long => self.long,
        }
    }
}

/// Wide enough that an agent's own `max_concurrency` binds first in a fleet of some dozens.
impl Default for TierLimits {
    fn default() -> Self {
        Self { fast: 1024, normal: 1024, long: 256 }
    }
}

/// What has no seat left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Full {
    /// The agent.
    #[error("the agent has all the work it takes at once")]
    Agent,
    /// The agent's share for work as slow as this.
    #[error(
        "the agent has all the work as slow as this that it takes at once; the rest of its seats are for quicker work"
    )]
    AgentTier,
    /// The tier, over all agents.
    #[error("as much work of this tier is out as may be")]
    Tier,
}

/// Where a seat is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// At which agent.
    pub agent_id: AgentId,
    /// In which tier.
    pub tier: Tier,
}

/// How many seats an agent has for one more attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// In all.
    pub agent_max: u32,
    /// For the attempt's tier and those slower than it: what is left is kept for quicker work.
    pub slow_max: u32,
}

impl Room {
    /// No bound: for attempts that are there already.
    pub const UNBOUNDED: Self = Self { agent_max: u32::MAX, slow_max: u32::MAX };

    /// Of an agent's seats, those that work of a tier may take. Where the agent also offers quicker work, a quarter of
    /// its seats, at least one of two, is kept for that, so that much slow work cannot shut it out.
    #[must_use]
    pub const fn of(agent_max: u32, offers_quicker: bool) -> Self {
        let kept = if offers_quicker && agent_max > 1 { agent_max.div_ceil(4) } else { 0 };
        Self { agent_max, slow_max: agent_max - kept }
    }
}

/// All seats that are taken.
#[derive(Debug, Clone, Default)]
pub struct Bulkhead {
    taken: BTreeMap<Seat, (Place, Timestamp)>,
    by_agent: BTreeMap<AgentId, BTreeMap<Tier, u32>>,
    by_tier: BTreeMap<Tier, u32>,
}

impl Bulkhead {
    /// Whether [`Bulkhead::try_take`] would find a seat. Looking takes nothing.
    ///
    /// # Errors
    /// What is full.
    pub fn has_seat(&self, place: &Place, room: Room, limits: &TierLimits) -> Result<(), Full> {
        if self.in_flight(&place.agent_id) >= room.agent_max {
            Err(Full::Agent)
        } else if self.slow_in_flight(place) >= room.slow_max {
            Err(Full::AgentTier)
        } else if self.in_tier(place.tier) >= limits.of(place.tier) {
            Err(Full::Tier)
        } else {
            Ok(())
        }
    }

    /// Takes a seat at the agent and in the tier, or neither. An attempt that has one keeps it.
    ///
    /// # Errors
    /// What is full.
    pub fn try_take(
        &mut self,
        seat: Seat,
        place: Place,
        room: Room,
        limits: &TierLimits,
        now: Timestamp,
    ) -> Result<(), Full> {
        if !self.taken.contains_key(&seat) {
            self.has_seat(&place, room, limits)?;
            self.seat(seat, place, now);
        }
        Ok(())
    }

    /// Gives a seat back, and says whether it was taken.
    pub fn give_back(&mut self, seat: Seat) -> bool {
        let Some((place, _)) = self.taken.remove(&seat) else { return false };
        if let Some(tiers) = self.by_agent.get_mut(&place.agent_id) {
            count_down(tiers, &place.tier);
            if tiers.is_empty() {
                self.by_agent.remove(&place.agent_id);
            }
        }
        count_down(&mut self.by_tier, &place.tier);
        true
    }

    /// Makes the seats agree with the attempts that the store had out at `as_of`, and says how many seats were freed
    /// and how many were added. Seats taken since then stay. An attempt that ended since then gets its seat back for
    /// the time until the next recount. Attempts out are seated even where there is no room: they are there.
    pub fn recount(&mut self, out: impl IntoIterator<Item = (Seat, Place)>, as_of: Timestamp) -> (usize, usize) {
        let out: BTreeMap<Seat, Place> = out.into_iter().collect();
        let lost =
            |(seat, (_, at)): (&Seat, &(Place, Timestamp))| (*at < as_of && !out.contains_key(seat)).then_some(*seat);
        let freed: Vec<Seat> = self.taken.iter().filter_map(lost).collect();
        for seat in &freed {
            self.give_back(*seat);
        }
        let mut added = 0;
        for (seat, place) in out {
            if !self.taken.contains_key(&seat) {
                self.seat(seat, place, as_of);
                added += 1;
            }
        }
        (freed.len(), added)
    }

    /// How many seats are taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.taken.len()
    }

    /// How many seats are taken at the agent.
    #[must_use]
    pub fn in_flight(&self, agent: &AgentId) -> u32 {
        self.by_agent.get(agent).map_or(0, |tiers| tiers.values().sum())
    }

    /// How many seats at the agent are taken by work of this tier or a slower one.
    fn slow_in_flight(&self, place: &Place) -> u32 {
        let tiers = self.by_agent.get(&place.agent_id);
        tiers.map_or(0, |tiers| tiers.range(place.tier..).map(|(_, count)| count).sum())
    }

    /// How many seats are taken in the tier.
    #[must_use]
    pub fn in_tier(&self, tier: Tier) -> u32 {
        self.by_tier.get(&tier).copied().unwrap_or(0)
    }

    fn seat(&mut self, seat: Seat, place: Place, now: Timestamp) {
        *self.by_agent.entry(place.agent_id.clone()).or_default().entry(place.tier).or_default() += 1;
        *self.by_tier.entry(place.tier).or_default() += 1;
        self.taken.insert(seat, (place, now));
    }
}

/// Forgets a count of nothing, so that agents that are gone leave no trace.
fn count_down<K: Ord>(counts: &mut BTreeMap<K, u32>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: TierLimits = TierLimits { fast: 2, normal: 4, long: 1 };

    fn seat(number: u64) -> Seat {
        Seat { task_id: TaskId::from_parts(number, 0), token: FencingToken(1) }
    }

    fn place(agent: &str, tier: Tier) -> Place {
        Place { agent_id: format!("{agent}@n").parse().unwrap(), tier }
    }

    fn all(agent_max: u32) -> Room {
        Room::of(agent_max, false)
    }

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_ms(ms)
    }

    #[test]
    fn a_full_agent_and_a_full_tier_say_so_and_take_nothing() {
        let mut seats = Bulkhead::default();
        assert_eq!(seats.try_take(seat(1), place("a", Tier::Fast), all(1), &LIMITS, at(0)), Ok(()));
        assert_eq!(seats.try_take(seat(2), place("a", Tier::Fast), all(1), &LIMITS, at(0)), Err(Full::Agent));
        assert_eq!(seats.try_take(seat(2), place("b", Tier::Fast), all(1), &LIMITS, at(0)), Ok(()));
        assert_eq!(seats.try_take(seat(3), place("c", Tier::Fast), all(1), &LIMITS, at(0)), Err(Full::Tier));
        assert_eq!((seats.in_flight(&place("c", Tier::Fast).agent_id), seats.in_tier(Tier::Fast)), (0, 2));
        assert_eq!(seats.try_take(seat(3), place("c", Tier::Long), all(1), &LIMITS, at(0)), Ok(()));
    }

    #[test]
    fn slow_work_leaves_a_quarter_of_an_agents_seats_to_quicker_work() {
        let wide = TierLimits::default();
        let mut seats = Bulkhead::default();
        let mut take =
            |number, tier, quicker| seats.try_take(seat(number), place("a", tier), Room::of(4, quicker), &wide, at(0));
        for number in 1..=3 {
            assert_eq!(take(number, Tier::Long, true), Ok(()));
        }
        assert_eq!(take(4, Tier::Long, true), Err(Full::AgentTier));
        assert_eq!(take(4, Tier::Normal, true), Err(Full::AgentTier));
        assert_eq!(take(4, Tier::Normal, false), Ok(()));
        assert_eq!(take(5, Tier::Fast, false), Err(Full::Agent));
        assert!(seats.give_back(seat(4)));
        assert_eq!(seats.try_take(seat(5), place("a", Tier::Fast), Room::of(4, false), &wide, at(0)), Ok(()));
        assert_eq!(Room::of(1, true), Room { agent_max: 1, slow_max: 1 });
        assert_eq!(Room::of(2, true), Room { agent_max: 2, slow_max: 1 });
    }

    #[test]
    fn giving_back_twice_frees_one_seat() {
        let mut seats = Bulkhead::default();
        for number in [1, 2] {
            seats.try_take(seat(number), place("a", Tier::Normal), all(2), &LIMITS, at(0)).unwrap();
        }
        assert!(seats.give_back(seat(1)));
        assert!(!seats.give_back(seat(1)));
        assert_eq!(seats.in_flight(&place("a", Tier::Normal).agent_id), 1);
    }

    #[test]
    fn a_recount_frees_the_lost_seats_and_keeps_those_taken_since() {
        let mut seats = Bulkhead::default();
        for (number, ms) in [(1, 10), (2, 20), (3, 100)] {
            seats.try_take(seat(number), place("a", Tier::Normal), all(4), &LIMITS, at(ms)).unwrap();
        }
        let out = [(seat(2), place("a", Tier::Normal)), (seat(9), place("b", Tier::Long))];
        assert_eq!(seats.recount(out, at(50)), (1, 1));
        assert_eq!(seats.in_flight(&place("a", Tier::Normal).agent_id), 2);
        assert_eq!((seats.in_tier(Tier::Normal), seats.in_tier(Tier::Long)), (2, 1));
    }

    proptest! {
        #[test]
        fn seats_come_home_and_no_limit_is_passed(
            steps in prop::collection::vec((any::<bool>(), 0_u64..12, 0_usize..3, 0_usize..3), 0..200),
        ) {
            let mut seats = Bulkhead::default();
            for (takes, number, agent, tier) in steps {
                let place = place(["a", "b", "c"][agent], [Tier::Fast, Tier::Normal, Tier::Long][tier]);
                if takes {
                    let _ = seats.try_take(seat(number), place.clone(), all(3), &LIMITS, at(0));
                } else {
                    seats.give_back(seat(number));
                }
                prop_assert!(seats.in_flight(&place.agent_id) <= 3);
                prop_assert!(seats.in_tier(place.tier) <= LIMITS.of(place.tier));
            }
            for number in 0..12 {
                seats.give_back(seat(number));
            }
            prop_assert!(seats.taken.is_empty() && seats.by_agent.is_empty() && seats.by_tier.is_empty());
        }
    }
}
