# A copy of skillopt/model/provider_words.py, made by scripts/vendor.py: change the original, then run that.
"""What providers say when they refuse a request, read from their words.

Codes differ between providers and gateways, and many answer 400 for everything; the sentences are more alike. Pure
functions of one text.
"""

from __future__ import annotations

import re

EFFORT = "reasoning_effort"

_NAMES = (
    r"temperature|max_completion_tokens|max_output_tokens|max_tokens|tool_choice|tools|reasoning[._]effort|"
    r"(?<=['\"`])reasoning(?=['\"`])|reasoning(?=: )|top_p|seed"
)
_UNSUPPORTED = re.compile(
    rf"(unsupported|unrecogni[sz]ed|unknown|not supported|does not support|unexpected|not permitted|extra inputs?|"
    rf"only the default)[^\n]{{0,120}}?\b({_NAMES})\b"
    rf"|\b({_NAMES})\b[^\n]{{0,120}}?(unsupported|not supported|does not support|unrecogni[sz]ed|not permitted|"
    rf"deprecated|only the default)",
    re.IGNORECASE,
)
_CONTEXT = re.compile(
    r"context[_ ](length|window|size)|maximum context|prompt is too long|too many (input )?tokens|input is too long|"
    r"reduce the length of the (messages|prompt|input)|exceeds? (the|this) (model'?s )?(max|available context)|"
    r"(input|prompt) token count[^\n]{0,40}exceeds",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model_not_found|model_not_supported|model_not_available|invalid_model|deploymentnotfound|"
    r"(unknown|invalid|no such|unsupported) model\b|"
    r"\b(model|deployment)\b[^\n]{0,100}?"
    r"(does not exist|not exist|not found|is not available|not enabled|not been enabled|"
    r"(not|n't) supported ((on|for|in|with|by|when using) (this|your|the)|when using codex)|"
    r"no access|not (have|has) access)|"
    r"\b(not (have|has)|no) access to[^\n]{0,60}\b(model|deployment)\b",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(
    r"insufficient_quota|insufficient (balance|credits?|funds)|out of credits?|no credits? left", re.IGNORECASE
)
_FILTER = re.compile(
    r"\bcontent_filter\b|ResponsibleAIPolicyViolation|content[ _-](management )?policy|content_policy_violation|"
    r"flagged as potentially violating|data_inspection_failed|sensitive words? detected|new_sensitive|"
    r"blocked by (the )?safety",
    re.IGNORECASE,
)
_NUMBER = r"(\d[\d,]{0,14})"
_LIMITS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"maximum context length (?:is|of)\s*{_NUMBER}",
        rf">\s*{_NUMBER} maximum",
        rf"context (?:size|length|window)\s*(?:is|of|\(|:)?\s*{_NUMBER}",
        rf"maximum number of tokens allowed \(?{_NUMBER}",
        rf"(?:limit|maximum) (?:is|of)\s*{_NUMBER} (?:input )?tokens",
    )
)
_PROMPTS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_NUMBER} (?:tokens )?in (?:the|your) (?:messages|prompt|input)",
        rf"(?:resulted in|request has|prompt has|contains?) (?:at least )?{_NUMBER} (?:input )?tokens",
        rf"too long:\s*{_NUMBER} tokens",
        rf"token count \(?(?:of )?{_NUMBER}",
        rf"request \({_NUMBER} tokens\)",
        rf"requested (?:about )?{_NUMBER} tokens",
    )
)


def refused_parameter(said: str) -> str:
    """The request parameter that is not taken, blank when the words are about something else.

    The effort is `reasoning_effort`, also where an API has it inside `reasoning`.
    """
    match = _UNSUPPORTED.search(said)
    name = (match[2] or match[3]).lower() if match else ""
    return EFFORT if name.startswith("reasoning") else name


def context_sizes(said: str) -> tuple[int | None, int | None]:
    """(tokens of the prompt, the model's limit), each None where it is not said."""
    return _first(_PROMPTS, said), _first(_LIMITS, said)


def says_too_long(said: str) -> bool:
    """The prompt does not fit the model's window."""
    return bool(_CONTEXT.search(said))


def says_filtered(said: str) -> bool:
    """A content filter stopped the request."""
    return bool(_FILTER.search(said))


def says_no_model(said: str) -> bool:
    """The model or deployment does not exist, or this account may not use it."""
    return bool(_NO_MODEL.search(said))


def says_no_credit(said: str) -> bool:
    """There is no money left, as opposed to a rate that is used up."""
    return bool(_NO_CREDIT.search(said))


def _first(patterns: tuple[re.Pattern[str], ...], said: str) -> int | None:
    found = (pattern.search(said) for pattern in patterns)
    return next((int(match[1].replace(",", "")) for match in found if match), None)
