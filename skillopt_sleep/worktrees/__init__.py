"""Fresh checkouts of a person's repository, in which an agent does a task and commands check what it did.

    with open_workshop(config) as shop, shop.workspace(task, memory).open() as desk:
        run(desk.penned([...]), cwd=desk.folder)
        work = desk.finish()

The repository itself is only read. A checkout holds a commit with some of its history, and nothing later. The agent is
shut in with bubblewrap; the commands run in a second checkout, in the sandbox, without a network. Submodules and files
kept by Git LFS are not fetched: their folders are empty, their files are pointers.
"""

from __future__ import annotations

from skillopt_sleep.worktrees.work import Outcome as Outcome
from skillopt_sleep.worktrees.work import Work as Work
from skillopt_sleep.worktrees.workshop import Desk as Desk
from skillopt_sleep.worktrees.workshop import Workshop as Workshop
from skillopt_sleep.worktrees.workshop import Workspace as Workspace
from skillopt_sleep.worktrees.workshop import open_workshop as open_workshop
