"""Anthropic's Messages API: https://platform.claude.com/docs/en/api/messages."""
