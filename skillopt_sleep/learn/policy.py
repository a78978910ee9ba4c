"""What a proposed rule must not hold without a person having seen it.

Rules come from a model that read transcripts, and transcripts hold whatever somebody pasted. A rule with a link, a
command, a secret, words that lift limits, or control marks is held: it stays in the report and out of every document.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skillopt_sleep.learn.edits import norm, unsafe_content
from skillopt_sleep.learn.rules import clean_rule
from skillopt_sleep.redact import redact_secrets
from skillopt_sleep.types import EditRecord, TaskRecord
from skillopt_sleep.vendored.utils.invisible import flag_invisible, strip_invisible

_BARE = "com|org|xyz|ru|cn|info|biz|site|online|top|page|link|click|example"  # needs no path to be an address
_URL = re.compile(
    r"\b[a-z][a-z0-9+.-]{1,20}://\S|\b(?:file|ftp):/|\bhttps?[ \t]*(?::|%3a|&#)|\bwww\.[\w-]+\.|\]\([^)\s]+\)"
    r"|\b(?:mailto|data|javascript):\S|\w(?:\[\.\]|\(\.\))\w|\w[ \t]?[\[(]?\bdot\b[\])]?[ \t]?(?:com|net|org|io|ru)\b"
    rf"|(?:(?<![\w/.-])|(?<=//))(?:[\w-]+\.)+(?:(?:{_BARE}|net|io|dev|app|co|me|ai|cloud|sh|ly|gg|tk|jp|de|uk|eu)[/?]\S"
    rf"|(?:{_BARE})(?![\w-]))|\[(?:[0-9a-f]{{0,4}}:){{2,7}}[0-9a-f]{{0,4}}\]"
    r"|\b(?:\d{1,3}\.){3}\d{1,3}\b|[\w.+-]+@[\w-]+\.\w{2,}",
    re.IGNORECASE,
)
# What an agent acts on when it loads the document: a file that is drawn in, a command that is run.
_IMPORT = re.compile(r"(?<![\w`@.])@(?:~|\.{0,2}/|[\w.-]+/|[\w-]+\.(?:md|txt|json|ya?ml|env)\b)")
_RUN_ON_LOAD = re.compile(r"!`[^`\n]+`|^[ \t]*(?:`{3,}|~{3,})!", re.MULTILINE)
_LOOK_ALIKE = re.compile(r"[A-Za-z][\u0400-\u04ff]|[\u0400-\u04ff][A-Za-z]")
_PROGRAMS = (
    "apt|apt-get|aws|az|base64|bash|brew|bun|cargo|cat|cd|chmod|chown|cmake|cp|crontab|curl|cut|dd|deno|dig|"
    "docker|docker-compose|echo|env|eval|exec|export|find|gcloud|gh|git|go|gradle|grep|gsutil|helm|iex|iwr|java|"
    "jq|kill|kubectl|launchctl|ln|ls|make|mkdir|mkfs|mv|mvn|mysql|nc|ncat|netcat|nice|node|nohup|npm|npx|openssl|"
    "osascript|perl|php|pip|pip3|pipx|pkill|pnpm|poetry|powershell|psql|pwsh|pytest|python|python3|rm|rsync|ruby|"
    "ruff|scp|sed|sftp|sh|source|ssh|sudo|systemctl|tar|tee|terraform|touch|uv|wget|xargs|yarn|zsh"
)
_PROGRAM = re.compile(rf"(?<![\w./-])(?:{_PROGRAMS})(?![\w-])[ \t]+\S", re.IGNORECASE)
_PATH_PROGRAM = re.compile(r"(?<![\w.])(?:\.{1,2}|~)?/[\w./-]+[ \t]+-{1,2}\w")
_CODE = re.compile(r"(`+)(.+?)\1", re.DOTALL)
_DANGEROUS = re.compile(
    r"\|[ \t]*(?:sudo[ \t]+)?(?:ba|z|da|k)?sh\b|\|[ \t]*(?:python3?|perl|ruby|node|iex|pwsh|powershell)\b|\$\("
    r"|\b(?:curl|wget|iwr|invoke-webrequest|nc|ncat|netcat|scp|rsync)[ \t]+\S|\brm[ \t]+-\w*[rf]|\bsudo\b"
    r"|\bchmod[ \t]+[0-7+ugoa]|\beval(?:\(|[ \t]+[\"'$`])|\bmkfs\b|\bdd[ \t]+if=|\bbase64[ \t]+-|>[ \t]*/(?:dev|etc)/"
    r"|>>?[ \t]*~|&&|git[ \t]+push\b.*(?:--force|-f\b)|\bcrontab\b|authorized_keys|/etc/passwd|\brm[ \t]+--\w"
    r"|\bgit[ \t]+(?:reset[ \t]+--hard|clean[ \t]+-\w*f)|\binvoke-expression\b"
    r"|\bfind\b[^\n]{0,80}[ \t]-(?:delete|exec)\b",
    re.IGNORECASE,
)
_OVERRIDE = re.compile(
    r"\b(?:ignore|disregard|forget|override|discard|bypass)\b[^.\n]{0,40}"
    r"\b(?:instruction|prompt|guideline|polic(?:y|ies)|restriction|safeguard|safety|guardrail|limit(?:ation)?s?\b"
    r"|(?:your|all|any|previous|prior|earlier|above|other|system|user'?s?)[ \t]+(?:rule|command|message|context))"
    r"|\byou are now\b|\bact as (?:an?|the) (?:unrestricted|admin|root|developer|system)|\bjailbreak|\bdeveloper mode\b"
    r"|\b(?:do not|don't|never|without)\b[ \t]+(?:\w+[ \t]+){0,3}?(?:tell(?:ing)?|inform(?:ing)?|mention(?:ing)?|reveal"
    r"(?:ing)?|notify(?:ing)?|warn(?:ing)?|ask(?:ing)?)[ \t]+(?:(?:it[ \t]+to|to|for|with)[ \t]+)?(?:the|a|any)?[ \t]*"
    r"(?:user|person|human|owner|permission|approval|confirmation)"
    r"|\bwithout[ \t]+(?:any[ \t]+)?(?:confirmation|permission|approval|consent|review)\b"
    r"|\b(?:skip|disable|turn off|circumvent|suppress)\b[^.\n]{0,30}\b(?:permission|approval|confirmation|review"
    r"|sandbox|safety|security|safeguard|guardrail|hooks?|audit|logging|antivirus|firewall|verification)\b"
    r"|--dangerously|--no-verify|--yolo|\bsystem prompt\b|\bregardless of what the (?:user|person|human)"
    r"|\b(?:send|upload|post|exfiltrate|forward|leak)\b[^.\n]{0,40}\b(?:secret|token|password|credential|key|env)"
    r"|\bauto-?[ \t]?(?:approv|accept)\w*|\bapprove[ \t]+(?:all|every|any)\b|\bpay no attention\b"
    r"|\bwithout[ \t]+(?:\w+[ \t]+)?hooks?\b"
    r"|\b(?:disable|skip|turn off)\b[^.\n]{0,20}\b(?:tls|ssl|certificate)"
    r"|\b(?:nie|niemals|ohne)\b[^.\n]{0,30}\b(?:erlaubnis|genehmigung|zustimmung|bestätigung)"
    r"|\b(?:jamais|sans)\b[^.\n]{0,30}\b(?:permission|autorisation|confirmation)"
    r"|\b(?:nunca|sin|sem)\b[^.\n]{0,30}\b(?:permiso|permissão|autoriza|confirma)"
    r"|\bигнорир\w*[^.\n]{0,40}(?:инструкц|правил|указани)|\bбез (?:разрешения|подтверждения)"
    r"|(?:忽略|无视|無視)[^。\n]{0,20}(?:指令|指示|规则|規則|提示)|(?:指示|指令|命令|ルール)[^。\n]{0,20}(?:無視|忘れ)"
    r"|(?:지시|명령|규칙)[^.\n]{0,20}무시"
    r"|\bignorier\w*\b[^.\n]{0,40}\b(?:anweisung|regel)|\bignor[ae]\w*\b[^.\n]{0,40}\b(?:instruc|consigne|instruçõ)",
    re.IGNORECASE,
)
_MARKS = re.compile(
    r"TOOL_CALL\s*:|<\|[^|>]{1,40}\|>|\[/?INST\]|</?(?:system|user|assistant|human|tool_use|tool_result)\b"
    r"|\[\[SKILLOPT|-----[ \t]*(?:END )?(?:DATA|BEGIN|PROMPT)\b|(?-i:__[A-Z][A-Z_]+__)"
    r"|^\s*(?:system|human|assistant)[ \t]*:",
    re.IGNORECASE | re.MULTILINE,
)
_SUBCOMMANDS = re.compile(
    r"(?:add|apply|build|check|checkout|ci|clean|clone|commit|create|delete|deploy|dev|down|exec|fetch|fmt|"
    r"format|get|init|install|lint|log|logs|login|merge|plan|publish|pull|push|rebase|release|remove|"
    r"reset|restart|restore|run|serve|start|stash|status|stop|sync|test|uninstall|up|update|upgrade|vet)"
)
_ARGUMENT = re.compile(r"^(?:-|\.{0,2}/|~|\$)|[./=:@]\w")
_PROSE = re.compile(r"(?:and|as|before|body|command|for|history|in|is|line|message|of|on|or|subject|the|to|with)s?")
_LEAST_ANSWER = 12
_LONGEST = 2_000
_LEAST_LITERAL = 6
_LEAST_SPAN_WORDS = 2
_PATTERN_MARKS = re.compile(r"[\\^$*+?()\[\]{}|]")


@dataclass(frozen=True, slots=True)
class Held:
    """An edit that a person has to look at, and the reasons."""

    edit: EditRecord
    reasons: tuple[str, ...]


def sift(
    edits: Iterable[EditRecord], tasks: Sequence[TaskRecord] = (), responses: Iterable[str] = ()
) -> tuple[list[EditRecord], list[Held]]:
    """(edits that may be tried, edits that are held). `tasks` and `responses` are what a command could come from."""
    sources = transcript_texts(tasks, responses)
    free: list[EditRecord] = []
    held: list[Held] = []
    for edit in edits:
        reasons = review_edit(edit, sources=sources, tasks=tasks)
        if reasons:
            held.append(Held(redact_secrets_of(edit), reasons))
        else:
            free.append(edit)
    return free, held


def review_edit(edit: EditRecord, *, sources: str = "", tasks: Sequence[TaskRecord] = ()) -> tuple[str, ...]:
    """Why an edit has to be seen by a person first; () when it need not. `sources`: see `transcript_texts`.

    Only what an edit would write is looked at: a delete writes nothing.
    """
    if edit.op.strip().lower() == "delete":
        return ()
    return review_text(clean_rule(edit.content), sources=sources, tasks=tasks)


def review_text(text: str, *, sources: str = "", tasks: Sequence[TaskRecord] = ()) -> tuple[str, ...]:
    """As `review_edit`, for a text."""
    if len(text) > _LONGEST:
        return (f"size: {len(text)} characters are more than a rule may have",)
    problem = unsafe_content(text)
    plain = unicodedata.normalize("NFKC", strip_invisible(text)).replace("\u3002", ".")
    found = (
        (f"control mark: {problem}" if problem else ""),
        ("control mark: it speaks the language of prompts and tools" if _MARKS.search(plain) else ""),
        (f"unseen characters: {', '.join(flag_invisible(text)[:4])}" if flag_invisible(text) else ""),
        ("unseen characters: letters of two alphabets in one word" if _LOOK_ALIKE.search(plain) else ""),
        ("link: it holds an address" if _URL.search(plain) else ""),
        ("link: it draws a file into every session" if _IMPORT.search(plain) else ""),
        ("secret: it holds what looks like one" if redact_secrets(text) != text else ""),
        ("override: it lifts limits or keeps something from the person" if _OVERRIDE.search(plain) else ""),
        _command_reason(plain, sources),
        _answer_reason(text, tasks),
    )
    return tuple(reason for reason in found if reason)


def transcript_texts(tasks: Iterable[TaskRecord], responses: Iterable[str] = ()) -> str:
    """All that tasks took from transcripts, in the form in which commands are looked for in it."""
    parts = list(responses)
    for task in tasks:
        parts += (task.intent, task.context_excerpt, task.attempted_solution, task.system)
        parts += [task.reference] if task.reference_kind == "rubric" else []
        parts += _literals(task, ("contains", "not_contains", "section_present", "section_contains"))
    return "\n".join(norm(part) for part in parts if part)


def leaked_literals(edits: Iterable[EditRecord], tasks: Iterable[TaskRecord]) -> list[str]:
    """One notice for each literal of a check that a rule repeats: such a rule may only please the judge."""
    texts = [norm(edit.content) for edit in edits if edit.content]
    literals = {literal for task in tasks for literal in _literals(task, ("contains", "section_present"))}
    return [
        f"a rule repeats {literal!r}, which a check looks for"
        for literal in sorted(literals)
        if any(norm(literal) in text for text in texts)
    ]


def redact_secrets_of(edit: EditRecord) -> EditRecord:
    """The edit with secrets taken out of its texts."""
    return EditRecord.from_dict(redact_secrets(edit.to_dict()))


def _command_reason(text: str, sources: str) -> str:
    if _RUN_ON_LOAD.search(text):
        return "command: it would be run whenever the document is loaded"
    if _DANGEROUS.search(text):
        return "command: it runs a command that could do harm"
    for span in _spans(text):
        if sources and span in sources:
            return f"command: {span[:60]!r} is taken from a transcript"
    return ""


def _spans(text: str) -> list[str]:
    """What in a text may be a command, normalised: code of two words or more, and a program with its arguments."""
    spans = [norm(match[2].strip().removeprefix("$")) for match in _CODE.finditer(text)]
    spans = [span for span in spans if len(span.split()) >= _LEAST_SPAN_WORDS]
    for pattern in (_PROGRAM, _PATH_PROGRAM):
        for match in pattern.finditer(text):
            words = norm(re.split(r"[,;\n`\"']|\.(?:\s|$)", text[match.start() :], maxsplit=1)[0]).split()
            spans += [span for span in (_command_in(words),) if span]
    return spans


def _command_in(words: list[str]) -> str:
    """The program with its first arguments, when what follows it reads like arguments and not like prose."""
    if len(words) >= 2 and _ARGUMENT.search(words[1]):
        return " ".join(words[:2])
    subcommand = len(words) >= 3 and _SUBCOMMANDS.fullmatch(words[1]) and not _PROSE.fullmatch(words[2])
    return " ".join(words[:3]) if subcommand else ""


def _answer_reason(text: str, tasks: Iterable[TaskRecord]) -> str:
    shown = norm(text)
    for task in tasks:
        answers = [task.reference] if task.reference_kind in ("exact", "answer") else []
        patterns = [literal for literal in _literals(task, ("regex",)) if _PATTERN_MARKS.search(literal)]
        for literal, least in [*((a, _LEAST_ANSWER) for a in answers), *((p, _LEAST_LITERAL) for p in patterns)]:
            if len(literal.strip()) >= least and norm(literal) in shown:
                return f"answer: it repeats what task {task.id} is judged by"
    return ""


def _literals(task: TaskRecord, ops: Sequence[str]) -> list[str]:
    checks = task.judge.get("checks") if isinstance(task.judge, dict) else None
    rows = checks if isinstance(checks, list) else []
    wanted = (row.get("arg") for row in rows if isinstance(row, dict) and row.get("op") in ops)
    return [arg for arg in wanted if isinstance(arg, str) and len(arg.strip()) >= 4]
