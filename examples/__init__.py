"""Example packages; those in the folder numerics travel in the wheel for ``visget demo``."""
