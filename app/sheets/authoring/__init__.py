"""What an author may write: the settings of a worksheet, checked, and the text in Markdown that stands on it."""
