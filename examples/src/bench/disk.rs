//! How fast the disk is: appends of 4 KiB, each made durable before the next.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Appends and syncs for a while.
///
/// # Errors
/// The folder cannot be written.
pub fn fdatasync_per_second(folder: &Path, length: Duration) -> std::io::Result<f64> {
    let path = folder.join("raw-disk");
    let mut file = File::create(&path)?;
    let page = [7_u8; 4096];
    let began = Instant::now();
    let mut done = 0_u32;
    while began.elapsed() < length {
        file.write_all(&page)?;
        file.sync_data()?;
        done += 1;
    }
    let rate = f64::from(done) / began.elapsed().as_secs_f64();
    std::fs::remove_file(&path)?;
    Ok(rate)
}
