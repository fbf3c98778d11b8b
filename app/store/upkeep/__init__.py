"""What keeps the database small while the app runs."""
