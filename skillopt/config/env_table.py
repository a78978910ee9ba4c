"""The keys of the section `env`: those of every environment, of `jsonl`, and of the built-in benchmarks."""

from __future__ import annotations

from skillopt.config.key import Key, KeyType


def _common(name: str, kind: KeyType, default: object, doc: str, **more: object) -> Key:
    options: dict[str, object] = {"common": True, "in_eval": True, "group": "env", **more}
    return Key("env", name, kind, default, doc, **options)  # type: ignore[arg-type]


def _own(name: str, kind: KeyType, doc: str, **more: object) -> Key:
    """A key that only some environments know; unset means the environment's own default."""
    options: dict[str, object] = {"in_eval": True, "nullable": True, "group": "env", **more}
    return Key("env", name, kind, None, doc, **options)  # type: ignore[arg-type]


COMMON = (
    _common("name", "str", "", "Environment to train in.", flat="env"),
    # Paths do not count among what changes results: what the files hold does, and that is compared by content.
    _common(
        "skill_init",
        "str",
        "",
        "Skill file to start from; blank: start with an empty skill.",
        in_eval=False,
        affects_results=False,
    ),
    _common("out_root", "str", "", "Run folder; blank: a new one under outputs/.", affects_results=False),
    _common(
        "split_mode",
        "str",
        "ratio",
        "ratio: cut data_path in a shuffled order; hash: cut it by the ids, so that items added later move no others; "
        "split_dir: read ready splits.",
        choices=("ratio", "hash", "split_dir"),
    ),
    _common("split_ratio", "str", "2:1:7", "Shares of train, val and test in the modes ratio and hash."),
    _common("split_seed", "int", 42, "Seed of the cut; 0: as train.seed."),
    _common("split_dir", "str", "", "Folder with train, val and test.", affects_results=False),
    _common("data_path", "str", "", "Data file to cut in the modes ratio and hash.", affects_results=False),
    _common(
        "split_output_dir",
        "str",
        "",
        "Where splits that were cut are written; blank: in the run folder.",
        affects_results=False,
    ),
    _common(
        "split_reset",
        "bool",
        False,
        "Cut again although the data or the way of cutting changed since the splits were written.",
    ),
    _common("strict_splits", "bool", False, "Refuse items with the same content in two splits."),
    _common("samples_per_item", "int", 1, "Rollouts of each item, whose scores are averaged.", minimum=1),
    _common("limit", "int", 0, "Cut every split to its first n items; 0: no cut.", minimum=0),
    _common("exec_timeout", "float", 120.0, "Seconds for one item; 0: no limit.", minimum=0, affects_results=False),
    _common(
        "max_error_rate",
        "float",
        0.05,
        "Share of items that may fail for good before the run stops.",
        minimum=0,
        maximum=1,
        affects_results=False,
    ),
    _common(
        "item_retries",
        "int",
        2,
        "Further attempts for an item that ended in an error.",
        minimum=0,
        affects_results=False,
    ),
    _common(
        "workers",
        "int",
        None,
        "Items under way at the same time; unset: the environment's own number.",
        minimum=1,
        nullable=True,
        affects_results=False,
    ),
    _common("max_completion_tokens", "int", None, "Output tokens of one call of the target.", minimum=1, nullable=True),
)

JSONL = (
    _own("prompt", "str", "Prompt template, or the file that holds it; {field} stands for an item's field."),
    _own("system_prompt", "str", "System text before the skill, or the file that holds it."),
    _own("question_field", "str", "Field with the question."),
    _own("answer_field", "str", "Field with the reference answer or answers."),
    _own("id_field", "str", "Field with the item's id."),
    _own("task_type_field", "str", "Field that groups items in reports."),
    _own(
        "extract",
        "str",
        "How the answer is taken from the reply.",
        choices=("last_line", "all", "tag", "regex", "json_field"),
    ),
    _own("extract_arg", "str", "Tag name, pattern or field for `extract`."),
    _own("scorer", "str", "Scorer: exact, f1, contains, regex, numeric, choice, json_field, squad, anls, amount."),
    _own("scorer_options", "map", "Options of the scorer."),
    _own("references_separator", "str", "Text between several reference answers in one field."),
)

BENCHMARKS = (
    _own(
        "scoring",
        "str",
        "strict: compare as a careful reader would; paper: the formula of the published results.",
        choices=("strict", "paper"),
    ),
    _own(
        "code_sandbox",
        "str",
        "Room for code that a model wrote; auto: the strongest that this machine has; require: refuse to run without "
        "one that shuts out files and network.",
        choices=("auto", "require"),
    ),
    _own(
        "use_eval_feedback",
        "bool",
        "In training rollouts of several turns, tell the target which cells are wrong (never what is right).",
    ),
    _own(
        "retrieval",
        "str",
        "Documents shown to the target: oracle (the right pages), restricted (the right files, to be searched), open "
        "(all files).",
        choices=("oracle", "restricted", "open"),
    ),
    _own("max_turns", "int", "Turns of one item.", minimum=1),
    _own("max_steps", "int", "Actions of one episode.", minimum=1),
    _own(
        "max_api_workers",
        "int",
        "Model calls at the same time inside the environment.",
        minimum=1,
        affects_results=False,
    ),
    _own("mode", "str", "Way of working of the environment."),
    _own("data_root", "str", "Folder with the items' files."),
    _own("image_detail", "str", "Detail level of images: auto, low or high."),
    _own("shuffle_choices", "bool", "Shuffle the choices of each question."),
    _own("use_theorem", "bool", "Show the theorem behind a question."),
    _own("use_sketch", "bool", "Show the proof sketch behind a question."),
    _own("judge_model", "str", "Model that grades answers."),
    _own("judge_max_completion_tokens", "int", "Output tokens of the grading call.", minimum=1),
    _own("judge_retries", "int", "Further attempts of the grading call.", minimum=0, affects_results=False),
    _own("data_dirs", "list", "Folders with documents.", aliases=("docs_dirs",)),
    _own("max_tool_turns", "int", "Rounds with tools of one item.", minimum=1),
    _own(
        "search_mode",
        "str",
        "Where documents are searched.",
        choices=("offline", "custom", "azure"),
        synonyms={"custom_search": "custom", "azure_search": "azure"},
    ),
    _own("use_local_tools", "bool", "Give the target tools over the local documents."),
    _own("max_queries_per_turn", "int", "Search queries of one turn.", minimum=1),
    _own("search_api_url", "str", "Address of the search service."),
    _own("search_auth_env", "str", "Name of the environment variable with the search service's credentials."),
    _own("search_provider", "str", "Search provider."),
    _own("search_max_num_results", "int", "Results of one search.", minimum=1),
    _own("search_timeout_seconds", "float", "Seconds for one search.", above=0, affects_results=False),
)

ENV = COMMON + JSONL + BENCHMARKS
