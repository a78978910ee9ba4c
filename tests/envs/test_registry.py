from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from skillopt.envs.registry import accepted_keys, available, get_env_class, make_adapter
from skillopt.errors import ConfigError

ADAPTER = """
from skillopt.envs.base import EnvAdapter

class Plugin(EnvAdapter):
    def __init__(self, data_path, workers=3, flavour="plain"):
        self.given = (data_path, workers, flavour)
    def build_train_env(self, batch_size, seed, **kw): return []
    def build_eval_env(self, env_num, split, seed, **kw): return []
    def rollout(self, env_manager, skill_content, out_dir, **kw): return []
    def get_task_types(self): return []
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A package with entry points, as pip leaves it."""
    info = tmp_path / "shop_env-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shop-env\nVersion: 1.0\n", "utf-8")
    targets = ("shop = shop_env.adapter:Plugin", "broken = shop_env.broken:Plugin", "wrong = shop_env.adapter:sys")
    (info / "entry_points.txt").write_text("\n".join(["[skillopt.envs]", *targets, ""]), "utf-8")
    package = tmp_path / "shop_env"
    (package / "prompts").mkdir(parents=True)
    (package / "__init__.py").write_text("", "utf-8")
    (package / "adapter.py").write_text("import sys\n" + ADAPTER, "utf-8")
    (package / "broken.py").write_text("import no_such_package_here\n", "utf-8")
    (package / "prompts" / "analyst_error.md").write_text("Look closely.", "utf-8")
    (package / "prompts" / "analyst_error_rewrite.md").write_text("Rewrite closely.", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield package
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop_env"]:
        del sys.modules[name]
    importlib.invalidate_caches()


def test_entry_points_are_found_and_get_exactly_their_keys(plugin: Path) -> None:
    assert {"jsonl", "shop"} <= set(available())
    assert accepted_keys("shop") == {"data_path", "workers", "flavour"}
    cfg = {"env": "shop", "data_path": "d.csv", "workers": None, "flavour": "hot", "seed": 1, "model": "x"}
    adapter: Any = make_adapter(cfg)
    assert adapter.given == ("d.csv", 3, "hot")
    assert adapter.settings == {"data_path": "d.csv", "flavour": "hot"}


def test_module_and_class_can_be_named_directly(plugin: Path) -> None:
    assert get_env_class("shop_env.adapter:Plugin").__name__ == "Plugin"


def test_prompts_beside_an_environment_are_used_in_the_mode_of_the_run(plugin: Path) -> None:
    adapter = make_adapter({"env": "shop", "data_path": "d"})
    assert adapter.get_error_minibatch_prompt() == "Look closely."
    assert adapter.get_success_minibatch_prompt() is None
    adapter.setup({"skill_update_mode": "rewrite_from_suggestions"})
    assert adapter.get_error_minibatch_prompt() == "Rewrite closely."


def test_fingerprint_follows_source_and_settings_that_matter(plugin: Path) -> None:
    def fingerprint(**settings: Any) -> str:
        return make_adapter({"env": "shop", "data_path": "d", **settings}).fingerprint()

    before = fingerprint()
    assert fingerprint(workers=9, data_path="elsewhere") == before
    assert fingerprint(flavour="hot") != before
    (plugin / "scoring.py").write_text("RULE = 2\n", "utf-8")
    assert fingerprint() != before


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(ConfigError, match=r"unknown environment 'jsnl'; did you mean 'jsonl'\? Available: .*jsonl"):
        get_env_class("jsnl")
    with pytest.raises(ConfigError, match=r"env.name is missing. Available: .*jsonl"):
        make_adapter({})


def test_the_real_import_error_is_shown(plugin: Path) -> None:
    with pytest.raises(ConfigError, match=r"'broken' .*No module named 'no_such_package_here'"):
        get_env_class("broken")
    with pytest.raises(ConfigError, match=r"cannot be imported: .*Nothing"):
        get_env_class("shop_env.adapter:Nothing")
    with pytest.raises(ConfigError, match="not a subclass"):
        get_env_class("wrong")


@pytest.mark.parametrize(
    ("code", "said"), [("def (", "SyntaxError"), ("x = y", "NameError: name 'y'"), ("1 / 0", "Zero")]
)
def test_a_module_that_cannot_run_is_named_with_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, said: str
) -> None:
    (tmp_path / "lame_env.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match=f"lame_env.*cannot be imported: {said}"):
        get_env_class("lame_env:Env")


def test_a_required_key_without_value_is_named(plugin: Path) -> None:
    with pytest.raises(ConfigError, match=r"'shop' needs env.data_path"):
        make_adapter({"env": "shop"})
