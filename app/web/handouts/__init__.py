"""Handout pages for everybody: choosing options, the progress of a print job, and marking paper answers."""
