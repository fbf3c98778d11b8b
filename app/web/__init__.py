"""The web app: one module per kind of page, and the runner of real heads."""
