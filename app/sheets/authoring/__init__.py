"""What an author may write: a worksheet's settings, checked, and its texts in Markdown."""
