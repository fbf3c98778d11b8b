"""What teachers write themselves, and previews of it as their students will see it."""
