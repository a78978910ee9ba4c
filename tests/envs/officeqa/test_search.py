"""The search service: addresses, credentials, retries, queries, and rounds against a real server."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.envs.officeqa.adapter import OfficeQAEnv
from skillopt.envs.officeqa.search import (
    ANSWER_CHARS,
    BadQueriesError,
    SearchService,
    check_address,
    queries_in,
    render_results,
)
from skillopt.errors import BadRequestError, ConfigError, DeadlineError, TransientError
from skillopt.model.values import ModelCall
from skillopt.utils.cancel import CancelToken

TOKEN = "Bearer s3cret-token-value"
SOON = {"retry-after-ms": "1"}
Answer = tuple[int, Mapping[str, str], Any]


class Service:
    """An HTTP server on loopback that answers as `answers` says (the last one again and again)."""

    def __init__(self) -> None:
        self.answers: list[Answer] = [(200, {}, {"results": [{"title": "T", "url": "https://t", "snippet": "1,234"}]})]
        self.asked: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.wait = threading.Event()
        self.wait.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append((dict(self.headers), body))
                code, headers, answer = outer.answers[min(len(outer.asked), len(outer.answers)) - 1]
                outer.wait.wait(30)
                data = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
                self.send_response(code)
                for name, value in {**headers, "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                with contextlib.suppress(BrokenPipeError):  # a client that hung up is part of the tests
                    self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/search"

    def close(self) -> None:
        self.wait.set()
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setenv("MY_SEARCH_AUTH", TOKEN)
    running = Service()
    yield running
    running.close()


def client(service: Service, timeout: float = 5.0) -> SearchService:
    return SearchService(service.url, "MY_SEARCH_AUTH", "duckduckgo", 3, timeout)


def test_a_query_is_one_post_with_the_header_from_the_variable(service: Service) -> None:
    assert client(service).search("coal, coke 1931", CancelToken()) == "[1] T\nhttps://t\n1,234"
    headers, body = service.asked[0]
    assert headers["Authorization"] == TOKEN
    assert body == {"query": "coal, coke 1931", "max_num_results": 3, "provider": "duckduckgo"}


@pytest.mark.parametrize(
    ("value", "sent"), [("abc-def-ghi", "Bearer abc-def-ghi"), ("Basic dXNlcjpwYXNz", "Basic dXNlcjpwYXNz")]
)
def test_credentials_go_out_with_their_own_scheme(
    service: Service, monkeypatch: pytest.MonkeyPatch, value: str, sent: str
) -> None:
    monkeypatch.setenv("MY_SEARCH_AUTH", value)
    client(service).search("x", CancelToken())
    assert service.asked[0][0]["Authorization"] == sent


def test_a_service_that_repeats_the_credentials_does_not_spread_them(service: Service) -> None:
    service.answers = [(200, {}, [{"title": f"you sent {TOKEN}"}])]
    assert client(service).search("x", CancelToken()) == "[1] you sent [REDACTED]"


@pytest.mark.parametrize("code", [408, 429, 500, 503])
def test_passing_faults_are_tried_again(service: Service, code: int) -> None:
    service.answers = [(code, SOON, {"error": "busy"}), (code, SOON, "no json"), (200, {}, [])]
    assert client(service).search("x", CancelToken()) == "[no results]"
    assert len(service.asked) == 3


def test_after_four_more_attempts_it_gives_up(service: Service) -> None:
    service.answers = [(503, SOON, {"error": f"down {TOKEN}"})]
    with pytest.raises(TransientError, match="answered HTTP 503") as caught:
        client(service).search("x", CancelToken())
    assert len(service.asked) == 5
    assert "s3cret" not in str(caught.value)


def test_a_bad_query_is_not_tried_again(service: Service) -> None:
    service.answers = [(400, {}, {"error": "too long"})]
    with pytest.raises(BadRequestError, match="too long"):
        client(service).search("x", CancelToken())
    assert len(service.asked) == 1


@pytest.mark.parametrize("code", [401, 403, 404, 302])
def test_wrong_address_or_credentials_end_the_run_with_what_to_mend(service: Service, code: int) -> None:
    service.answers = [(code, {"Location": "https://elsewhere.example/"}, {"error": TOKEN})]
    with pytest.raises(
        ConfigError, match=rf"HTTP {code}; check env\.search_api_url and the variable MY_SEARCH_AUTH"
    ) as e:
        client(service).search("x", CancelToken())
    assert "s3cret" not in str(e.value) and len(service.asked) == 1


def test_the_item_s_time_ends_a_search_and_its_retries(service: Service) -> None:  # W12
    service.wait.clear()
    with pytest.raises(DeadlineError):
        client(service, timeout=30).search("x", CancelToken(timeout=0.2))
    service.wait.set()
    service.answers = [(429, {"Retry-After": "60"}, {})]
    with pytest.raises(DeadlineError):
        client(service).search("x", CancelToken(timeout=2))


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "needs env.search_api_url"),
        ("http://search.example/x", "search.example must be reached by https"),
        ("http://127.0.0.1.example/x", "must be reached by https"),
        ("ftp://search.example/x", "is no address like https"),
        ("https://user:pw@search.example/x", "without user name and password"),
        ("search.example/x", "is no address"),
        ("https://[bad", "is no address"),
    ],
)
def test_credentials_never_travel_in_the_open(url: str, words: str) -> None:  # W17
    with pytest.raises(ConfigError, match=words) as caught:
        check_address(url)
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["https://s.example/x", "http://localhost:8/x", "http://127.0.0.9/x", "http://[::1]:8/"]
)
def test_https_and_loopback_are_taken(url: str) -> None:
    assert check_address(f" {url} ") == url


def test_there_is_no_default_address_and_no_default_credentials(
    make_env: Callable[..., OfficeQAEnv], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=r"needs env\.search_api_url"):
        make_env(search_mode="custom", data_dirs=None)
    monkeypatch.delenv("OFFICEQA_CUSTOM_SEARCH_AUTH", raising=False)
    keys = {"search_mode": "custom", "search_api_url": "https://s.example/x"}
    with pytest.raises(ConfigError, match="in the variable OFFICEQA_CUSTOM_SEARCH_AUTH"):
        make_env(**keys)
    monkeypatch.setenv("OFFICEQA_CUSTOM_SEARCH_AUTH", "a\r\nX-Evil: 1")
    with pytest.raises(ConfigError, match="no Authorization header can hold") as caught:
        make_env(**keys)
    assert "Evil" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ('<search_queries>["a, b; c", "d"]</search_queries>', ["a, b; c", "d"]),  # W17: commas stay inside
        ('<search_queries>```json\n["a"]\n```</search_queries>', ["a"]),
        ('<search_queries>{"queries": ["a", "a", " "]}</search_queries>', ["a"]),
        ("no tag", None),
    ],
)
def test_queries_are_json_only(text: str, queries: list[str] | None) -> None:
    assert queries_in(text) == queries


@pytest.mark.parametrize("inner", ["a, b", "a\nb", "[1]", "[]", '{"q": ["a"]}', '"a"', ""])
def test_other_forms_are_answered_with_what_is_expected(inner: str) -> None:
    with pytest.raises(BadQueriesError):
        queries_in(f"<search_queries>{inner}</search_queries>")


@given(st.recursive(st.none() | st.text() | st.floats(allow_nan=False), lambda v: st.lists(v) | st.dictionaries(
    st.sampled_from(["results", "title", "content", "x"]), v)))  # fmt: skip
def test_no_answer_of_a_service_raises_and_none_is_unbounded(value: Any) -> None:
    assert 0 < len(render_results(value)) <= ANSWER_CHARS + 20
    assert len(render_results([{"content": "x" * 9999}] * 50)) <= ANSWER_CHARS + 20


# Rounds


@pytest.fixture
def custom(make_env: Callable[..., OfficeQAEnv], service: Service) -> Callable[..., OfficeQAEnv]:
    keys = {"search_mode": "custom", "search_api_url": service.url, "search_auth_env": "MY_SEARCH_AUTH"}
    return lambda **more: make_env([row()], data_dirs=None, **{**keys, **more})


def row() -> dict[str, Any]:
    return {"uid": "u1", "question": "How many tons?", "ground_truth": "1,234", "source_files": "gone.txt"}


def ask(*queries: str) -> str:
    return f"<search_queries>{json.dumps(queries)}</search_queries>"


RIGHT = "<answer>1234</answer>"


def test_the_target_searches_and_answers_in_one_conversation(
    custom: Any, officeqa: Any, play: Any, service: Service
) -> None:
    session = officeqa.Session(ask("coal, 1931"), RIGHT)
    result = play(custom(), session)
    assert (result.hard, result.n_turns, result.status) == (1.0, 2, "ok")
    assert session.seen[0].tools is None and "<search_queries>" in session.seen[0].system
    assert session.seen[0].last_user == "## Question\n\nHow many tons?"
    assert [m["role"] for m in session.seen[1].messages] == ["system", "user", "assistant", "user"]
    assert "### coal, 1931" in session.seen[1].last_user and "1,234" in session.seen[1].last_user
    assert result.trajectory[1]["cmd"] == 'search "coal, 1931"' and "1,234" in result.trajectory[1]["obs"]
    assert "s3cret" not in json.dumps(result.to_dict())


def test_too_many_queries_wrong_forms_and_the_last_round_are_said(
    custom: Any, officeqa: Any, play: Any, service: Service
) -> None:
    session = officeqa.Session(ask("a", "b", "c"), "<search_queries>a, b</search_queries>", ask("d"))
    result = play(custom(max_queries_per_turn=2, max_tool_turns=3), session)
    assert [body["query"] for _, body in service.asked] == ["a", "b"]
    assert "1 queries left out; at most 2 at once" in session.seen[1].last_user
    assert "must be a JSON list" in session.seen[2].last_user and "final answer now" in session.seen[2].last_user
    assert len(session.seen) == 3 and result.fail_reason.startswith("out_of_rounds")


def test_one_failing_query_becomes_text(custom: Any, officeqa: Any, play: Any, service: Service) -> None:
    service.answers = [(400, {}, {"error": "no such operator"}), (200, {}, ["found 1,234"])]
    session = officeqa.Session(ask("a", "b"), RIGHT)
    result = play(custom(), session)
    assert result.status == "ok" and result.hard == 1.0
    shown = session.seen[1].last_user
    assert "[error]" in shown and "no such operator" in shown and "found 1,234" in shown


def test_an_item_whose_searches_all_failed_is_an_error_and_no_zero(
    custom: Any, officeqa: Any, play: Any, service: Service
) -> None:
    service.answers = [(503, SOON, {"error": "down"})]
    result = play(custom(), officeqa.Session(ask("a"), "<answer>7</answer>"))
    assert result.status == "error" and "HTTP 503" in result.error and "s3cret" not in result.error


def test_wrong_credentials_end_the_run(custom: Any, officeqa: Any, play: Any, service: Service) -> None:
    service.answers = [(401, {}, {})]
    with pytest.raises(ConfigError, match="HTTP 401"):
        play(custom(), officeqa.Session(ask("a"), RIGHT))


def test_a_hanging_service_is_ended_with_the_item(custom: Any, officeqa: Any, play: Any, service: Service) -> None:
    service.wait.clear()

    def first(call: ModelCall) -> str:
        return ask("a")

    result = play(custom(), officeqa.Session(first), item_timeout=0.3)
    assert result.status == "error" and "not finished within 0.3 s" in result.error
