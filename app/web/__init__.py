"""Pages and API: one module a kind of page; each parses, calls and renders."""
