"""Section 3: local step, statistics, global step, bound, and the one loop."""
