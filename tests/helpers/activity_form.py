"""The form of an activity as a browser sends it."""

from __future__ import annotations

FORM = {
    "title": "Week 3", "worksheet": ["llama-7b"], "ticket": "classic", "ticket_anonymous": "yes", "variants": "same",
    "feedback": "immediate", "run": "after", "marking": "causes", "max_attempts": "", "hints": "yes",
    "examples": "yes", "opens": "", "closes": "", "late_minutes": "", "names_listed": "no", "auto_submit": "yes",
    "day": "2026-03-31",
}  # fmt: skip
# fmt: skip
