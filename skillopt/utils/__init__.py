"""Small tools without a subject of their own: files, cancellation, bounded parallelism, redaction, JSON replies.

A helper that only one package uses lives in that package.
"""
