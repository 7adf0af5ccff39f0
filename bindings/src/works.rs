//! The work that handlers of Python have: given out through the mailbox, and ended by number.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_reach_sdk::{Context, Handler, HandlerError, RawJson, Task};
use tokio::sync::oneshot;

use crate::answer::written;
use crate::mailbox::{Box, GONE, STOP, WORK};

/// How a handler ended.
pub(crate) type Ended = Result<RawJson, HandlerError>;

/// The work that is out.
pub(crate) struct Works {
    mailbox: Arc<Box>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    last: u64,
    works: HashMap<u64, Work>,
}

struct Work {
    context: Context,
    ended: oneshot::Sender<Ended>,
}

impl Works {
    pub(crate) fn new(mailbox: Arc<Box>) -> Arc<Self> {
        Arc::new(Self { mailbox, table: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of work that is still out.
    pub(crate) fn context(&self, work: u64) -> Option<Context> {
        self.lock().works.get(&work).map(|work| work.context.clone())
    }

    /// Ends work. Of one that is not out any more nothing is said.
    pub(crate) fn end(&self, work: u64, ended: Ended) {
        let out = self.lock().works.remove(&work);
        if let Some(out) = out {
            let _not_wanted = out.ended.send(ended);
        }
    }

    fn give_out(self: &Arc<Self>, context: Context) -> (Out, oneshot::Receiver<Ended>) {
        let (ended, ending) = oneshot::channel();
        let mut table = self.lock();
        table.last += 1;
        let work = table.last;
        table.works.insert(work, Work { context, ended });
        (Out { works: self.clone(), work }, ending)
    }
}

/// Work that is out. Its end takes the work back from whoever still has it.
struct Out {
    works: Arc<Works>,
    work: u64,
}

impl Drop for Out {
    fn drop(&mut self) {
        self.works.lock().works.remove(&self.work);
        self.works.mailbox.put((GONE, self.work, None, None));
    }
}

/// Hands work to the event loop, whichever capability it is for.
pub(crate) struct Forward(pub(crate) Arc<Works>);

impl Handler for Forward {
    type Output = RawJson;

    async fn handle(&self, task: Task, context: Context) -> Result<RawJson, HandlerError> {
        let delivery = written(task.delivery())?;
        let (out, mut ending) = self.0.give_out(context.clone());
        self.0.mailbox.put((WORK, out.work, Some(delivery), None));
        let ended = tokio::select! {
            ended = &mut ending => ended,
            () = context.cancelled() => {
                self.0.mailbox.put((STOP, out.work, None, None));
                ending.await
            }
        };
        ended.unwrap_or_else(|_| Err(HandlerError::retryable("the agent's event loop ended before the work was done")))
    }
}
