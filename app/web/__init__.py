"""The web app: one module a kind of page, and the runner of real heads."""
