"""Full text: how a text becomes tokens, which documents have them, and how well these fit a query."""
