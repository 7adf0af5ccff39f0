//! A gateway process whose configuration is written anew, and agents of that file that work until they are let go.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agent_reach_sdk::schemas::TaskView;
use agent_reach_sdk::schemas::call::{AgentView, ConfigRefused, ConfigReloaded, ConfigView};

use agent_reach_sdk::{Client, Error, ErrorCode, RetryPolicy, TaskId};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::victim::Victim;

/// The longest that anything here is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A gateway, whose file is changed.
pub(crate) struct World {
    pub(crate) victim: Victim,
    pub(crate) client: Client,
    /// Asks once, so that a refusal is seen.
    once: Client,
    pub(crate) folder: TempDir,
}

impl World {
    pub(crate) async fn start(configuration: &str) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), configuration).await
    }

    pub(crate) async fn start_in(folder: TempDir, configuration: &str) -> Self {
        let victim = Victim::start(folder.path(), configuration).await;
        let client = victim.client().await;
        let retry = RetryPolicy { retries: 0, ..RetryPolicy::default() };
        let once = Client::builder().url(victim.url()).retry(retry).connect().await.unwrap();
        Self { victim, client, once, folder }
    }

    pub(crate) fn write(&self, configuration: &str) {
        std::fs::write(self.folder.path().join("gateway.toml"), configuration).unwrap();
    }

    /// Writes the file anew and has it read.
    pub(crate) async fn reload(&self, configuration: &str) -> Result<ConfigReloaded, Error> {
        self.write(configuration);
        self.client.call("config/reload", &json!({})).await
    }

    /// As [`Self::reload`], refused: why.
    pub(crate) async fn refused(&self, configuration: &str) -> ConfigRefused {
        let error = self.reload(configuration).await.unwrap_err();
        why(&error)
    }

    pub(crate) async fn show(&self) -> ConfigView {
        self.client.call("config/show", &json!({})).await.unwrap()
    }

    /// What is in force under a key, and where it came from.
    pub(crate) async fn value(&self, key: &str) -> (Value, String) {
        let view = self.show().await;
        let found = view.keys.iter().find(|it| it.key == key).unwrap_or_else(|| panic!("no {key}: {view:?}"));
        (found.value.read().unwrap(), found.from.as_str().to_owned())
    }

    pub(crate) async fn submit(&self, params: Value) -> Result<TaskId, Error> {
        self.once.call::<TaskView>("task/submit", &params).await.map(|view| view.task_id)
    }

    pub(crate) async fn agent(&self, id: &str) -> Result<AgentView, Error> {
        self.client.call("agent/get", &json!({ "agent_id": id })).await
    }

    pub(crate) async fn end(&self, task: TaskId) -> TaskView {
        self.client.wait_for_end(task, PATIENCE).await.unwrap()
    }

    /// Waits until an agent is gone.
    pub(crate) async fn gone(&self, id: &str) {
        until(&format!("{id} goes"), async || {
            let found = self.agent(id).await;
            found.is_err_and(|error| error.code() == Some(ErrorCode::AgentNotFound)).then_some(())
        })
        .await;
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("gateway.log")).unwrap_or_default()
    }
}

/// Why a file was not taken on.
pub(crate) fn why(error: &Error) -> ConfigRefused {
    assert_eq!(error.code(), Some(ErrorCode::InvalidConfig), "{error:?}");
    error.refusal().unwrap().data.as_ref().unwrap().read().unwrap()
}

/// Looks again and again until there is something.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A command that says when it begins, and works until it is let go.
pub(crate) struct Gate {
    folder: PathBuf,
}

impl Gate {
    pub(crate) fn at(folder: &Path) -> Self {
        let script = "echo begun >> \"$1/begun\"\nwhile [ ! -e \"$1/open\" ]; do sleep 0.05; done\necho '\"done\"'\n";
        std::fs::write(folder.join("gate.sh"), script).unwrap();
        Self { folder: folder.to_owned() }
    }

    /// The agent as it stands in the file; it takes `seats` at once.
    pub(crate) fn agent(&self, id: &str, seats: u32) -> String {
        let folder = self.folder.display();
        format!(
            "[[agents]]\nagent_id = \"{id}\"\nmax_concurrency = {seats}\n\
             endpoints = [{{ protocol = \"process\", address = \"sh {folder}/gate.sh {folder}\" }}]\n\
             capabilities = [{{ name = \"gated\", effect = \"read\" }}]\n"
        )
    }

    /// Waits until so many have begun.
    pub(crate) async fn begun(&self, count: usize) {
        let file = self.folder.join("begun");
        until(&format!("{count} begin"), async || {
            (std::fs::read_to_string(&file).unwrap_or_default().lines().count() >= count).then_some(())
        })
        .await;
    }

    /// Lets all go.
    pub(crate) fn open(&self) {
        std::fs::write(self.folder.join("open"), "").unwrap();
    }
}
