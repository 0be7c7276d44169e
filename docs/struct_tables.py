"""A griffe extension for the API reference: the fields of a class as a table, read from its source."""

from typing import Any

from griffe import Attribute, Class, Docstring, DocstringAttribute, DocstringSectionAttributes, Extension


class StructTables(Extension):
    """Adds to each class with annotated fields a section of them, in place of a heading for each."""

    def on_class_members(self, *, cls: Class, **_: Any) -> None:
        """Move the fields of the class into its docstring."""
        fields = [
            member
            for name, member in cls.members.items()
            if isinstance(member, Attribute) and member.annotation is not None and not name.startswith("_")
            and "property" not in member.labels
        ]  # fmt: skip
        if not fields:
            return
        if cls.docstring is None:
            cls.docstring = Docstring("", parent=cls)
        cls.docstring.parsed.append(DocstringSectionAttributes([_row(field) for field in fields]))
        for field in fields:
            del cls.members[field.name]


def _row(field: Attribute) -> DocstringAttribute:
    told = field.docstring.value if field.docstring else ""
    default = "" if field.value is None else f"Default: `{field.value}`."
    return DocstringAttribute(
        name=field.name, annotation=field.annotation, description=" ".join(filter(None, (told, default)))
    )
