"""The pictures of the documentation show what the code draws: `python tools/pictures.py` writes them anew."""

import pictures
import pytest


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_a_picture_is_up_to_date(name):
    assert pictures.kept(name) == pictures.description(pictures.PICTURES[name]())


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_a_picture_is_on_white_and_fits_a_page(name):
    text = (pictures.FOLDER / f"{name}.svg").read_text()
    root = pictures.ElementTree.fromstring(text)
    assert 400 < float(root.get("width")) <= 720
    assert 'fill="white"' in text
    assert "<script" not in text
