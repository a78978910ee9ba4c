"""A search service of one's own: one JSON POST a query, and the queries that a model writes.

The credentials go into the header of the request and nowhere else.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from skillopt.envs.answers import AnswerTag
from skillopt.errors import ConfigError, DeadlineError, ModelError, RateLimitError, TransientError
from skillopt.utils.cancel import CancelToken
from skillopt.utils.redact import MASK

if TYPE_CHECKING:
    from skillopt.model.transport_http import HttpAnswer, HttpPool

QUERY_CHARS = 400
RESULT_CHARS = 1500
ANSWER_CHARS = 8000
NO_RESULTS = "[no results]"
QUERIES_TAG = AnswerTag("search_queries", fallback="none")

_SHORTEST_SECRET = 4  # less is found in any text
_RETRIES = 4
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 8.0
_LIST_NAMES = ("results", "items", "data", "documents", "value", "organic")
_TEXT_NAMES = ("content", "snippet", "text", "description", "summary", "body")
_BAD_SETTINGS = frozenset({401, 403, 404, 405})


class BadQueriesError(ValueError):
    """The queries of a reply cannot be read; the words are for the model."""


def queries_in(reply_text: str) -> list[str] | None:
    """The queries between `<search_queries>` and its end, each once; None when a reply has no such tag.

    They are a JSON list of texts, or an object with such a list under `queries`. Raises BadQueriesError for anything
    else.
    """
    found = QUERIES_TAG.find(reply_text)
    if found is None:
        return None
    try:
        value = json.loads(re.sub(r"^```(?:json)?|```$", "", found.strip()))
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        value = value.get("queries")
    if not isinstance(value, list) or not all(isinstance(query, str) for query in value):
        raise BadQueriesError(
            'the search queries must be a JSON list of texts, such as ["first query", "second query"]'
        )
    queries = [" ".join(query.split())[:QUERY_CHARS] for query in value]
    kept = list(dict.fromkeys(query for query in queries if query))
    if not kept:
        raise BadQueriesError("the list of search queries is empty")
    return kept


def check_address(url: str) -> str:
    """The address of the service. Raises ConfigError for one that would carry credentials in the open."""
    try:
        parts = urlsplit(url.strip())
        host, scheme = parts.hostname or "", parts.scheme.lower()
    except ValueError:
        host, scheme = "", ""
    if not url.strip():
        raise ConfigError("env.search_mode=custom needs env.search_api_url, the https address of your search service.")
    if not host or parts.username or parts.password or scheme not in ("https", "http"):
        raise ConfigError("env.search_api_url is no address like https://host/path, without user name and password.")
    if scheme == "http" and not _is_loopback(host):
        raise ConfigError(f"env.search_api_url: {host} must be reached by https, because credentials are sent to it.")
    return url.strip()


def credentials_of(name: str) -> tuple[str, str]:
    """Scheme and token in the variable `name`; a token without a scheme is of the scheme `Bearer`.

    Raises ConfigError when the variable is not set or no header can hold it.
    """
    value = os.environ.get(name, "").strip()
    if not name or not value:
        raise ConfigError(
            f"env.search_mode=custom needs the search service's credentials in the variable {name or '(unnamed)'}; "
            "set it, or name another one with env.search_auth_env."
        )
    if not re.fullmatch(r"[ -~]+", value):
        raise ConfigError(f"The variable {name} holds a character that no Authorization header can hold.")
    scheme, _, token = value.rpartition(" ")
    return scheme or "Bearer", token


class SearchService:
    """One service. `search` may be called from many threads."""

    def __init__(self, url: str, auth_env: str, provider: str, max_results: int, timeout: float) -> None:
        self._url = check_address(url)
        self._auth_env, self._provider, self._max_results = auth_env, provider, max_results
        self._timeout = timeout
        self._scheme, self._token = credentials_of(auth_env)
        self._lock = threading.Lock()
        self._pool: HttpPool | None = None

    def search(self, query: str, cancel: CancelToken) -> str:
        """What the service found, as text of at most `ANSWER_CHARS` characters.

        Tries again after 408, 429, 5xx and network faults while the item's time lasts. Raises ConfigError when address
        or credentials are refused, DeadlineError when the time is over, ModelError for everything else.
        """
        from skillopt.model import retry

        policy = retry.RetryPolicy(retries=_RETRIES, first_wait=_FIRST_WAIT, longest_wait=_LONGEST_WAIT)
        return retry.run(lambda _: self._once(query, cancel), policy, cancel, lambda *_: None)

    def close(self) -> None:
        """Close idle connections."""
        if self._pool is not None:
            self._pool.close()

    def _once(self, query: str, cancel: CancelToken) -> str:
        from skillopt.model.classify import Where, error_from_status, shown_url
        from skillopt.model.transport_http import HttpRequest

        where = Where("search", self._provider, shown_url(self._url), f"the variable {self._auth_env}", self._secrets)
        body = {"query": query, "max_num_results": self._max_results, "provider": self._provider}
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        request = HttpRequest(self._url, data, where, self._token, scheme=self._scheme)
        try:
            answer = self._connections().post(request, timeout=self._timeout, cancel=cancel)
        except DeadlineError:
            cancel.raise_if_cancelled()
            raise TransientError(f"{where.url} did not answer within {self._timeout:g} s.") from None
        if answer.status in _BAD_SETTINGS or 300 <= answer.status < 400:
            raise ConfigError(
                f"The search service at {where.url} answered HTTP {answer.status}; check env.search_api_url and the "
                f"variable {self._auth_env}."
            )
        if not 200 <= answer.status < 300:
            raise error_from_status(answer.status, answer.headers, answer.text, where)
        found = _found(answer, where.url)
        for secret in self._secrets:
            found = found.replace(secret, MASK)
        return found

    @property
    def _secrets(self) -> tuple[str, ...]:
        parts = (f"{self._scheme} {self._token}", self._token)
        return tuple(part for part in parts if len(part) >= _SHORTEST_SECRET)

    def _connections(self) -> HttpPool:
        from skillopt.model.transport_http import HttpPool

        with self._lock:
            self._pool = self._pool or HttpPool()
            return self._pool


def is_down(error: ModelError) -> bool:
    """Whether an error is one of the service, not of the query."""
    return isinstance(error, (TransientError, RateLimitError, DeadlineError))


def _found(answer: HttpAnswer, url: str) -> str:
    try:
        value = json.loads(answer.text)
    except (ValueError, RecursionError):
        raise TransientError(f"{url} answered without JSON.") from None
    return render_results(value)


def render_results(value: Any) -> str:
    """The results in an answer, numbered: title, address and text of each; other shapes as JSON."""
    rows = _rows(value)
    if rows is None:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    else:
        text = "\n\n".join(f"[{number}] {_result(row)}" for number, row in enumerate(rows, 1))
    text = text.strip() or NO_RESULTS
    return text if len(text) <= ANSWER_CHARS else f"{text[:ANSWER_CHARS]}\n[… cut]"


def _rows(value: Any) -> Sequence[Any] | None:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return next((value[name] for name in _LIST_NAMES if isinstance(value.get(name), list)), None)
    return None


def _result(row: Any) -> str:
    if not isinstance(row, Mapping):
        return str(row)[:RESULT_CHARS]
    head = [str(row[name]).strip() for name in ("title", "url", "link") if row.get(name)]
    body = next((str(row[name]).strip() for name in _TEXT_NAMES if row.get(name)), "")
    if not head and not body:
        body = json.dumps(row, ensure_ascii=False)
    return "\n".join([*head, body[:RESULT_CHARS]]).strip()


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
