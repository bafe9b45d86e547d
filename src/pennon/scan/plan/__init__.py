"""Plan a query: bind it, ask indices and statistics, choose fragments and columns."""
