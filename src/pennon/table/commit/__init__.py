"""How a transaction becomes a version: the loop, the judgement of conflicts, the put."""
