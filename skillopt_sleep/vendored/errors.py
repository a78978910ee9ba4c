# A copy of skillopt/errors.py, made by scripts/vendor.py: change the original, then run that.
"""Every error that SkillOpt raises on purpose, in one tree.

    SkillOptError
    ├── UsageError                 the person must change something first (exit code 2)
    │   ├── ConfigError            a key, a flag or a configuration file
    │   ├── DataError              a data file, a split, an item
    │   ├── SkillFormatError       a skill document with broken markers or an unreadable encoding
    │   └── MissingExtraError      an optional package is not installed
    ├── ModelError                 a model call failed
    │   ├── AuthError              wrong or missing credentials                      (stops the run)
    │   ├── ModelSetupError        unknown model, wrong address, server not there    (stops the run)
    │   ├── RateLimitedUntilError  the provider asks for a wait above the ceiling    (stops the run)
    │   ├── BadRequestError        the provider refused this request
    │   │   ├── ContextTooLongError  the prompt does not fit the model's window
    │   │   ├── ContentFilterError   the provider's content filter stopped the request or the answer
    │   │   └── UnsupportedCallError the backend cannot carry tools or images      (nothing was sent)
    │   ├── RefusedError           the model declined to do the work
    │   ├── RateLimitError         429, with the wait that the provider asked for    (retried)
    │   ├── TransientError         5xx, 408, 409, a reset connection, unreadable body (retried)
    │   ├── EmptyReplyError        a reply without text                              (retried)
    │   ├── AgentError             a coding agent ended without doing its task
    │   │   └── SilentAgentError   … without an answer, as often as it may try (an EmptyReplyError too)
    │   ├── TruncatedError         the reply was cut by the token limit
    │   └── DeadlineError          the call's or the item's time is over
    ├── ReplyError                 a model's text is not the JSON that was asked for
    ├── RunError                   the run cannot go on (exit code 1)
    │   ├── TooManyErrorsError     more items failed than env.max_error_rate allows
    │   ├── RunLockedError         another process works in the same folder
    │   └── ResumeMismatchError    the folder holds a run with other settings
    ├── BudgetExceededError        a budget is used up; everything is kept (exit code 3)
    └── InterruptedRunError        stopped by a signal; everything is kept (exit code 130)

A message says what happened, where, and what to do. It never holds a secret.
"""

from __future__ import annotations

from typing import ClassVar


class SkillOptError(Exception):
    """Root of the tree. `exit_code` is what a command line ends with."""

    exit_code: ClassVar[int] = 1


class UsageError(SkillOptError, ValueError):
    """Something that the person who started the command has to change first."""

    exit_code: ClassVar[int] = 2


class ConfigError(UsageError):
    """A key, a flag or a configuration file is wrong."""


class DataError(UsageError):
    """A data file, a split or an item is wrong."""


class SkillFormatError(UsageError):
    """A skill document cannot be edited safely as it is."""


class MissingExtraError(UsageError, ImportError):
    """An optional package is needed and not installed; the message names the `pip install`."""


class ModelError(SkillOptError, RuntimeError):
    """A model call failed. `retryable`: another attempt may succeed. `fatal`: no other call can succeed either."""

    retryable: ClassVar[bool] = False
    fatal: ClassVar[bool] = False


class AuthError(ModelError):
    """Credentials are missing, wrong, or lack the right to use this model (401, 403)."""

    fatal: ClassVar[bool] = True


class ModelSetupError(ModelError):
    """The model or the address does not exist, or nothing answers there."""

    fatal: ClassVar[bool] = True


class RateLimitedUntilError(ModelError):
    """The provider asks for a longer wait than `model.retry_after_ceiling_seconds`."""

    fatal: ClassVar[bool] = True


class BadRequestError(ModelError):
    """The provider refused this one request (400, 413, 422)."""


class ContextTooLongError(BadRequestError):
    """The prompt does not fit into the model's context window.

    `prompt_tokens` and `limit`: the two sizes in tokens, as far as they are known, else None.
    """

    def __init__(self, message: str, prompt_tokens: int | None = None, limit: int | None = None) -> None:
        super().__init__(message)
        self.prompt_tokens, self.limit = prompt_tokens, limit


class ContentFilterError(BadRequestError):
    """The provider's content filter stopped the request, or withheld the whole answer."""


class UnsupportedCallError(BadRequestError, NotImplementedError):
    """The backend cannot carry what the call holds (tools, images); nothing was sent."""


class RefusedError(ModelError):
    """The model declined to do what the optimizer asks. The same words would be declined again."""


class RateLimitError(ModelError):
    """Too many requests. `retry_after`: seconds that the provider asked to wait, or None."""

    retryable: ClassVar[bool] = True

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TransientError(ModelError):
    """A fault that usually passes: 408, 409, 5xx, a reset connection, a broken body.

    `retry_after`: seconds that the provider asked to wait, or None. `unclear`: nothing says what kind of fault it was.
    """

    retryable: ClassVar[bool] = True

    def __init__(self, message: str, retry_after: float | None = None, *, unclear: bool = False) -> None:
        super().__init__(message)
        self.retry_after, self.unclear = retry_after, unclear


class EmptyReplyError(ModelError):
    """The provider answered without any text."""

    retryable: ClassVar[bool] = True


class AgentError(ModelError):
    """A coding agent ended without doing its task, and nothing says that another attempt would end otherwise."""


class SilentAgentError(AgentError, EmptyReplyError):
    """A coding agent gave no answer in any of the attempts that it has."""

    retryable: ClassVar[bool] = False


class TruncatedError(ModelError):
    """The reply ended at the token limit before an answer was complete.

    `final`: a larger limit was of no use either, or could not be had, so that asking again with one is in vain.
    """

    def __init__(self, message: str, *, final: bool = False) -> None:
        super().__init__(message)
        self.final = final


class DeadlineError(ModelError, TimeoutError):
    """The time given to a call or to an item is over."""


class ReplyError(SkillOptError, ValueError):
    """A model's text is not the JSON that was asked for.

    `outcome` is one of `unparsed`, `truncated`, `ambiguous`, `wrong_shape`.
    """

    def __init__(self, message: str, outcome: str) -> None:
        super().__init__(message)
        self.outcome = outcome


class RunError(SkillOptError):
    """The run cannot go on; what is finished is kept."""


class TooManyErrorsError(RunError):
    """More items still fail after their retries than `env.max_error_rate` allows."""


class RunLockedError(RunError):
    """Another live process works in the same run folder."""


class ResumeMismatchError(RunError):
    """The run folder belongs to a run with other settings, data or skill."""

    exit_code: ClassVar[int] = 2


class BudgetExceededError(SkillOptError):
    """A budget is used up. Everything is kept; a larger budget goes on from there."""

    exit_code: ClassVar[int] = 3


class InterruptedRunError(SkillOptError):
    """Stopped by a signal. Everything is kept; the same command goes on."""

    exit_code: ClassVar[int] = 130
