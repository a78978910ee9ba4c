"""Copies of standard-library-only modules of skillopt, made by scripts/vendor.py."""
