"""Files, bases, forms, overrides (rows 19 and 22, C112, C116, C118, C122)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.config.casting import cast_text
from skillopt.config.keys import KEYS, SECTIONS, find_key
from skillopt.config.load import (
    apply_overrides,
    flatten_config,
    is_structured,
    load_config,
    read_config,
    read_mapping,
)
from skillopt.errors import ConfigError

SHIPPED = sorted(Path("configs").rglob("*.yaml"))


def test_empty_file_gives_nothing(write: Any) -> None:
    assert load_config(write("")) == {}
    assert load_config(write("# only a comment\n")) == {}


@pytest.mark.parametrize("path", SHIPPED, ids=str)
def test_each_section_of_a_shipped_config_survives(path: Path) -> None:
    import yaml

    own = yaml.safe_load(path.read_text(encoding="utf-8"))
    loaded = load_config(path)
    for section in SECTIONS:
        for name, value in (own.get(section) or {}).items():
            assert loaded[section][name] == value, f"{section}.{name}"
    assert set(load_config("configs/_base_/default.yaml")) <= set(loaded)
    assert loaded["env"]["exec_timeout"]


def test_env_sections_merge_key_by_key(write: Any) -> None:
    write("env: {name: searchqa, split_dir: a, workers: 3}\n", "base.yaml")
    loaded = load_config(write("_base_: base.yaml\nenv: {name: jsonl, limit: 2}\n"))
    assert loaded == {"env": {"name": "jsonl", "split_dir": "a", "workers": 3, "limit": 2}}


@pytest.mark.parametrize(
    ("base", "child", "expected"),
    [
        ("train: {batch_size: 40, seed: 1}", "batch_size: 8", {"train": {"seed": 1}, "batch_size": 8}),
        ("batch_size: 40\nseed: 1", "train: {batch_size: 8}", {"train": {"batch_size": 8}, "seed": 1}),
        ("env: searchqa\nseed: 1", "env: {limit: 2}", {"env": {"name": "searchqa", "limit": 2}, "seed": 1}),
        ("env: {name: searchqa, limit: 2}", "env: jsonl", {"env": {"name": "jsonl", "limit": 2}}),
        ("train: {seed: 1}", "train:", {"train": {"seed": 1}}),
        (
            "model: {prices: {a: {input: 1}}}",
            "model: {prices: {b: 2}}",
            {"model": {"prices": {"a": {"input": 1}, "b": 2}}},
        ),
        ("other: 1\ntrain: {seed: 1}", "more: 2", {"other": 1, "more": 2, "train": {"seed": 1}}),
        ("model: {codex_exec_path: base}", "model: {codex_path: child}", {"model": {"codex_exec_path": "child"}}),
        ("model: {codex_exec_path: base}", "codex_bin: child", {"model": {}, "codex_exec_path": "child"}),
    ],
)
def test_child_wins_whatever_the_spelling(write: Any, base: str, child: str, expected: dict[str, Any]) -> None:
    write(base + "\n", "base.yaml")
    assert load_config(write(f"_base_: base.yaml\n{child}\n")) == expected


def test_aliases_of_one_layer(write: Any) -> None:
    flat = load_config(write("codex_bin: c\ncodex_path: a\ncodex_cli_bin: b\nsandbox: read-only\n"))
    assert flat == {"codex_exec_path": "a", "codex_exec_sandbox": "read-only"}
    canonical = load_config(write("model: {codex_path: a, codex_exec_path: b, codex_sandbox: read-only}\n"))
    assert canonical == {"model": {"codex_exec_path": "b", "codex_exec_sandbox": "read-only"}}


def test_flat_twin_in_the_same_layer_is_dropped(write: Any) -> None:
    assert load_config(write("batch_size: 1\ntrain: {batch_size: 2}\n")) == {"train": {"batch_size": 2}}


def test_base_is_relative_to_its_file(write: Any, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    write("train: {seed: 5}\n", "root.yaml")
    write("_base_: ../root.yaml\n", "deep/middle.yaml")
    assert load_config(write("_base_: deep/middle.yaml\n")) == {"train": {"seed": 5}}
    assert load_config(write(f"_base_: {tmp_path / 'root.yaml'}\n")) == {"train": {"seed": 5}}


def test_cycle_shows_the_chain(write: Any) -> None:
    write("_base_: a.yaml\n", "b.yaml")
    with pytest.raises(ValueError, match=r"circle: .*a\.yaml -> .*b\.yaml -> .*a\.yaml") as caught:
        load_config(write("_base_: b.yaml\n", "a.yaml"))
    assert isinstance(caught.value, ConfigError)


def test_missing_base_shows_the_chain(write: Any) -> None:
    with pytest.raises(FileNotFoundError, match=r"a\.yaml: its _base_ does not exist: .*nope\.yaml") as caught:
        load_config(write("_base_: nope.yaml\n", "a.yaml"))
    assert isinstance(caught.value, ConfigError)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load_config(tmp_path / "no.yaml")
    with pytest.raises(ConfigError, match="folder"):
        load_config(tmp_path)


@pytest.mark.parametrize("text", ["_base_: [a.yaml]\n", "- a\n- b\n", "just text\n", "3: x\n"])
def test_wrong_kinds_are_type_errors(write: Any, text: str) -> None:
    with pytest.raises(TypeError) as caught:
        load_config(write(text))
    assert isinstance(caught.value, ConfigError)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("text", ["train:\n\tnum_epochs: 2\n", "train:\n  seed: 1\n\tnum_epochs: 2\n"])
def test_tab_names_line_and_cure(write: Any, text: str) -> None:
    line = text.split("\t")[0].count("\n") + 1
    with pytest.raises(ConfigError, match=rf"config\.yaml:{line}: .*use spaces"):
        load_config(write(text))


def test_other_yaml_faults_name_the_line(write: Any) -> None:
    with pytest.raises(ConfigError, match=r"config\.yaml:\d+: not valid YAML"):
        load_config(write("train: {seed: 1\nmodel: [\n"))


@pytest.mark.parametrize("text", ["train:\n  num_epochs: 2\n  num_epochs: 9\n", "seed: 1\na: 2\nseed: 3\n"])
def test_duplicate_key_is_an_error(write: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=r"config\.yaml:3: \w+ is given twice \(first in line \d\)"):
        load_config(write(text))


def test_core_schema_scalars(write: Any) -> None:
    loaded = load_config(
        write(
            "a: 012\nb: no\nc: 1e3\nd: on\ne: 0o14\nf: ~\ng: 2026-01-02\nh: 1_000\ni: True\nj: -.5\nk: 0x1F\nl: '7'\n"
        )
    )
    assert loaded == {
        "a": 12, "b": "no", "c": 1000.0, "d": "on", "e": 12, "f": None, "g": "2026-01-02", "h": "1_000", "i": True,
        "j": -0.5, "k": 31, "l": "7",
    }  # fmt: skip


def test_anchors_and_merge_keys(write: Any) -> None:
    loaded = load_config(write("x: &x {seed: 1, batch_size: 2}\ntrain:\n  <<: *x\n  seed: 3\n"))
    assert loaded["train"] == {"seed": 3, "batch_size": 2}


def test_bom_and_non_utf8(write: Any, tmp_path: Path) -> None:
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbfseed: 1\n")
    assert load_config(path) == {"seed": 1}
    path.write_bytes("env: {name: jsönl}\n".encode("latin-1"))
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_config(path)


def test_non_ascii_path_and_text_on_another_locale(tmp_path: Path) -> None:
    folder = tmp_path / "Bücher → данные"
    folder.mkdir()
    (folder / "c.yaml").write_text("env: {name: jsonl, prompt: 'a — b →'}\n", encoding="utf-8")
    code = (
        "import sys\nfrom pathlib import Path\nfrom skillopt.config.load import load_config\n"
        "path = next(Path(sys.argv[1]).rglob('c.yaml'))\n"
        "print(ascii(load_config(path)['env']['prompt']))"
    )
    environ = {"PYTHONPATH": ".", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PATH": ""}
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, env=environ)
    assert done.stdout.strip() == ascii("a — b →"), done.stderr


def test_lines_are_remembered(write: Any) -> None:
    write("train:\n  seed: 1\n  batch_size: 3\n", "base.yaml")
    loaded = read_config(write("_base_: base.yaml\ntrain:\n  seed: 2\nnum_epochs: 1\n"))
    where = {name: Path(place).name for name, place in loaded.where.items()}
    assert where["train.seed"] == "config.yaml:3"
    assert where["train.batch_size"] == "base.yaml:3"
    assert where["num_epochs"] == "config.yaml:4"


def test_structured_or_flat() -> None:
    assert is_structured({"train": {}})
    assert is_structured({"budget": {"max_calls": 1}, "seed": 1})
    assert not is_structured({"env": "jsonl", "seed": 1})
    assert not is_structured({})


def test_flatten() -> None:
    cfg = {
        "custom": 1,
        "model": {"optimizer": "a", "backend": "azure"},
        "optimizer": {"learning_rate": 3},
        "env": {"name": "jsonl", "seed": 99, "my_key": 4},
        "train": {"seed": 7, "typo": 1},
    }
    assert flatten_config(cfg) == {
        "custom": 1,
        "optimizer_model": "a",
        "model_backend": "azure",
        "edit_budget": 3,
        "env": "jsonl",
        "my_key": 4,
        "seed": 7,
        "train.typo": 1,
    }
    assert flatten_config({"codex_path": "x", "seed": 1}) == {"codex_exec_path": "x", "seed": 1}


def test_flat_names_are_unique_and_found() -> None:
    assert len({key.flat_name for key in KEYS}) == len(KEYS)
    for key in KEYS:
        assert find_key(key.dotted) is key
        assert find_key(key.flat_name) is key
        assert key.doc.strip().endswith(".") or key.doc.strip().endswith(")")


def test_overrides_on_a_structured_file(write: Any) -> None:
    path = write("train: {seed: 1}\n")
    words = ["train.seed=012", "batch_size=3", "model.target=4.1", "mine=yes", "env.my_key=1e3", "gate_metric=soft"]
    assert load_config(path, words) == {
        "train": {"seed": 12, "batch_size": 3},
        "model": {"target": "4.1"},
        "mine": True,
        "env": {"my_key": 1000.0},
        "evaluation": {"gate_metric": "soft"},
    }


def test_overrides_keep_a_flat_file_flat() -> None:
    cfg = {"seed": 1, "env": "jsonl"}
    words = ["train.seed=2", "env.my_key=a.b=c", "model.codex_path=x", "env.limit=3", "a.b.c=1"]
    assert apply_overrides(cfg, words) == {
        "seed": 2, "env": "jsonl", "my_key": "a.b=c", "codex_exec_path": "x", "limit": 3, "a.b.c": 1,
    }  # fmt: skip


def test_structured_override_replaces_a_flat_spelling() -> None:
    assert apply_overrides({"train": {}, "seed": 1}, ["seed=5"]) == {"train": {"seed": 5}}


@pytest.mark.parametrize("word", ["train.seed", "", "=3"])
def test_override_without_a_key_or_value(word: str) -> None:
    with pytest.raises(ValueError, match="key=value"):
        apply_overrides({}, [word])


@pytest.mark.parametrize(
    ("text", "value"),
    [("YES", True), ("true", True), ("No", False), ("007", 7), ("1_000", 1000), ("1e3", 1000.0), ("", ""),
     ("null", "null"), ("none", "none"), ("a,b", "a,b"), ("-2", -2), ("on", "on")],
)  # fmt: skip
def test_casting(text: str, value: object) -> None:
    assert cast_text(text) == value
    assert type(cast_text(text)) is type(value)


@given(st.text())
def test_casting_never_fails(text: str) -> None:
    assert isinstance(cast_text(text), bool | int | float | str)


def test_a_mapping_is_read_as_a_file_is(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("train: {seed: 3, batch_size: 4}\nenv: jsonl\n", "utf-8")
    given = {"_base_": tmp_path / "base.yaml", "train": {"seed": 5}, "env": {"split_dir": tmp_path}}
    read = read_mapping(given).data
    assert read == {
        "train": {"seed": 5, "batch_size": 4},
        "env": {"name": "jsonl", "split_dir": str(tmp_path)},
    }
    assert given["train"] == {"seed": 5}
    assert read_mapping({"seed": 5, "edit_budget": 2}).data == {"seed": 5, "edit_budget": 2}
    with pytest.raises(TypeError, match="_base_ must be one file name, not a list"):
        read_mapping({"_base_": ["a.yaml"]})


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 5000 + "]" * 5000])
def test_values_that_no_reader_can_hold_are_one_sentence(write: Any, value: str) -> None:
    with pytest.raises(ConfigError, match=r"config\.yaml: not valid YAML"):
        load_config(write(f"train: {{seed: {value}}}\n"))
