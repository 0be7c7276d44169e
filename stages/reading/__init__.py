"""Reading: which calls a reply holds, and what is wrong with each."""
