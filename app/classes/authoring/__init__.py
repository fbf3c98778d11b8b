"""The forms in which teachers write worksheets, and the checker's remarks on them."""
