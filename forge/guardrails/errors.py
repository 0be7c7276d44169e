"""ErrorTracker: mistakes in a row."""

from msgspec import Struct


class ErrorTracker(Struct, kw_only=True):
    """Counts mistakes in a row, and says when they are too many: one more than the limit."""

    max_retries: int = 3
    max_tool_errors: int = 2
    retries: int = 0
    tool_errors: int = 0

    def record_retry(self) -> None:
        """A reply had no usable call."""
        self.retries += 1

    def reset_retries(self) -> None:
        """A reply had one."""
        self.retries = 0

    def record_result(self, *, success: bool, is_soft_error: bool = False) -> None:
        """A batch of calls ran. A soft error (`ToolResolutionError`) is not counted; a success sets nothing back."""
        if not success and not is_soft_error:
            self.tool_errors += 1

    def reset_errors(self) -> None:
        """A whole batch went well."""
        self.tool_errors = 0

    @property
    def retries_exhausted(self) -> bool:
        """Whether there were more retries in a row than allowed."""
        return self.retries > self.max_retries

    @property
    def tool_errors_exhausted(self) -> bool:
        """Whether there were more errors in a row than allowed."""
        return self.tool_errors > self.max_tool_errors
