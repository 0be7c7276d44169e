"""OpenAI's protocols: https://platform.openai.com/docs/api-reference."""
