"""The exhibits: pages that show a product step by step, with or without script, and in other sites' pages."""
