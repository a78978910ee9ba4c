"""What the optimizer model is told: one Markdown file a stage, and the lookup that lets an environment bring its own.

Beside the files: `fence` shows foreign text as data, `tokens` keeps a text within its size, `sections` builds messages
from such parts, `asking` puts a question and reads the JSON that comes back.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_ENVS = _HERE.parent / "envs"
_NAME = re.compile(r"[A-Za-z0-9_]+")

__all__ = ["clear_cache", "load_prompt"]


@lru_cache(maxsize=64)
def load_prompt(name: str, env: str | None = None) -> str:
    """The prompt `name`: `skillopt/envs/<env>/prompts/<name>.md` if it is there, else `skillopt/prompts/<name>.md`.

    Raises FileNotFoundError, naming the places that were looked at, when neither is there.
    """
    places = [_ENVS / env / "prompts"] if env and _NAME.fullmatch(env) else []
    places.append(_HERE)
    if _NAME.fullmatch(name):
        for folder in places:
            path = folder / f"{name}.md"
            if path.is_file():
                return path.read_text(encoding="utf-8")
    looked = ", ".join(str(folder) for folder in places)
    raise FileNotFoundError(f"no prompt file {name + '.md'!r} in {looked}; check the name or add the file")


def clear_cache() -> None:
    """Forget the files read so far; the next `load_prompt` reads them again."""
    load_prompt.cache_clear()
