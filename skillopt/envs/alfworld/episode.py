"""One episode: the target is shown the state and asked for an action, until the task is done or the steps are used up.

What the model does is its behaviour: an action that the game refuses costs a step, and so does a second reply in a row
without any action (the agent then looks around). What fails around it, the endpoint or the simulator, is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skillopt.envs.alfworld.replies import Move, offered, read_move, read_thoughts
from skillopt.envs.alfworld.simulator import Simulator, State
from skillopt.types import JsonObject

if TYPE_CHECKING:
    from skillopt.model.values import ModelReply
    from skillopt.utils.cancel import CancelToken

GOAL_MARK = "Your task is to: "
NO_ACTION = "look"
"""What is done in place of an action that was never named; it changes nothing."""

REMEMBERED = 2
WON_REWARD = 10.0
_THOUGHTS = 600

Ask = Callable[[list[Mapping[str, Any]]], "ModelReply"]
Render = Callable[..., str]


@dataclass
class Episode:
    """A game under way. `render(name, **values)` gives the text of a prompt file; `ask` is one call of the target."""

    simulator: Simulator
    state: State
    system: str
    render: Render
    ask: Ask
    cancel: CancelToken
    max_steps: int
    goal: str = ""
    first_prompt: str = ""
    steps: list[JsonObject] = field(default_factory=list)
    seen: list[tuple[str, str]] = field(default_factory=list)
    malformed: int = 0
    inadmissible: int = 0

    def play(self) -> None:
        """Go on to the end. Raises what the model path or the simulator raises."""
        self.goal = goal_of(self.state.observation)
        while not self.over and len(self.steps) < self.max_steps:
            self._step()

    @property
    def over(self) -> bool:
        """Whether the game has ended."""
        return self.state.done or self.state.won

    @property
    def fail_reason(self) -> str:
        """Why the task is not done, as `group: words`; empty when it is."""
        if self.state.won:
            return ""
        if self.over:
            return "not_completed: the episode ended without the task being done"
        return f"timeout: not done within {self.max_steps} steps"

    def _step(self) -> None:
        prompt = self.prompt()
        self.first_prompt = self.first_prompt or prompt
        reply, move = self._choose(prompt)
        self.inadmissible += not move.admissible
        self.seen.append((self.state.observation, move.action))
        self.state = self.simulator.step(move.action, self.cancel)
        self.steps.append(
            {
                "step": len(self.steps) + 1,
                "action": move.action,
                "reasoning": _shortened(read_thoughts(reply)),
                "env_feedback": self.state.observation,
                "model_response": reply,
                "reward": WON_REWARD * self.state.won,
                "done": self.over,
            }
        )

    def prompt(self) -> str:
        """The state as the target sees it: task, latest steps, what it sees now, what it can do."""
        taken = len(self.steps)
        past = list(enumerate(self.seen, 1))[-REMEMBERED:]
        lines = [f"- Step {number}: saw {saw!r}, did {did!r}" for number, (saw, did) in past]
        return self.render(
            "state" if past else "start",
            task=self.goal,
            step=str(taken + 1),
            max_steps=str(self.max_steps),
            taken=str(taken),
            history="\n".join(lines),
            observation=self.state.observation,
            actions=_listed(self.state),
        )

    def _choose(self, prompt: str) -> tuple[str, Move]:
        talk: list[Mapping[str, Any]] = [
            {"role": "system", "content": self.system},
            {"role": "user", "content": prompt},
        ]
        reply = self.ask(talk)
        move = read_move(reply.text, self.state.actions)
        if move is None:
            self.malformed += 1
            again = {"role": "user", "content": self.render("again", actions=_listed(self.state))}
            reply = self.ask([*talk, reply.message().model_dump(), again])
            move = read_move(reply.text, self.state.actions)
        if move is None:
            self.malformed += 1
            move = Move(NO_ACTION, admissible=True)
        return reply.text, move


def goal_of(observation: str) -> str:
    """The task in the words of the game's first text; the whole text when it does not name one."""
    return observation.rpartition(GOAL_MARK)[2].strip()


def _listed(state: State) -> str:
    return "\n".join(f"'{action}'" for action in offered(state.actions))


def _shortened(text: str) -> str:
    return text if len(text) <= _THOUGHTS else f"{text[: _THOUGHTS // 2]} […] {text[-_THOUGHTS // 2 :]}"
