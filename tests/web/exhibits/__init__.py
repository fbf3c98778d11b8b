"""Tests of app/web/exhibits."""
