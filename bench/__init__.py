"""Measurements of visget. One command does all of them: ``python bench/run.py``; see docs/benchmarks.md."""
