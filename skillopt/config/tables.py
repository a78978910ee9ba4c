"""The keys of every section but `model` and `env`, and the keys that no longer do anything: pure data."""

from __future__ import annotations

from types import MappingProxyType

from skillopt.config.key import Key, Retired

TRAIN = (
    Key(
        "train",
        "num_epochs",
        "int",
        4,
        "Passes over the train split; 0 trains nothing.",
        minimum=0,
        affects_results=False,
    ),
    Key("train", "train_size", "int", 0, "Expected size of the train split; 0: whatever it is.", minimum=0),
    Key("train", "batch_size", "int", 40, "Items of one batch.", minimum=1),
    Key("train", "accumulation", "int", 1, "Batches of one step.", minimum=1),
    Key("train", "seed", "int", 42, "Seed of every random choice.", in_eval=True),
)

GRADIENT = (
    Key("gradient", "minibatch_size", "int", 8, "Trajectories that one analyst call reads.", minimum=1),
    Key("gradient", "merge_batch_size", "int", 8, "Patches that one merge call combines.", minimum=2),
    Key(
        "gradient",
        "analyst_workers",
        "int",
        16,
        "Analyst and merge calls at the same time.",
        minimum=1,
        affects_results=False,
    ),
    Key("gradient", "failure_only", "bool", False, "Learn from failures only."),
    Key(
        "gradient",
        "success_threshold",
        "float",
        1.0,
        "Hard score from which a rollout counts as a success; below it, it is analysed as a failure.",
        above=0,
        maximum=1,
    ),
)

OPTIMIZER = (
    Key(
        "optimizer",
        "learning_rate",
        "int",
        4,
        "Edits of one step at most: the schedule's maximum and each analyst's budget.",
        flat="edit_budget",
        minimum=0,
    ),
    Key("optimizer", "min_learning_rate", "int", 2, "The schedule's minimum.", flat="min_edit_budget", minimum=0),
    Key(
        "optimizer",
        "lr_scheduler",
        "str",
        "constant",
        "How the edit budget falls over the steps.",
        choices=("constant", "linear", "cosine", "autonomous"),
    ),
    Key(
        "optimizer",
        "lr_control_mode",
        "str",
        "fixed",
        "Who sets the edit budget: the schedule, the optimizer model, or nobody.",
        choices=("fixed", "autonomous", "none"),
        synonyms=MappingProxyType(
            {
                "manual": "fixed",
                "scheduler": "fixed",
                "scheduled": "fixed",
                "auto": "autonomous",
                "optimizer": "autonomous",
                "off": "none",
                "no_lr": "none",
            }
        ),
    ),
    Key(
        "optimizer",
        "skill_update_mode",
        "str",
        "patch",
        "How a skill is changed.",
        choices=("patch", "rewrite_from_suggestions", "full_rewrite_minibatch"),
        synonyms=MappingProxyType(
            {
                "edits": "patch",
                "rewrite": "rewrite_from_suggestions",
                "suggestions": "rewrite_from_suggestions",
                "rewrite_suggestions": "rewrite_from_suggestions",
                "full_rewrite": "full_rewrite_minibatch",
                "minibatch_full_rewrite": "full_rewrite_minibatch",
                "skill_rewrite_minibatch": "full_rewrite_minibatch",
            }
        ),
    ),
    Key("optimizer", "use_slow_update", "bool", False, "Compare epochs and write long-term guidance."),
    Key("optimizer", "slow_update_samples", "int", 20, "Items of the comparison between epochs.", minimum=1),
    Key("optimizer", "slow_update_gate_with_selection", "bool", False, "Gate the slow update on the validation split."),
    Key(
        "optimizer",
        "longitudinal_pair_policy",
        "str",
        "mixed",
        "Which pairs of an item's trajectories the comparison between epochs shows.",
        choices=("mixed", "changed", "unchanged"),
        synonyms=MappingProxyType(
            {
                "default": "mixed",
                "random": "mixed",
                "all": "mixed",
                "change": "changed",
                "delta": "changed",
                "10_01": "changed",
                "01_10": "changed",
                "stable": "unchanged",
                "same": "unchanged",
                "00_11": "unchanged",
            }
        ),
    ),
    Key("optimizer", "use_meta_skill", "bool", False, "Keep notes for the optimizer from epoch to epoch."),
    Key("optimizer", "use_skill_aware_reflection", "bool", False, "Tell skill faults from faults in following it."),
    Key(
        "optimizer",
        "skill_aware_appendix_source",
        "str",
        "both",
        "Which trajectories may add notes to the appendix.",
        choices=("both", "failure_only"),
    ),
    Key(
        "optimizer",
        "skill_aware_consolidate_threshold",
        "int",
        0,
        "Compact the appendix when it holds more notes; 0: never.",
        minimum=0,
    ),
    Key("optimizer", "screen_edits", "bool", False, "Try each edit alone on the training batch before the gate."),
    Key("optimizer", "leak_guard", "bool", True, "Refuse candidates that hold item ids, held-out answers or secrets."),
)

