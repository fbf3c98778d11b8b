"""The roster of a course, as its instructors edit it."""
