"""ReLU networks with penalties, trained side by side."""
