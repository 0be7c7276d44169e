"""What a seed draws: ids, names, amounts. The same seed draws the same, and no two things the same id."""

import random

CITIES = ("Lisbon", "Oslo", "Kyoto", "Ghent", "Turin", "Quito", "Bergen", "Leeds", "Porto", "Riga", "Cusco", "Perth")
FIRST_NAMES = ("Alma", "Bruno", "Clara", "Dario", "Elif", "Femi", "Greta", "Hugo", "Ines", "Jonas", "Kira", "Luis")
FAMILY_NAMES = ("Abara", "Bergstrom", "Castell", "Dubrov", "Eklund", "Farouk", "Gallo", "Hartwig", "Ibsen", "Juarez")

PRODUCTS = (
    "Kestrel lamp",
    "Marlow kettle",
    "Tundra jacket",
    "Osprey tent",
    "Cobalt drill",
    "Juniper desk",
    "Halden radio",
    "Pinto backpack",
    "Corvo printer",
    "Selkie wetsuit",
    "Argyle heater",
    "Lumen projector",
)


class Draw(random.Random):
    """A source of a scenario's data; every id that it gives is another one."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._given: set[str] = set()

    def id(self, prefix: str, digits: int = 4) -> str:
        """An id such as `C-4821`, which this source has not given before."""
        while (made := f"{prefix}{self.randrange(10 ** (digits - 1), 10**digits)}") in self._given:
            pass
        self._given.add(made)
        return made

    def amount(self, low: int, high: int) -> float:
        """An amount of money with cents, which are never zero."""
        return self.randrange(low, high) + self.randrange(11, 99) / 100

    def person(self) -> str:
        """A first and a family name that this source has not given before."""
        while (made := f"{self.choice(FIRST_NAMES)} {self.choice(FAMILY_NAMES)}") in self._given:
            pass
        self._given.add(made)
        return made
