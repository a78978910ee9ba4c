"""The folder of an agent: what is put into it, what is refused, what is read back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skillopt.errors import DataError
from skillopt.model.attachments import Image
from skillopt.model.harness.workspace import (
    SKILL_PATH,
    DataPolicy,
    Workspace,
    lay_out,
    prepare_workspace,
    read_outputs,
    render_skill_md,
)

pytestmark = pytest.mark.skipif(os.name == "nt", reason="checked on POSIX")


def test_a_skill_file_has_quoted_front_matter_preamble_and_placeholder() -> None:
    text = render_skill_md("- Say Paris.\n", name='a"b', description="d: e", preamble=" About cities. ")
    assert text == (
        '---\nname: "a\\"b"\ndescription: "d: e"\n---\n\n# ReflACT Target Skill\n\nAbout cities.\n\n'
        "## Dynamic Guidance\n\n- Say Paris.\n"
    )
    blank = render_skill_md("  \n")
    assert 'name: "skillopt-target"' in blank and blank.endswith("## Dynamic Guidance\n\nThere is no guidance yet.\n")


def test_a_workspace_is_made_anew_with_everything(tmp_path: Path) -> None:
    source, corpus = tmp_path / "in.txt", tmp_path / "corpus"
    source.write_text("in", "utf-8")
    corpus.mkdir()
    (corpus / "a.txt").write_text("a", "utf-8")
    work = tmp_path / "item" / "work"
    given = {"work_dir": work, "skill_md": "S", "task_text": "T"}
    prepare_workspace(**given, extra_files={"stale.txt": "old"})
    skill, task = prepare_workspace(
        **given,
        task_filename="todo.md",
        images=[source],
        extra_files={"sub/x.py": "x"},
        copy_files=[(source, "in/copy.txt")],
        link_dirs=[(corpus, "docs/root_1")],
    )
    assert Path(skill) == work / SKILL_PATH and Path(task) == work / "todo.md"
    made = {path.relative_to(work).as_posix() for path in work.rglob("*") if path.is_file()}
    assert made >= {SKILL_PATH, "todo.md", "sub/x.py", "in/copy.txt", "attachments/01_in.txt", "ATTACHMENTS.md"}
    assert "stale.txt" not in made
    assert (work / "docs/root_1/a.txt").read_text("utf-8") == "a"
    assert str(tmp_path) not in (work / "ATTACHMENTS.md").read_text("utf-8")


def test_a_missing_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nothing\.png"):
        prepare_workspace(work_dir=tmp_path / "w", skill_md="S", images=[tmp_path / "nothing.png"])
    with pytest.raises(FileNotFoundError, match=r"nothing\.csv"):
        lay_out(Workspace(files={"a.csv": tmp_path / "nothing.csv"}), "T", _new(tmp_path / "v"))


def test_only_a_workspace_is_deleted(tmp_path: Path) -> None:
    precious = _new(tmp_path / "precious")
    (precious / "thesis.txt").write_text("years of work", "utf-8")
    with pytest.raises(DataError, match="no workspace"):
        prepare_workspace(work_dir=precious, skill_md="S")
    link = tmp_path / "link"
    link.symlink_to(precious)
    with pytest.raises(DataError, match="not a folder"):
        prepare_workspace(work_dir=link, skill_md="S")
    assert (precious / "thesis.txt").exists()


@pytest.mark.parametrize("name", ["../out.txt", "/etc/out", "a/../../out", "", ".", "C:\\out", "..\\out", "a\0b"])
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="no relative path"):
        lay_out(Workspace(files={name: "x"}), "T", _new(tmp_path / "w"))
    with pytest.raises(DataError, match="no relative path"):
        read_outputs(tmp_path / "w", [name])


@pytest.mark.parametrize("name", [SKILL_PATH, "task.md", "ATTACHMENTS.md"])
def test_a_file_of_the_task_cannot_replace_the_skill_or_the_task(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="choose another name"):
        lay_out(Workspace(files={name: "x"}), "T", _new(tmp_path / "w"))


def test_a_link_cannot_be_a_way_for_later_files(tmp_path: Path) -> None:
    corpus, image = _new(tmp_path / "corpus"), _file(tmp_path / "x.png")
    with pytest.raises(DataError, match="behind a link"):
        prepare_workspace(work_dir=tmp_path / "w", skill_md="S", link_dirs=[(corpus, "attachments")], images=[image])
    assert list(corpus.iterdir()) == []


# --- policy ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["officeqa_split", "sealqa_split"])
def test_folders_of_answers_are_refused_by_name(tmp_path: Path, name: str) -> None:
    folder = _new(tmp_path / name / "docs")
    with pytest.raises(ValueError, match=name):
        DataPolicy().check_folder(folder)
    link = tmp_path / "innocent"
    link.symlink_to(folder)
    with pytest.raises(ValueError, match=name):
        DataPolicy().check_folder(link)


def test_denied_folders_their_parents_and_their_children_are_refused(tmp_path: Path) -> None:
    gold, other = _new(tmp_path / "data" / "gold"), _new(tmp_path / "data" / "docs")
    inner = _new(gold / "inner")
    policy = DataPolicy((gold,))
    for path in (gold, inner, tmp_path / "data", gold / "answers.json"):
        with pytest.raises(DataError, match="may not be given this"):
            policy.check(path)
    assert policy.check_folder(other) == other.resolve()
    with pytest.raises(DataError, match="is not a folder"):
        policy.check_folder(tmp_path / "nowhere")


def test_a_link_that_leads_out_of_a_data_folder_is_refused(tmp_path: Path) -> None:  # W8
    secret, corpus = _new(tmp_path / "secret"), _new(tmp_path / "corpus" / "deep").parent
    (corpus / "deep" / "inside").symlink_to(corpus / "deep")
    assert DataPolicy().check_folder(corpus) == corpus.resolve()
    for name, target in (("deep/out", secret), ("file", _file(tmp_path / "gold.json"))):
        link = corpus / name
        link.symlink_to(target)
        with pytest.raises(DataError, match="leads out of"):
            lay_out(Workspace(data_dirs=(corpus,)), "T", _new(tmp_path / f"w_{link.name}"))
        link.unlink()


# --- what comes back -------------------------------------------------------------------------------------------------


def test_outputs_are_never_read_through_links(tmp_path: Path) -> None:
    work, gold = _new(tmp_path / "w"), _file(tmp_path / "gold.json", "gold")
    (work / "plain.py").write_bytes("gr\xfc\xdfe".encode("latin-1"))
    (work / "link.py").symlink_to(gold)
    (work / "dir").symlink_to(tmp_path)
    _new(work / "folder.py")
    names = ["plain.py", "link.py", "dir/gold.json", "folder.py", "missing.py"]
    assert read_outputs(work, names) == {"plain.py": "gr��e"}


def test_images_can_be_bytes_and_the_fingerprint_sees_everything(tmp_path: Path) -> None:
    image, work = Image(b"\x89PNG\r\n\x1a\n", ".png"), _new(tmp_path / "w")
    assert lay_out(Workspace(images=(image, image)), "T", work) == (
        work / "attachments/01_image.png",
        work / "attachments/02_image.png",
    )
    file = _file(tmp_path / "a.csv", "1")
    same = [Workspace(files={"a.csv": file}).fingerprint for _ in range(2)]
    file.write_text("2", "utf-8")
    others = [
        *(Workspace(files={"a.csv": file}), Workspace(files={"b.csv": file}), Workspace(skill="s")),
        *(Workspace(images=(image,)), Workspace(data_dirs=(tmp_path,)), Workspace(allow_file_edits=True), Workspace()),
        *(Workspace(outputs=("a",)), Workspace(preamble="s"), Workspace(folder=tmp_path), Workspace(sandbox="x")),
    ]
    assert same[0] == same[1]
    assert len({*same, *(workspace.fingerprint for workspace in others)}) == 1 + len(others)


def _new(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def _file(path: Path, text: str = "x") -> Path:
    path.write_text(text, "utf-8")
    return path
