"""What teachers write themselves, and look at as their students will."""
