//! Files that are not as they should be, and disks without room: what is said, and that nothing is lost.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::time::{Duration, Instant};

use reach_gateway::store::sqlite::{SqliteConfig, SqliteStore};
use reach_gateway::store::{Command, Error, Outcome, Store};
use reach_schemas::{PhaseName, RawJson};
use rusqlite::Connection;

use crate::make::{self, config, directory, finish, id, insert, insert_keyed, key, purge, stepped, task, tell};

#[track_caller]
fn refused(path: &Path) -> Error {
    let before = fs::read(path).ok();
    let error = SqliteStore::open(config(path)).expect_err("it must be refused");
    assert_eq!(fs::read(path).ok(), before, "a refused file is left as it is");
    error
}

#[tokio::test]
async fn what_was_acknowledged_is_there_when_the_file_is_opened_again() {
    let directory = directory();
    let path = directory.path().join("new/directories/reach.db");
    let store = make::open(&path);
    tell(&store, insert_keyed(task(1), key("k", 1), 0)).await;
    tell(&store, Command::PutAgent(make::agent("a@ns", 3))).await;
    drop(store);
    let store = make::open(&path);
    assert_eq!(store.load(id(1)).await.unwrap(), Some(task(1)));
    assert_eq!(store.agents().await.unwrap(), [make::agent("a@ns", 3)]);
    assert!(store.counts().await.unwrap().bytes > 0);
}

#[tokio::test]
async fn an_empty_file_becomes_a_store() {
    let directory = directory();
    let path = directory.path().join("reach.db");
    fs::write(&path, "").unwrap();
    assert_eq!(tell(&make::open(&path), insert(task(1))).await, Outcome::Inserted);
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let directory = directory();
    let path = directory.path().join("notes.txt");
    fs::write(&path, "Dear diary, ".repeat(500)).unwrap();
    let error = refused(&path);
    assert!(matches!(error, Error::Foreign { .. }), "{error:?}");
    let said = error.to_string();
    assert!(said.contains("notes.txt is not a store of Agent-Reach but no SQLite database"), "{said}");
}

#[test]
fn the_database_of_another_program_is_refused() {
    let directory = directory();
    let path = directory.path().join("bookmarks.db");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE bookmark (url TEXT); INSERT INTO bookmark VALUES ('x')").unwrap();
    drop(other);
    let error = refused(&path);
    assert!(matches!(error, Error::Foreign { .. }), "{error:?}");
    assert!(error.to_string().contains("database of another program"), "{error}");
}

#[test]
fn the_file_of_a_newer_gateway_is_refused() {
    let directory = directory();
    let path = directory.path().join("reach.db");
    drop(make::open(&path));
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let error = refused(&path);
    assert!(matches!(error, Error::Newer { found: 99, .. }), "{error:?}");
}

#[test]
fn a_second_gateway_is_refused_at_once_and_told_who_has_the_file() {
    let directory = directory();
    let path = directory.path().join("reach.db");
    let first = make::open(&path);
    let began = Instant::now();
    let error = refused(&path);
    assert!(began.elapsed() < Duration::from_secs(1));
    assert!(matches!(error, Error::Locked { holder: Some(_), .. }), "{error:?}");
    assert!(error.to_string().contains(&format!("in use by process {}", std::process::id())), "{error}");
    drop(first);
    make::open(&path);
}

#[test]
fn a_place_where_nothing_can_be_written_is_refused() {
    // Not even root may make files here.
    let error = refused(Path::new("/sys/kernel/reach.db"));
    assert!(matches!(error, Error::ReadOnly { .. }), "{error:?}");
    assert!(error.to_string().contains("give the gateway's user the right to write"), "{error}");
}

#[test]
fn a_path_that_is_a_directory_is_refused() {
    let directory = directory();
    let path = directory.path().join("reach.db");
    fs::create_dir(&path).unwrap();
    let error = refused(&path);
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
}

