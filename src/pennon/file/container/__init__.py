"""What data files of all versions from 2.0 on share: the end of the file, its messages, its life."""
