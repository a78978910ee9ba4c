"""A tool server over standard input and output (Model Context Protocol) whose tools do nothing.

python tool_server.py TOOLS.json CALLS.jsonl

Every tool takes any arguments and answers with one fixed text; that it was called, and no argument, is appended to the
record. This file runs on its own, so it imports nothing of ours.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PROTOCOL = "2025-06-18"
_UNKNOWN_METHOD, _UNKNOWN_TOOL = -32601, -32602


def serve(tools_file: Path, record: Path) -> None:
    """Answer requests, one JSON line each, until the input ends."""
    listed = json.loads(tools_file.read_text(encoding="utf-8"))
    for line in sys.stdin:
        try:
            request = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(request, dict) and "id" in request and "method" in request:
            answer = {"jsonrpc": "2.0", "id": request["id"], **_answer(request, listed, record)}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


def _answer(request: dict[str, Any], listed: dict[str, Any], record: Path) -> dict[str, Any]:
    method = request["method"]
    params = request.get("params")
    params = params if isinstance(params, dict) else {}
    if method == "initialize":
        return {
            "result": {
                "protocolVersion": params.get("protocolVersion") or PROTOCOL,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "replay", "version": "1"},
            }
        }
    if method == "ping":
        return {"result": {}}
    if method == "tools/list":
        return {"result": {"tools": [_described(tool) for tool in listed["tools"]]}}
    if method == "tools/call":
        return _called(params.get("name"), listed, record)
    return {"error": {"code": _UNKNOWN_METHOD, "message": f"no method {method!a}"}}


def _described(tool: dict[str, Any]) -> dict[str, Any]:
    query = {"type": "string", "description": "What to ask the tool."}
    return {
        **tool,
        "inputSchema": {"type": "object", "properties": {"query": query}},
        "annotations": {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False},
    }


def _called(name: Any, listed: dict[str, Any], record: Path) -> dict[str, Any]:
    if not any(tool["name"] == name for tool in listed["tools"]):
        return {"error": {"code": _UNKNOWN_TOOL, "message": f"no tool {name!a}"}}
    with record.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"name": name}) + "\n")
    return {"result": {"content": [{"type": "text", "text": listed["result"]}], "isError": False}}


if __name__ == "__main__":
    serve(Path(sys.argv[1]), Path(sys.argv[2]))
