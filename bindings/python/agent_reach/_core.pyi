"""The extension module, written in Rust. Only the package beside it uses it; it may change without notice."""

from typing import Final, List, Optional, Tuple, final

__all__ = [
    "VERSION",
    "Agent",
    "Client",
    "Gateway",
    "Mailbox",
    "Ticket",
    "Watch",
    "next_logs",
    "shutdown",
    "take_logs",
]

VERSION: Final[str]

_Parts = Tuple[str, Optional[str], str, Optional[str], bool, Optional[float], Optional[str], Optional[str]]
_Pair = Tuple[Optional[str], Optional[_Parts]]

@final
class Mailbox:
    """Where the runtime leaves what it has to say to one event loop."""

    def __new__(cls) -> Mailbox: ...
    def fileno(self) -> int:
        """What to watch: it can be read when there are letters."""

    def drain(self) -> List[Tuple[int, int, Optional[str], Optional[_Parts]]]:
        """Takes the letters out."""

@final
class Ticket:
    """A call that is under way."""

    def abort(self) -> None:
        """Gives the call up; there will be no answer."""

@final
class Client:
    """A caller of the gateway."""

    def __new__(cls, settings: str) -> Client: ...
    def check(self) -> _Pair:
        """Whether the gateway's URL and the agent's id can be used, without connecting; the answer is ``null``."""

    def begin(self, mailbox: Mailbox, ticket: int, op: str, params: str) -> Ticket:
        """Starts a call; its answer goes into the mailbox under the ticket."""

    def run(self, is_main: bool, op: str, params: str) -> _Pair:
        """Makes a call and waits for its answer."""

    def watch(self, task_id: str) -> Watch:
        """Watches a task."""

    def close(self) -> None:
        """Ends what there is of a connection; later calls fail."""

@final
class Watch:
    """A watch over one task."""

    def begin(self, mailbox: Mailbox, ticket: int) -> Ticket:
        """Starts to wait for the next view; the answer is ``null`` at the end."""

    def run(self, is_main: bool) -> _Pair:
        """Waits for the next view; the answer is ``null`` at the end."""

@final
class Agent:
    """An agent."""

    def __new__(cls, mailbox: Mailbox, settings: str) -> Agent: ...
    def start(self, ticket: int) -> Ticket:
        """Registers and begins to serve; the answer is what the gateway understood."""

    def finish(self, work: int, result: str) -> None:
        """Ends work with a result, as JSON."""

    def fail(self, work: int, failed: str) -> None:
        """Ends work with a failure, as JSON."""

    def progress(self, ticket: int, work: int, progress: str) -> Ticket:
        """Tells how far work is."""

    def count_tokens(self, work: int, tokens: int) -> None:
        """Counts tokens of a language model that work took."""

    def drain(self, ticket: int, grace: float) -> Ticket:
        """Takes no new work and lets what runs finish; the answer is how many were cut short."""

    def ended(self, ticket: int) -> Ticket:
        """Waits until the agent can serve no more; the answer is why."""

    def answer_http(self, ticket: int, method: str, target: str, body: bytes) -> Ticket:
        """Answers an HTTP request to the agent."""

    def set_dependency(self, name: str, state: str) -> None:
        """Reports the state of something that the agent needs."""

    def client(self) -> Optional[Client]:
        """A client over the agent's connection. ``None``: the agent does not serve."""

    def load(self) -> int:
        """How many tasks it works on."""

@final
class Gateway:
    """A gateway within this process."""

    def __new__(cls, config: str, data: str) -> Gateway: ...
    def start(self) -> str:
        """Starts it; the answer is its URL."""

    def stop(self) -> None:
        """Stops it in an orderly way."""

    def kill(self) -> None:
        """Ends it where it stands."""

    def listener(self) -> Optional[int]:
        """The file descriptor of its port."""

    def log(self) -> List[str]:
        """Its last log lines."""

def take_logs(is_verbose: bool) -> bool:
    """Begins to keep what the SDK logs. ``False``: another subscriber of this process has it."""

def next_logs() -> List[Tuple[int, str, str]]:
    """Waits for lines and takes them."""

def shutdown() -> None:
    """The interpreter is about to end: whoever waits here is sent away, and nobody else is let in."""
