"""What goes out in one call and what comes back: the two values that every backend shares."""

from __future__ import annotations

from dataclasses import dataclass

_BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One call as it leaves this program. `prompt` is redacted already.

    `kind`: what it is for (attempt, judge, reflect, mine, contrast, slow_update, ...). `max_tokens`: hint for the
    length of the reply. `tools`: names of stand-in tools that the model may call. `seconds`: time for one attempt.
    `key`: what the answer is kept under. `sample`: which of several answers to the same prompt this one is, blank for
    the first.
    """

    kind: str
    prompt: str
    max_tokens: int
    tools: tuple[str, ...] = ()
    seconds: float = 180.0
    key: str = ""
    sample: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a provider answered. Token counts are None where it tells none.

    `tools_called`: the stand-in tools whose call was recorded. `cut`: the reply ended at a token limit. `requests`: how
    many requests it took.
    """

    text: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    model: str = ""
    tools_called: tuple[str, ...] = ()
    cut: bool = False
    requests: int = 1


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens of one call. `estimated`: counted here from the length of the texts, because the provider told none."""

    prompt: int
    completion: int
    estimated: bool

    @property
    def total(self) -> int:
        """Prompt and reply together."""
        return self.prompt + self.completion


def spent(outgoing: Outgoing, reply: Reply) -> Spent:
    """What a call has used, from the provider's words where it says it."""
    if reply.prompt_tokens is not None and reply.completion_tokens is not None:
        return Spent(max(0, reply.prompt_tokens), max(0, reply.completion_tokens), estimated=False)
    return Spent(estimate(outgoing.prompt), estimate(reply.text), estimated=True)


def estimate(text: str) -> int:
    """About how many tokens a text has: a quarter of its UTF-8 bytes, rounded up."""
    return -(-len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN)
