"""Index files: what they hold, and what they answer; nothing here knows of scans or commits."""
