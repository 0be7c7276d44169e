"""An assistant for a database: it reads on its own, and asks you before it changes anything.

Run it:  python examples/sql_assistant.py
         python examples/sql_assistant.py http://127.0.0.1:8080 "Mark order 2 as paid."
"""

import asyncio
import sqlite3
import sys

from forge import Agent, Approved, Ask, Rejected, ToolResolutionError, tool
from forge.connection import AnyBackend

TABLES = """
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, total REAL, paid INTEGER);
INSERT INTO orders VALUES (1, 'Ada', 129.9, 1), (2, 'Bob', 54.25, 0), (3, 'Ada', 12.5, 0);
"""


def database() -> sqlite3.Connection:
    """A database in memory, with three orders."""
    made = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    made.executescript(TABLES)
    return made


def assistant(orders: sqlite3.Connection, backend: AnyBackend) -> Agent:
    """An agent with two tools; the database itself refuses a write in the tool that reads."""

    def perform(sql: str, *, read_only: bool) -> list[tuple[object, ...]]:
        try:
            orders.execute(f"PRAGMA query_only = {read_only}")
            return orders.execute(sql).fetchall()
        except sqlite3.Error as error:
            raise ToolResolutionError(f"SQLite says: {error}") from None

    @tool(effect="read")
    def query(sql: str) -> list[tuple[object, ...]]:
        """Read from the table orders(id, customer, total, paid) with a SELECT. paid is 1 or 0."""
        return perform(sql, read_only=True)

    @tool(approval=True)
    def change(sql: str) -> str:
        """Change the table orders(id, customer, total, paid) with an INSERT, UPDATE or DELETE."""
        perform(sql, read_only=False)
        return f"{orders.execute('SELECT changes()').fetchone()[0]} rows changed."

    return Agent("sql", backend=backend, tools=[query, change], on_text="respond", instructions="You answer by SQL.")


async def ask(question: Ask) -> Approved | Rejected:
    """Show the call to the person at the terminal."""
    said = await asyncio.to_thread(input, f"{question.call.name} {question.call.arguments}\nrun it? [y/N] ")
    return Approved(digest=question.digest) if said == "y" else Rejected(digest=question.digest, reason="not now")


if __name__ == "__main__":
    address, *words = sys.argv[1:] or ["local"]
    request = words[0] if words else "What is the total of all orders of Ada?"
    print(asyncio.run(assistant(database(), address).process(request, ask=ask)).unwrap().value)
