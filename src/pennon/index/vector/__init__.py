"""Vector indices: rows near a query, found without looking at all of them."""
