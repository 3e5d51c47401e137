"""Names that could be meant, and the sentences that offer them."""

import pytest

from bowtienet._validation import nearest, suggestion

COLUMNS = ["price", "prices", "size", "colour", "year built", "Price of heating", "id"]


@pytest.mark.parametrize(
    ("name", "found"),
    [("prise", "price"), ("PRICE", "price"), ("yearbuilt", "year built"), ("color", "colour")],
)
def test_the_most_alike_comes_first_whatever_its_case(name, found):
    assert nearest(name, COLUMNS)[0] == found


def test_names_keep_their_own_case():
    assert nearest("price of heatin", COLUMNS)[0] == "Price of heating"


def test_a_name_that_is_there_is_its_own_nearest():
    for name in COLUMNS:
        assert nearest(name, COLUMNS)[0] == name


def test_there_are_at_most_three():
    assert len(nearest("column1", [f"column{i}" for i in range(20)])) == 3


@pytest.mark.parametrize("known", [[], ["abc"], iter(["abc", "def"])])
def test_nothing_is_alike(known):
    assert nearest("zzzzz", known) == []


def test_a_suggestion_asks_for_what_is_alike():
    assert suggestion("prise", ["price", "prize", "id"]) == "; did you mean 'prize' or 'price'?"
    assert suggestion("colr", ["price", "colour"]) == "; did you mean 'colour'?"


def test_a_suggestion_lists_what_there_is_where_nothing_is_alike():
    assert suggestion("zzzzz", ["a", "b"]) == "; there are 'a', 'b'."


def test_a_long_list_is_cut():
    names = [f"column {i}" for i in range(8)]
    expected = ", ".join(map(repr, names[:5]))
    assert suggestion("zzzzz", names) == f"; there are {expected} and 3 more."
    assert suggestion("zzzzz", names[:5]) == f"; there are {expected}."


def test_names_are_shown_as_python_writes_them():
    assert suggestion("\x1b[31mred", ["\x1b[32mred"]) == r"; did you mean '\x1b[32mred'?"
