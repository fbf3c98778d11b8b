"""What an author may write: the settings of a worksheet, checked, and its texts in Markdown."""
