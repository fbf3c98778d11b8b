"""What the processes of one machine share: child processes with a memory limit, turns, and memory."""
