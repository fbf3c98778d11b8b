"""What an instructor sees."""
