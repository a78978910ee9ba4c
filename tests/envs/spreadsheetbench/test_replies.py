"""The program inside a reply."""

from __future__ import annotations

import pytest

from skillopt.envs.spreadsheetbench.replies import extract_code


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("```python\nx = 1\n```", "x = 1"),
        ("First:\n```python\nx = 1\n```\nor\n```python\ny = 2\n```", "x = 1"),
        ("```\nx = 1\n```", "x = 1"),
        ("```bash\nls\n```", "ls"),
        ("x = 1", "x = 1"),
        ("```python\nx = 1\nif x:", "x = 1\nif x:"),
        ("```python\nx = '```'\ny = 2\n```", "x = '```'\ny = 2"),
        ("```python\nx = 1```", "x = 1"),
        ("```python\n\n    x = 1\n\n```", "    x = 1"),
        ("```python\r\nx = 1\r\n```\r\n", "x = 1"),
        ("```python\n```", ""),
        ("```python", ""),
        ("", ""),
    ],
)
def test_the_first_fenced_block_else_the_whole_reply(reply: str, code: str) -> None:
    assert extract_code(reply) == code
