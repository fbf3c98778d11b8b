"""An activity and the work in it: values and rules, without the database and without what a sheet says."""
