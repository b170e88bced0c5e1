"""Every code block of the documentation runs, and prints what its page shows."""

import json
import tomllib

import pytest
from pages import PAGES, RUN, Session, agrees, blocks
from places import ROOT

BLOCKS = {page.relative_to(ROOT).as_posix(): blocks(page) for page in PAGES}
RUNNING = [
    pytest.param(page, number, id=str(block))
    for page, found in BLOCKS.items()
    for number, block in enumerate(found)
    if block.language in RUN and block.reason is None
]
NOT_RUN = [block for found in BLOCKS.values() for block in found if block.reason is not None]


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    return {page: Session(found, tmp_path_factory.mktemp("page")) for page, found in BLOCKS.items() if found}


@pytest.mark.parametrize(("page", "number"), RUNNING)
def test_a_block_prints_what_its_page_shows(sessions, page, number):
    printed = sessions[page].upto(number)
    shown = BLOCKS[page][number].output
    if shown is not None:
        assert agrees(shown, printed), printed


def test_few_blocks_do_not_run_and_each_says_why():
    assert len(NOT_RUN) <= 11, [str(block) for block in NOT_RUN]
    assert all(len(block.reason) > 10 for block in NOT_RUN)


def test_there_are_blocks_to_run():
    assert len(RUNNING) > 60


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(block, id=str(block))
        for found in BLOCKS.values()
        for block in found
        if block.language in ("toml", "json")
    ],
)
def test_a_document_in_a_block_can_be_read(block):
    assert (tomllib.loads if block.language == "toml" else json.loads)(block.code)
