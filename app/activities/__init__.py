"""Activities and the work in them: values and rules, without the database and without sheets."""
