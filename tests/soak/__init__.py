"""What takes too long for `make test`: run before a release by `make soak`."""
