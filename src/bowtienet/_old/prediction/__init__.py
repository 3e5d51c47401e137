"""Sections 3.5 and 3.6: what a fitted network says of new inputs."""
