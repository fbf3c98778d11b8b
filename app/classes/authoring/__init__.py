"""The forms in which teachers write worksheets, and what the checker says of what they wrote."""
