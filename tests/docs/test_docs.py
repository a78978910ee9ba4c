"""Documents that cannot lie: generated pages are fresh, links lead somewhere, commands parse."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from skillopt.cli.arguments import build_parser
from skillopt.cli.main import build_parser as skillopt_parser
from skillopt.config.reference import configuration_page
from skillopt.model.backends_reference import backends_page
from skillopt_sleep import reference
from skillopt_sleep.backends.build import ROWS
from skillopt_sleep.cli_arguments import build_parser as sleep_parser
from skillopt_sleep.config import DEFAULTS, SleepConfig
from skillopt_sleep.experiments import report, run_experiment, run_gbrain, run_transfer, sweep
from skillopt_sleep.judges import KNOWN_OPS

ROOT = Path(__file__).parents[2]
PROGRAMS = ("skillopt", "skillopt-train", "skillopt-eval", "skillopt-sleep")
EXPERIMENTS = {module.__name__: module.parser for module in (report, run_experiment, run_gbrain, run_transfer, sweep)}
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def test_the_reference_of_settings_is_fresh() -> None:
    page = ROOT / "docs" / "reference" / "configuration.md"
    assert page.read_text(encoding="utf-8") == configuration_page(), "run `make docs`"


def test_the_reference_of_backends_is_fresh() -> None:
    page = ROOT / "docs" / "reference" / "backends.md"
    assert page.read_text(encoding="utf-8") == backends_page(), "run `make docs`"


def test_the_reference_of_sleep_is_fresh() -> None:
    page = ROOT / "docs" / "reference" / "sleep.md"
    assert page.read_text(encoding="utf-8") == reference.sleep_page(), "run `make docs`"


def test_the_reference_of_sleep_is_whole() -> None:
    assert {op for op, _, _ in reference.CHECKS} == KNOWN_OPS
    source = "".join(
        path.read_text("utf-8") for path in (ROOT / "skillopt_sleep").rglob("*.py") if path.name != "reference.py"
    )
    used = set(re.findall(r"SKILLOPT_SLEEP_[A-Z_]+\b(?<!_)", source))
    assert used <= {name for names, _ in reference.VARIABLES for name in names.split(", ")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not re.match(r"https?://", target):
            assert (page.parent / target).exists(), target


def commands() -> list[tuple[str, list[str]]]:
    found = []
    for page in PAGES:
        for block in re.findall(r"```(?:bash|sh)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words and words[0] in PROGRAMS:
                    found.append((words[0], words[1:]))
                elif words[:2] == ["python", "-m"] and words[2].startswith("skillopt_sleep."):
                    found.append((words[2], words[3:]))
    return found


@pytest.mark.parametrize(("program", "arguments"), commands())
def test_commands_in_the_documents_parse(program: str, arguments: list[str]) -> None:  # C125
    if program in EXPERIMENTS:
        EXPERIMENTS[program]().parse_args(arguments)
    elif program == "skillopt-sleep":
        sleep_parser().parse_args(arguments)
    elif program == "skillopt":
        skillopt_parser().parse_args(arguments)
    else:
        build_parser("train" if program == "skillopt-train" else "eval").parse_args(arguments)


def test_settings_in_the_guide_of_sleep_are_settings() -> None:
    text = (ROOT / "docs" / "guide" / "sleep.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    assert blocks
    for block in blocks:
        SleepConfig(json.loads(block))
    assert set(re.findall(r"`([a-z]+_[a-z_]+)(?:: \w+)?`", text)) <= {*DEFAULTS, *ROWS}


def test_there_are_commands_to_check() -> None:
    assert len(commands()) >= 3


def test_no_document_knows_this_machine() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert str(ROOT) not in text
        assert str(Path.home()) + "/" not in text or Path.home() == Path("/")
