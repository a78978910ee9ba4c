"""The page about the backends."""

from __future__ import annotations

from skillopt.config.providers import PROVIDERS
from skillopt.model.backends_reference import backends_page


def test_flags_stand_as_they_are_typed() -> None:
    flags = [line for line in backends_page().splitlines() if line.startswith("- Flags")]
    assert any("`-p --output-format json`" in line for line in flags)
    assert not any("(" in line for line in flags)


def test_every_backend_and_every_variable_is_there() -> None:
    page = backends_page()
    for row in PROVIDERS.values():
        assert f"\n## {row.name}\n" in page
        assert all(f"`{field.name}`" in page for field in row.all_fields)
