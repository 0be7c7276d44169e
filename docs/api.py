"""Write the pages of the API into a folder, a page a module, and fail where a name or a link leads nowhere.

Run as `python docs/api.py FOLDER`.
"""

import re
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from html import unescape
from importlib import import_module
from pathlib import Path

import pdoc

ROOT = Path(__file__).parent.parent
PACKAGES = ("stages", "forge")
REFERENCE = re.compile(r"<code>((?:forge|stages)(?:\.\w+)+)(?:\(.*?\))?</code>")
LINK = re.compile(r'href="([^"#:]*)(?:#([^"]*))?"')
NOT_TEXT = re.compile(r"<script\b.*?</script>|<span class=\"s\d\">.*?</span>", re.DOTALL)
"""Scripts, and the strings of the source code that a page shows: what looks like a link there is none."""
ANCHOR = re.compile(r'\bid="([^"]*)"')


def modules() -> list[str]:
    """Every public module of the packages."""
    paths = (path.relative_to(ROOT).with_suffix("") for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
    names = (".".join(path.parts).removesuffix(".__init__") for path in paths)
    return sorted(name for name in names if not any(part.startswith("_") for part in name.split(".")))


def write(folder: Path, names: list[str]) -> list[str]:
    """The pages of these modules; what pdoc could not make of them."""
    wanted: list[str] = []
    covered: set[str] = set()
    for name in names:
        # What is imported when it is first asked for, pdoc looks for in the module itself.
        module = import_module(name)
        for public in getattr(module, "__all__", ()):
            setattr(module, public, getattr(module, public))
        if name not in covered:  # some packages bring their modules along
            wanted.append(name)
            covered.update(pdoc.extract.walk_specs([name]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pdoc.pdoc(*wanted, output_directory=folder)
    return [str(warning.message) for warning in caught]


def unresolved(folder: Path) -> Iterator[str]:
    """Links that lead to no page or to no place on it, and names of forge's own that pdoc found nothing for."""
    files = sorted(folder.rglob("*.html"))
    pages = {path: NOT_TEXT.sub("", path.read_text(encoding="utf-8")) for path in files}
    places = {path.resolve(): {*map(unescape, ANCHOR.findall(text))} for path, text in pages.items()}
    for path, text in pages.items():
        where = path.relative_to(folder)
        yield from (f"{where}: {name} is not there" for name in REFERENCE.findall(text) if not _exists(name))
        for target, place in sorted({*LINK.findall(text)}):
            page = (path.parent / target).resolve() if target else path.resolve()
            if page not in places:
                yield f"{where}: there is no page {target}"
            elif place and unescape(place) not in places[page]:
                yield f"{where}: there is no {place} on the page {target or 'itself'}"


@cache
def _exists(name: str) -> bool:
    """Whether the dotted name is a module, or something in one."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            if not hasattr(found, part) and part not in getattr(found, "__annotations__", {}):
                return False
            found = getattr(found, part, None)
        return True
    return False


def main(folder: Path) -> int:
    """Write and check; 1, with all that is wrong, where something is."""
    wrong = [*write(folder, modules()), *unresolved(folder)]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
