"""Names that could be meant, and the sentences that offer them."""

import pytest

from bowtienet._old._validation import nearest, suggestion

COLUMNS = ["price", "prices", "size", "colour", "year built", "Price of heating", "id"]


@pytest.mark.parametrize(
    ("name", "found"),
    [("prise", "price"), ("PRICE", "price"), ("yearbuilt", "year built"), ("color", "colour")],
)
def test_the_most_alike_comes_first_whatever_its_case(name, found):
    assert nearest(name, COLUMNS)[0] == found


def test_there_are_at_most_three():
    assert len(nearest("column1", [f"column{i}" for i in range(20)])) == 3


@pytest.mark.parametrize("known", [[], ["abc"], iter(["abc", "def"])])
def test_nothing_is_alike(known):
    assert nearest("zzzzz", known) == []


def test_a_suggestion_asks_for_what_is_alike():
    assert suggestion("prise", ["price", "prize", "id"]) == "; did you mean 'prize' or 'price'?"
    assert suggestion("colr", ["price", "colour"]) == "; did you mean 'colour'?"