EVALUATION = (
    Key("evaluation", "use_gate", "bool", True, "Keep a candidate only when held-out scores rise."),
    Key(
        "evaluation",
        "gate_metric",
        "str",
        "hard",
        "Score that the gate compares; mixed is (1-w)*hard + w*soft.",
        choices=("hard", "soft", "mixed"),
    ),
    Key("evaluation", "gate_mixed_weight", "float", 0.5, "Weight of the soft score in mixed.", minimum=0, maximum=1),
    Key(
        "evaluation",
        "gate_policy",
        "str",
        "strict",
        "strict: a higher score is enough; paired: the gain must also be significant.",
        choices=("strict", "paired"),
    ),
    Key(
        "evaluation",
        "gate_alpha",
        "float",
        0.05,
        "Chance of a false accept in a whole run that the paired gate allows.",
        above=0,
        maximum=1,
    ),
    Key(
        "evaluation",
        "early_stop",
        "str",
        "exact",
        "exact: stop evaluating a candidate once it cannot win any more; off: always evaluate in full.",
        choices=("exact", "off"),
    ),
    Key("evaluation", "use_semantic_density", "bool", False, "Add a bonus for the share of leading words."),
    Key("evaluation", "semantic_density_weight", "float", 0.05, "Weight of that bonus.", minimum=0),
    Key("evaluation", "leading_words", "list", None, "Words that count for the density; unset: built in."),
    Key("evaluation", "sel_env_num", "int", 0, "Validation items used: the first n; 0: all.", minimum=0),
    Key("evaluation", "test_env_num", "int", 0, "Test items used: the first n; 0: all.", minimum=0, in_eval=True),
    Key("evaluation", "eval_test", "bool", True, "Score the test split at the end."),
)


def _budget(name: str, kind: str, doc: str) -> Key:
    return Key(
        "budget",
        name,
        "int" if kind == "int" else "float",
        None,
        doc + " null: unlimited.",
        flat=f"budget_{name}",
        above=0,
        nullable=True,
        affects_results=False,
        in_eval=True,
    )


BUDGET = (
    _budget("max_calls", "int", "Model calls of the whole run;"),
    _budget("max_tokens", "int", "Prompt and completion tokens of the whole run;"),
    _budget("max_cost_usd", "float", "Price of the whole run in USD, by model.prices;"),
    _budget("max_seconds", "float", "Wall-clock seconds of one command;"),
    Key(
        "budget",
        "ask_above_usd",
        "float",
        10.0,
        "skillopt-train asks before a run that may cost more USD than this. 0: never.",
        flat="budget_ask_above_usd",
        minimum=0,
        affects_results=False,
    ),
    Key(
        "budget",
        "ask_above_calls",
        "int",
        1000,
        "skillopt-train asks before a run that may make more calls than this; unless it is set, only where the price "
        "of a model is unknown. 0: never.",
        flat="budget_ask_above_calls",
        minimum=0,
        affects_results=False,
    ),
)

RETIRED = (
    Retired("gradient", "max_analyst_rounds", "max_analyst_rounds", "int", "analysts answer in one round"),
    Retired("optimizer", "meta_learning_rate", "meta_edit_budget", "int", "the meta skill has no edit budget"),
    Retired("train", "steps_per_epoch", "steps_per_epoch", "int", "it follows from the data and the batch size"),
    Retired("model", "codex_exec_full_auto", "codex_exec_full_auto", "bool", "use codex_exec_sandbox"),
)
