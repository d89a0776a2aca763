"""Other spellings merge no two names of long lists of different things."""

from __future__ import annotations

from itertools import combinations

import pytest

from evalwright.scorers.text.countries import COUNTRIES
from evalwright.scorers.text.transliteration import spelled_alike

CAPITALS = """
amsterdam ankara athens baghdad baku bangkok beijing beirut belgrade berlin bern bogota bratislava brussels bucharest budapest cairo
canberra caracas copenhagen dakar damascus dhaka dublin hanoi harare havana helsinki islamabad jakarta jerusalem kabul kampala kathmandu
khartoum kiev kingston kinshasa lagos lima lisbon ljubljana london luanda lusaka madrid managua manila maputo minsk mogadishu monrovia
montevideo moscow muscat nairobi nassau nicosia oslo ottawa panama paris prague pretoria pyongyang quito rabat riga riyadh rome santiago
sarajevo seoul singapore skopje sofia stockholm suva taipei tallinn tashkent tbilisi tehran tirana tokyo tripoli tunis vienna vientiane
vilnius warsaw wellington windhoek yerevan zagreb
"""
ELEMENTS = """
hydrogen helium lithium beryllium boron carbon nitrogen oxygen fluorine neon sodium magnesium aluminium silicon phosphorus sulfur chlorine
argon potassium calcium scandium titanium vanadium chromium manganese iron cobalt nickel copper zinc gallium germanium arsenic selenium
bromine krypton rubidium strontium yttrium zirconium niobium molybdenum technetium ruthenium rhodium palladium silver cadmium indium tin
antimony tellurium iodine xenon caesium barium lanthanum cerium praseodymium neodymium samarium europium gadolinium terbium dysprosium
holmium erbium thulium ytterbium lutetium hafnium tantalum tungsten rhenium osmium iridium platinum gold mercury thallium lead bismuth
polonium astatine radon francium radium actinium thorium protactinium uranium neptunium plutonium americium curium
"""
PEOPLE = """
bach beethoven mozart haydn handel schubert schumann brahms wagner verdi puccini mahler debussy ravel stravinsky monet manet picasso matisse
cezanne gauguin rembrandt vermeer rubens goya velazquez dali miro klimt munch kandinsky einstein newton galileo kepler copernicus darwin
mendel pasteur curie bohr planck heisenberg schrodinger dirac fermi feynman hawking faraday maxwell smith jones williams brown taylor davies
wilson evans thomas johnson roberts walker wright robinson thompson hughes edwards harris lewis martin jackson clarke clark turner
anna anne hanna maria marie mario paul paula carlo carla robert roberta julia julian juliana francis frances jean jeanne daniel danielle
gary cary lenin lennon harry henry helen helena laura lauren christian christina lisa luisa tim tom sam pam
"""


@pytest.mark.parametrize(
    "names",
    [CAPITALS, ELEMENTS, PEOPLE, " ".join(COUNTRIES)],
    ids=["capitals", "elements", "people", "countries"],
)
def test_no_two_names_of_a_list_become_one(names: str) -> None:
    keys = {name: spelled_alike(name) for name in names.split()}
    merged = [(one, two) for one, two in combinations(sorted(keys), 2) if not keys[one].isdisjoint(keys[two])]
    assert merged == []


def test_cyrillic_and_greek_are_read_in_latin_letters() -> None:
    for one, other in [
        ("достоевский", "dostoevsky"),
        ("путин", "putin"),
        ("чайковский", "tchaikovsky"),
        ("θεσσαλονίκη", "thessaloniki"),
    ]:
        assert not spelled_alike(one).isdisjoint(spelled_alike(other))
    assert spelled_alike("путин").isdisjoint(spelled_alike("pushkin"))


def test_short_words_stay_as_they_are() -> None:
    assert spelled_alike("man").isdisjoint(spelled_alike("mann"))
    assert spelled_alike("kim").isdisjoint(spelled_alike("cim"))
