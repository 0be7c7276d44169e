"""The page on the proxy: its example runs."""

import re
from pathlib import Path
from typing import Any

PAGE = (Path(__file__).parents[1] / "docs/proxy.md").read_text()


def test_the_example_for_developers_runs() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(block, names)  # noqa: S102 - the page's own example
    assert b'"finish_reason":"tool_calls"' in names["answer_body"]
    assert names["stream"].endswith(b"data: [DONE]\n\n")
