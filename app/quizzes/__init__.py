"""Sheets as quiz questions for other systems: Moodle XML, QTI 1.2 and QTI 2.1."""
