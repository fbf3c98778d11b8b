"""What the processes on one machine share: child processes with a memory limit, turns, and memory."""
