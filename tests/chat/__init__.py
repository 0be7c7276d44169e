"""`forge chat`: its pure parts as tables, and the whole as a process."""
