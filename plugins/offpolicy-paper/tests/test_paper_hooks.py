"""The package brings the paper's four experiments, in the order of its figures, and the command finds them."""

import importlib

import pytest
from cli import offpolicy
from offpolicy.experiments import reproduction
from offpolicy.extensions import plugins
from offpolicy_paper import kdd98

FIGURES = ["mountain-car", "sailing", "kdd98", "safe-improvement"]


def test_the_plugin_is_listed_with_what_it_brings():
    (ours,) = (each for each in offpolicy("plugins", "--json").document["plugins"] if each["name"] == "paper")
    assert (ours["package"], ours["error"], ours["warnings"]) == ("offpolicy-paper", None, [])
    assert ours["brings"] == {"experiment": sorted(FIGURES)}


def test_all_are_the_papers_figures_in_their_order():
    assert reproduction.names() == FIGURES
    sources = [plugins.study(name).source for name in FIGURES]
    assert sources == [f"Jiang & Li (2016), Fig. {number}" for number in (1, 2, 3, 4)]


def test_the_donations_need_jax():
    assert [plugins.study(name).needs for name in FIGURES] == [None, None, ("jax", "recurrent"), None]


def test_the_former_import_path_leads_here():
    former = importlib.import_module("offpolicy.experiments.kdd98")
    assert former.experiment is kdd98.experiment
    assert former.ALPHAS is kdd98.ALPHAS
    with pytest.raises(AttributeError, match="no_such_name"):
        former.no_such_name  # noqa: B018
