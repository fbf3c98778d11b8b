"""Tests of app/figures/exhibits."""
