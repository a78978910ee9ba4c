"""Write the generated reference pages and build the site into `build/site`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SITE = """\
site_name: SkillOpt
docs_dir: {docs}
site_dir: {site}
theme:
  name: material
nav:
  - Start: index.md
  - Bring your own data: guide/bring-your-own-data.md
  - Data of the benchmarks: guide/benchmark-data.md
  - A benchmark of your own: guide/new-benchmark.md
  - A run on disk: guide/run-folder.md
  - From Python: guide/python-api.md
  - What providers do: guide/providers.md
  - Which preset: guide/presets.md
  - The gate and its evidence: guide/gate.md
  - Overnight, SkillOpt-Sleep: guide/sleep.md
  - Every setting: reference/configuration.md
  - Every backend: reference/backends.md
  - SkillOpt-Sleep, every flag and setting: reference/sleep.md
  - Leak guard: reference/leak-guard.md
  - Faults that must not come back: reference/faults.md
  - Faults of a night that must not come back: reference/sleep-faults.md
"""


def main() -> int:
    """Write pages, then build; the exit code of the build."""
    from skillopt.config.envfile import env_example
    from skillopt.config.reference import configuration_page
    from skillopt.model.backends_reference import backends_page
    from skillopt.utils.files import atomic_write_text
    from skillopt_sleep.reference import env_section, sleep_page

    atomic_write_text(ROOT / "docs" / "reference" / "configuration.md", configuration_page())
    atomic_write_text(ROOT / "docs" / "reference" / "backends.md", backends_page())
    atomic_write_text(ROOT / "docs" / "reference" / "sleep.md", sleep_page())
    atomic_write_text(ROOT / ".env.example", env_example() + env_section())
    build = ROOT / "build"
    config = build / "mkdocs.yml"
    atomic_write_text(config, SITE.format(docs=ROOT / "docs", site=build / "site"))
    return subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-f", str(config)]).returncode


if __name__ == "__main__":
    sys.exit(main())
