"""Where prices come from: the list that is shipped, the user's own file, the setting `model.prices`; the last wins."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillopt.config.casting import ValueProblem, check_value
from skillopt.config.key import Key
from skillopt.config.yaml_reader import read_yaml
from skillopt.errors import ConfigError
from skillopt.model.cost import Price, read_prices

SHIPPED = Path(__file__).with_name("prices.yaml")
_PRICES = Key("", "prices", "prices", None, "")


def known_prices(settings: Any) -> dict[str, Price]:
    """Every price that a run knows, by model or `backend/model`. `settings`: the section `model`.

    Raises ConfigError for a price file that cannot be used.
    """
    own = read_price_file(Path(settings.price_file).expanduser()) if settings.price_file else {}
    return {**read_price_file(SHIPPED, "built-in list prices"), **own, **read_prices(settings.prices)}


def read_price_file(path: Path, name: str = "") -> dict[str, Price]:
    """The prices in a YAML file: models to `{input, output, cached}`, at top level or under `prices` beside a `date`.

    `name`: what to call the file as a source. Raises ConfigError when it cannot be read or holds no prices.
    """
    try:
        data, _ = read_yaml(path)
    except ConfigError as error:
        raise ConfigError(f"model.price_file: {error}") from error
    rows, date = (data["prices"], data.get("date")) if "prices" in data else (data, None)
    if "prices" in data and set(data) - {"prices", "date"}:
        extra = ", ".join(sorted(set(data) - {"prices", "date"}))
        raise ConfigError(f"model.price_file: {path}: beside prices and date there must be nothing, not {extra}")
    try:
        checked = check_value(_PRICES, rows)
    except ValueProblem as error:
        raise ConfigError(f"model.price_file: {path}: prices {error}") from None
    source = f"{name or path}{f' of {date}' if date else ''}"
    found = checked if isinstance(checked, Mapping) else {}
    return {model: Price.from_dict(price, source) for model, price in found.items()}
