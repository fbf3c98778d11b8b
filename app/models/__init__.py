"""A config.json read into one frozen Architecture, and the parameters that it has.

`read_config` finds the family's row in `families` (with `recognition`), reads sizes by its specs (`size_specs`, on top
of `config_fields`), finds the kinds of its layers (`layer_patterns`) and the tensors of its layout in `layouts`
(written with `parameter_specs`). `parameter_count` and `parameter_formula` count the tensors of the `Architecture`.
"""
