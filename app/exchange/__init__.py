"""The formats and services of other systems: for now, configs from the Hugging Face Hub."""
