"""Formats and services of other systems: the Hugging Face Hub, class lists, spreadsheets, gradebooks, mail."""
