//! Counting and printing.

use std::time::{Duration, Instant};

/// Times, to be asked for their mean and their quantiles.
#[derive(Debug, Default, Clone)]
pub(crate) struct Times(pub(crate) Vec<Duration>);

impl Times {
    pub(crate) fn mean_ms(&self) -> f64 {
        let sum: Duration = self.0.iter().sum();
        sum.as_secs_f64() * 1000.0 / self.0.len().max(1) as f64
    }

    /// In ms; 0 if there are none.
    pub(crate) fn quantile_ms(&self, quantile: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = ((sorted.len() as f64 * quantile).ceil() as usize).clamp(1, sorted.len().max(1)) - 1;
        sorted.get(at).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
    }
}

/// How long calls took that some callers made side by side, for as long as it is measured. `call` is one of a caller's, by
/// its number and how many it has made; after each it does something else for a while.
pub(crate) async fn side_by_side<F: Future<Output = ()> + Send>(
    callers: usize,
    (measured, thought): (Duration, Duration),
    call: impl Fn(usize, usize) -> F + Clone + Send + Sync + 'static,
) -> Times {
    let one = |number| {
        let call = call.clone();
        tokio::spawn(async move {
            let (began, mut times) = (Instant::now(), Vec::new());
            while began.elapsed() < measured {
                let asked = Instant::now();
                call(number, times.len()).await;
                times.push(asked.elapsed());
                if !thought.is_zero() {
                    tokio::time::sleep(thought).await;
                }
            }
            times
        })
    };
    let callers: Vec<_> = (0..callers).map(one).collect();
    let mut all = Times::default();
    for caller in callers {
        all.0.extend(caller.await.unwrap());
    }
    all
}

/// What a process has used: ms of CPU, and KiB that are resident.
pub(crate) fn usage(pid: u32) -> (u64, u64) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let behind: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = behind[11].parse::<u64>().unwrap() + behind[12].parse::<u64>().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    // A tick of /proc is 10 ms on every Linux that this runs on.
    (ticks * 10, resident.split_whitespace().next().unwrap().parse().unwrap())
}
