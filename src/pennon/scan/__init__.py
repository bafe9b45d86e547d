"""Reading tables: plan, execute, take.  Pure plans; one place that runs them."""
