"""The runner of the documentation's code blocks sees what is wrong with a page."""

import docs_outputs
import pytest
from pages import Session, agrees, blocks


@pytest.fixture
def page(tmp_path):
    def write(text):
        path = tmp_path / "page.md"
        path.write_text(text)
        return path

    return write


def printed(path, folder):
    found = blocks(path)
    return Session(found, folder).upto(len(found) - 1)


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\nb\n", "a  \nb\n", True),
        ("a\n", "a\nb\n", False),
        ("a\n…\nd\n", "a\nb\nc\nd\n", True),
        ("a\n…\nd\n", "a\nb\nc\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_output_is_compared_line_by_line(shown, printed, same):
    assert agrees(shown, printed) is same


def test_blocks_of_a_page_share_names_and_a_folder(page, tmp_path):
    path = page(
        "```python\nimport offpolicy as op\nop.demo_log(5).write_parquet('log.parquet')\n```\n"
        "```sh\noffpolicy check log.parquet\n```\n"
        "```python\nprint(op.check('log.parquet'))\n```\n"
    )
    assert printed(path, tmp_path).startswith("no problem found in")


def test_a_block_that_is_marked_does_not_run(page, tmp_path):
    path = page("<!-- not run: it would end the test -->\n\n```python\nraise SystemExit\n```\n")
    assert [block.reason for block in blocks(path)] == ["it would end the test"]
    assert printed(path, tmp_path) == ""


def test_a_command_that_is_not_ours_must_be_marked(page, tmp_path):
    with pytest.raises(ValueError, match="only offpolicy commands run"):
        printed(page("```sh\nrm -r /\n```\n"), tmp_path)


def test_a_refusal_must_be_announced(page, tmp_path):
    block = "```sh\noffpolicy evaluate nowhere.parquet\n```\n"
    with pytest.raises(AssertionError, match=r"nowhere\.parquet"):
        printed(page(block), tmp_path)
    assert "nowhere.parquet" in printed(page(f"<!-- exits with 1 -->\n\n{block}"), tmp_path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("```text\nan output\n```\n", "a text block is the output of the block right before it"),
        ("```python\n1\n```\n\nWords.\n\n```text\n1\n```\n", "a text block is the output of the block right before it"),
        ("```\n1\n```\n", "a block of ''"),
    ],
)
def test_a_block_that_nobody_would_compare_is_refused(page, text, why):
    with pytest.raises(ValueError, match=why):
        blocks(page(text))


def test_outputs_that_changed_are_written_anew(page):
    path = page(
        "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n\n```python\nprint('a\\nb')\n```\n\n```text\n…\nb\n```\n"
    )
    assert docs_outputs.refresh(path)
    text = path.read_text()
    assert "```text\n2\n```" in text
    assert "```text\n…\nb\n```" in text
    assert not docs_outputs.refresh(path)
