"""`forge chat`: a conversation with an agent in the terminal, displayed from the agent's events."""
