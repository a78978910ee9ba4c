"""Where prices come from, and which one holds."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from skillopt.config.providers import PROVIDERS
from skillopt.config.resolve import resolve
from skillopt.errors import ConfigError
from skillopt.model.cost import Price
from skillopt.model.prices import SHIPPED, known_prices, read_price_file
from skillopt.model.usage import UsageKey, price_of


def settings(prices: dict[str, Any] | None = None, price_file: str = "") -> Any:
    return SimpleNamespace(prices=prices or {}, price_file=price_file)


def test_the_shipped_list_is_dated_and_sane() -> None:
    prices = known_prices(settings())
    assert prices["gpt-4o-mini"] == Price(0.15, 0.60, 0.075)
    for price in prices.values():
        assert re.fullmatch(r"built-in list prices of \d{4}-\d\d-\d\d", price.source)
        assert price.cached is not None and 0 < price.cached < price.prompt < price.completion
    assert "change" in SHIPPED.read_text("utf-8") and "model.price_file" in SHIPPED.read_text("utf-8")


def test_the_file_wins_over_the_list_and_the_setting_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(
        "date: 2027-01-02\nprices:\n  gpt-4o: {input: 1, output: 2}\n  mine: {input: 3, output: 4}\n", encoding="utf-8"
    )
    prices = known_prices(settings({"mine": {"input": 5, "output": 6}}, str(path)))
    assert (prices["gpt-4o"], prices["gpt-4o"].source) == (Price(1, 2), f"{path} of 2027-01-02")
    assert (prices["mine"], prices["mine"].source) == (Price(5, 6), "model.prices")
    assert prices["gpt-4o-mini"].prompt == 0.15


def test_a_file_may_be_the_mapping_alone(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text("openai_compatible/m: {input: 0, output: 0}\n", encoding="utf-8")
    assert read_price_file(path) == {"openai_compatible/m": Price(0, 0)}
    assert read_price_file(path)["openai_compatible/m"].source == str(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prices: {m: {input: 1}}", "prices must give 'm' the prices input and output"),
        ("prices: {m: {input: -1, output: 1}}", "at least 0"),
        ("prices: {}\nversion: 2", "not version"),
        ("- 1", "mapping"),
        ("a: [", "not valid YAML"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=re.escape(str(path))) as told:
        read_price_file(path)
    assert words in str(told.value) and "model.price_file" in str(told.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        known_prices(settings(price_file=str(tmp_path / "none.yaml")))


def test_the_setting_is_read_like_every_other_and_changes_no_result() -> None:
    config = resolve({"model": {"price_file": "p.yaml"}, "env": {"name": "jsonl"}})
    assert config.model.price_file == "p.yaml"
    assert "model.price_file" not in config.fingerprint_parts()


def test_a_backend_that_sends_to_a_service_is_never_free() -> None:
    """Programs that call a service cost money too."""
    for row in PROVIDERS.values():
        if row.available and any(field.secret or field.name == "path" for field in row.fields):
            free = "remote" not in row.capabilities
            assert price_of(UsageKey("target", row.name, "some-model", "rollout", free), {}) is None, row.name
