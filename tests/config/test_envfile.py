from __future__ import annotations

from pathlib import Path

from skillopt.config.envfile import env_example, variables
from skillopt.config.provider_row import ROLES
from skillopt.config.provider_rows import ROWS
from skillopt_sleep.reference import env_section


def test_the_file_is_what_the_rows_say() -> None:
    assert Path(".env.example").read_text(encoding="utf-8") == env_example() + env_section()


def test_every_variable_is_listed_once_and_secrets_are_blank() -> None:
    lines = env_example().splitlines()
    for row in ROWS:
        for field in row.all_fields:
            names = {name for role in ROLES for name in field.env_for(role)}
            assert names == set(variables(field))
            for name in names:
                found = [line for line in lines if line.removeprefix("# ").startswith(f"{name}=")]
                assert len(found) == 1, name
                assert (found[0] == f"{name}=") == field.secret
    assert "OPENAI_COMPATIBLE_API_KEY=" in lines
