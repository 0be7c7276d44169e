"""Options: values from users' code, checked against their annotations, so that a wrong one is told in words."""
