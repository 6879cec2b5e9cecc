"""Many attempts: planned, run, kept and judged again."""
