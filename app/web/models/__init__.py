"""The list of models, a model's page, and importing one."""
