"""What must work in the oldest releases of Spark; ``make spark-old`` runs it in each."""
