"""Reads a config.json into one frozen Architecture, and counts its parameters.

`read_config` finds the table of the config's type (`recognition`, `table`), and `read_table` builds the Architecture:
values by the table's rules (`table_values`, `grammar`), its tensors (`parameter_specs`), and what isn't shape
(`computation`). `parameter_count` and `parameter_formula` count the tensors.
"""