#[tokio::test]
async fn a_task_that_cannot_be_read_is_said_to_be_damaged_and_the_others_are_served() {
    let directory = directory();
    let path = directory.path().join("reach.db");
    let store = make::open(&path);
    tell(&store, insert(task(1))).await;
    tell(&store, insert(task(2))).await;
    drop(store);
    Connection::open(&path).unwrap().execute("UPDATE open SET state = '{' WHERE no = 1", []).unwrap();
    let store = make::open(&path);
    let error = store.load(id(1)).await.unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
    assert!(error.to_string().contains("the state of a task cannot be read"), "{error}");
    assert_eq!(store.load(id(2)).await.unwrap(), Some(task(2)));
}

/// Fills a store until it refuses; the number of tasks that it took.
async fn fill(store: &dyn Store) -> (u64, Error) {
    for n in 0.. {
        match store.apply(vec![insert(big(n))]).await {
            Ok(outcomes) => assert_eq!(outcomes, [Outcome::Inserted]),
            Err(error) => return (n, error),
        }
    }
    unreachable!("a store without bound")
}

fn big(n: u64) -> reach_core::task::Task {
    let mut task = task(n);
    task.state.progress = Some(RawJson::of(&"x".repeat(20_000)).unwrap());
    task
}

#[tokio::test]
async fn a_full_store_says_so_keeps_what_it_has_and_goes_on_when_there_is_room() {
    let directory = directory();
    let path = directory.path().join("reach.db");
    let store = SqliteStore::open(SqliteConfig { path: path.clone(), bytes_max: Some(400_000) }).unwrap();
    let (taken, error) = fill(&store).await;
    assert!(matches!(error, Error::Full { .. }), "{error:?}");
    assert!(taken > 5);

    // One command too many in a batch undoes the batch.
    let next = stepped(&big(0), PhaseName::Completed, 5);
    let batch = vec![finish(next.clone(), 100), insert(big(taken)), insert(big(taken + 1)), insert(big(taken + 2))];
    let error = store.apply(batch).await.unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "{error:?}");
    for n in 0..taken {
        assert_eq!(store.load(id(n)).await.unwrap(), Some(big(n)));
    }
    assert_eq!(store.load(id(taken)).await.unwrap(), None);

    let mut small = next;
    small.state.progress = None;
    assert_eq!(tell(&store, finish(small, 100)).await, Outcome::Committed);
    assert_eq!(tell(&store, purge(1000, 1000, 9)).await, Outcome::Purged { tasks: 1, keys: 0, messages: 0 });
    assert_eq!(tell(&store, insert(big(taken))).await, Outcome::Inserted);
}

/// The child of the test below, in a mount namespace of its own that ends with it.
#[tokio::test]
#[ignore = "run by a_disk_without_room_refuses_and_goes_on, in a namespace of its own"]
async fn child_on_a_small_disk() {
    let place = PathBuf::from(std::env::var("STORE_SMALL_DISK").unwrap());
    let mounted = Process::new("mount").args(["-t", "tmpfs", "-o", "size=3m", "tmpfs"]).arg(&place).status().unwrap();
    assert!(mounted.success());
    let path = place.join("reach.db");
    let ballast = place.join("ballast");
    fs::write(&ballast, vec![0_u8; 500_000]).unwrap();

    let store = make::open(&path);
    let (taken, error) = fill(&store).await;
    assert!(matches!(error, Error::Full { .. }), "{error:?}");
    assert!(taken > 5, "{taken}");
    assert_eq!(store.load(id(taken - 1)).await.unwrap(), Some(big(taken - 1)));
    fs::remove_file(&ballast).unwrap();
    assert_eq!(tell(&store, insert(big(taken))).await, Outcome::Inserted);
    store.check().await.unwrap();
    drop(store);

    let store = make::open(&path);
    for n in 0..=taken {
        assert_eq!(store.load(id(n)).await.unwrap(), Some(big(n)));
    }
}

#[test]
fn a_disk_without_room_refuses_and_goes_on() {
    let may_mount = Process::new("unshare").args(["--mount", "true"]).output();
    if !may_mount.is_ok_and(|output| output.status.success()) {
        eprintln!("not tried: mounting a small disk is not permitted here");
        return;
    }
    let directory = directory();
    let child = Process::new("unshare")
        .arg("--mount")
        .arg(std::env::current_exe().unwrap())
        .args(["files::child_on_a_small_disk", "--exact", "--ignored", "--nocapture"])
        .env("STORE_SMALL_DISK", directory.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout).into_owned() + &String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
}
