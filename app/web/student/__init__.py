"""What a student of a class sees."""
