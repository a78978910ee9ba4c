"""What a coding agent is told: to read its task and its skill, what it may do, and to end with the answer alone."""

from __future__ import annotations

from skillopt.model.harness.workspace import ATTACHMENTS_FILE, SKILL_PATH, TASK_FILE, Workspace, link_name

EMPTY_NOTE = (
    "Previous execution returned an empty final response. Do the task from the beginning, and end with a message that "
    "holds the final answer."
)

_READ = (
    f"Read `{TASK_FILE}` and `{SKILL_PATH}` in this folder before anything else. The first says what to do; the second "
    "is guidance for tasks of this kind: follow it wherever it applies. Both are files to open; call no Skill tool for "
    "them."
)
_DO = f"Do the task in `{TASK_FILE}`."
_ATTACHED = f"If there is a file `{ATTACHMENTS_FILE}`, look at everything that it lists."
_NOBODY = "Nobody answers questions and nobody can grant a permission; work with what is here."
_LOOK_ONLY = "Do not modify files: neither change, create nor delete any."
_MAY_EDIT = "You may modify files in this folder, and in no other."
_ANSWER = (
    "When you are done, reply with the final answer and nothing else, in exactly the form that the task asks for; if "
    "it asks for tags such as <answer> and </answer>, keep them."
)


def build_prompt(workspace: Workspace, text: str, *, silent_before: int = 0) -> str:
    """The prompt of one attempt.

    `text` is what somebody wrote who prepared the folder; in a folder of ours it stands in task.md and not here.
    """
    return "\n\n".join([rules(workspace), *_paragraphs(workspace, text, silent_before)])


def rules(workspace: Workspace) -> str:
    """What an agent is told about its folder, whatever the task is."""
    parts = [_READ, _ATTACHED]
    if workspace.data_dirs and workspace.folder is None:
        names = ", ".join(f"`{link_name(number)}`" for number in range(1, len(workspace.data_dirs) + 1))
        parts.append(f"The data for the task lies in {names}, for reading only.")
    parts += [_MAY_EDIT if workspace.allow_file_edits else _LOOK_ONLY, _NOBODY, _ANSWER]
    return " ".join(parts)


def build_request(workspace: Workspace, text: str, *, silent_before: int = 0) -> str:
    """The prompt of one attempt of an agent that is told the rules apart, as its instructions."""
    paragraphs = _paragraphs(workspace, text, silent_before)
    return "\n\n".join(paragraphs if workspace.folder is not None and text.strip() else [_DO, *paragraphs])


def _paragraphs(workspace: Workspace, text: str, silent_before: int) -> list[str]:
    said = [text] if workspace.folder is not None and text.strip() else []
    return [*said, EMPTY_NOTE] if silent_before else said
