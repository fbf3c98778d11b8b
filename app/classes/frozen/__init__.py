"""What activities, runs and attempts keep of the library, and what their forms offer of it."""
