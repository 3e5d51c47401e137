"""Where rows come from: checked arrays and their scaling."""
