"""Where it lives: content store, native store, environments, locks, garbage collection."""
