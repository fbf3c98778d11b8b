"""What is measured, against what; `make bench` prints it."""
