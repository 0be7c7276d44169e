"""`forge chat`: a conversation with an agent in the terminal. What is shown is derived from the agent's events."""
