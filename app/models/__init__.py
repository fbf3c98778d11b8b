"""Reads a config.json into one frozen Architecture, and counts its parameters.

`read_config` finds the family's row in `families` (with `recognition`), its sizes by the row's specs (`size_specs`,
`config_fields`), its kinds of layers (`layer_patterns`) and the tensors of its layout (`layouts`, written with
`parameter_specs`). `parameter_count` and `parameter_formula` count the tensors.
"""
