"""Coding agents as targets: one runner, and for each command line what it is told and how it is read.

`workspace` says what an agent is given, `agent` what an adapter is, `runner` makes one attempt; `codex`, `claude_code`,
`cursor` and `copilot` are the adapters. An agent is called as any model is: `Session.call` with a call that has a
`workspace`, so that limits, retries, the budget, usage and events are those of every call.
"""
