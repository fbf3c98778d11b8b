"""LTI 1.3: how a learning management system opens the app. Without a web framework."""
