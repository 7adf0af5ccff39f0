//! The hard paths. A run over many worlds has to take each of them often, so that it cannot pass by avoiding them.

use std::collections::BTreeMap;

use reach_core::task::Event;
use reach_schemas::PhaseName;

macro_rules! covered {
    ($($name:ident),* $(,)?) => {
        /// A path that a run has to take.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Covered { $($name),* }

        impl Covered {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$name),*];
        }
    };
}

covered! {
    // Each thing that can happen to a task.
    Assigned, Offered, Deferred, GivenUp, Claimed, Arrived, Accepted, Progressed, LeaseRenewed, Completed, AttemptFailed,
    Released, Poisoned, MadeWay, Cancelled, TimeRanOut, Redriven, TakenByPerson, PersonSpoke,
    // Each way in which it ends.
    EndedCompleted, EndedFailed, EndedCancelled, EndedExpired, DeadLettered, OutcomeUnknown,
    // Keys.
    ReplayJoined, ReplayOfFinished, KeyConflict, InFlightRefused, RetriedByCaller,
    // Words that come too late, twice, or from the wrong one.
    StaleTokenRefused, LateAnswerRefused, DoubledReportIgnored, DoubledDeliveryIgnored, ClaimLost, BroadcastOneWinner,
    ClaimAfterDeadlineRefused,
    // Time.
    LeaseExpired, AcceptTimedOut, NothingPulled,
    // Attempts that go otherwise.
    FallbackTaken, FallbackAnswered, ChainHeld, ChainFoundLate, FirstAskedAgain, FullAgentSaidSo, RefusedUnstarted, WriteTriedAgain,
    CancelledWhileWaiting, CancelledWhileOffered, CancelledWhileRouted, CancelledWhileAccepted,
    // People.
    HumanAsked, HumanAskedOfUnsureWrite, HumanAskedAfterDeadline, HumanTookAgain, HumanAnswered, HumanRefused,
    HumanReturned, HumanForgot, NoHumanInTime, CancelledBeforePeople, HumanTakeLost, HumanWasTooLate,
    // Agents.
    BreakerOpened, TrialPassed, TrialLost, AgentDeadTakenBack, ParkedTakenBack, AgentCameBack, CardChanged, AgentDrained,
    AgentEjected, AgentUnreachable, WeightLearned,
    // Gateways.
    CommitConflict, RouteAbandoned, CrashBeforeCommit, CrashAfterInsert, CrashAfterAssignBeforeDelivery,
    RetryHeldBack, OrphanSentAgain, CrashAfterCompleteBeforeWake, CrashBeforeStop, AnswerLostWithGateway, GatewayCameBack,
}

/// How often each was taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Coverage(BTreeMap<Covered, u64>);

impl Coverage {
    pub(crate) fn take(&mut self, path: Covered) {
        *self.0.entry(path).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (path, count) in &other.0 {
            *self.0.entry(*path).or_default() += count;
        }
    }

    pub(crate) fn count(&self, path: Covered) -> u64 {
        self.0.get(&path).copied().unwrap_or_default()
    }

    /// Those that were taken less often than `least`.
    pub(crate) fn missed(&self, least: u64) -> Vec<(Covered, u64)> {
        let all = Covered::ALL.iter().map(|path| (*path, self.count(*path)));
        all.filter(|(_, count)| *count < least).collect()
    }
}

/// What an event stands for in the list. A new event has to be given its place here.
pub(crate) fn of_event(event: &Event) -> Covered {
    match event {
        Event::Assign { .. } => Covered::Assigned,
        Event::Offer { .. } => Covered::Offered,
        Event::Defer { .. } => Covered::Deferred,
        Event::GiveUp { .. } => Covered::GivenUp,
        Event::Claim { .. } => Covered::Claimed,
        Event::Delivered { .. } => Covered::Arrived,
        Event::Accept { .. } => Covered::Accepted,
        Event::Progress { .. } => Covered::Progressed,
        Event::Renew { .. } => Covered::LeaseRenewed,
        Event::Complete { .. } => Covered::Completed,
        Event::Fail { .. } => Covered::AttemptFailed,
        Event::Release { .. } => Covered::Released,
        Event::Poison { .. } => Covered::Poisoned,
        Event::Preempt { .. } => Covered::MadeWay,
        Event::Take { .. } => Covered::TakenByPerson,
        Event::Person { .. } => Covered::PersonSpoke,
        Event::Cancel => Covered::Cancelled,
        Event::Due => Covered::TimeRanOut,
        Event::Redrive { .. } => Covered::Redriven,
    }
}

/// What the end of a task stands for. None: it has not ended.
pub(crate) fn of_end(phase: PhaseName) -> Option<Covered> {
    match phase {
        PhaseName::Submitted | PhaseName::Routed | PhaseName::Delivered | PhaseName::Accepted => None,
        PhaseName::Completed => Some(Covered::EndedCompleted),
        PhaseName::Failed => Some(Covered::EndedFailed),
        PhaseName::Cancelled => Some(Covered::EndedCancelled),
        PhaseName::Expired => Some(Covered::EndedExpired),
        PhaseName::DeadLettered => Some(Covered::DeadLettered),
    }
}
