"""What is measured, and against what; `make bench` and `make bench-class` print it."""
