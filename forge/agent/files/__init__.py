"""Files: tools with which a model works in one folder: read, write, edit, list, search, run commands."""

from forge.agent.files.tools import file_tools

__all__ = ["file_tools"]
