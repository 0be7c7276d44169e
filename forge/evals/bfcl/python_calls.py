"""Calls written as Python, as BFCL's prompt asks for them: read as values, never run."""

import ast

import msgspec


def python_calls(text: str) -> list[tuple[str, str]]:
    """The calls of `[f(a=1), g(b="x")]`, arguments as JSON; none where the text is anything else."""
    try:
        tree = ast.parse(text.strip().strip("`").strip(), mode="eval").body
        listed = tree.elts if isinstance(tree, ast.List | ast.Tuple) else [tree]
        return [_python_call(one) for one in listed]
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return []


def _python_call(node: ast.expr) -> tuple[str, str]:
    if not isinstance(node, ast.Call) or node.args:
        raise ValueError("no call by name")
    arguments = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords if keyword.arg}
    return ast.unparse(node.func).replace(".", "_"), msgspec.json.encode(arguments).decode()
