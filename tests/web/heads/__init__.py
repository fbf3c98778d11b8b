"""Tests of app/web/heads."""
