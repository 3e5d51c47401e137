"""Section 2: architecture, priors, simulation."""
