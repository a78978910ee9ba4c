"""Backends, a module each: `complete(call, role, ctx) -> ModelReply` makes one attempt."""
