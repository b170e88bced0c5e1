"""The learning file: hand-made rows in its layout, by no donor."""

import numpy as np
import offpolicy as op
import pytest
from offpolicy_kdd98 import Kdd98, read
from offpolicy_kdd98.campaigns import MAIL_TYPES, SUFFIXES

DATES = (
    *(9406, 9407, 9409, 9410, 9411, 9411, 9501, 9502, 9503, 9504, 9506),
    *(9507, 9508, 9510, 9510, 9511, 9601, 9602, 9603, 9604, 9604, 9606),
)
HEADER = ["ODATEDW", "STATE", "DOB"] + [f"ADATE_{n}" for n in range(2, 25)] + ["RAMNTALL"]
HEADER += [f"{kind}_{n}" for n in range(3, 25) for kind in ("RDATE", "RAMNT")] + ["CONTROLN", "TARGET_B", "TARGET_D"]


def row(mailed=(), gifts=None, **other):
    """A line of the file: campaigns by suffix, gifts as text by suffix, all else blank as in the file."""
    values = dict.fromkeys(HEADER, " ") | {"ODATEDW": "8901", "STATE": "IL", "ADATE_2": "9706", "CONTROLN": "7"}
    for n in mailed:
        values[f"ADATE_{n}"] = DATES[SUFFIXES.index(n)]
    for n, amount in (gifts or {}).items():
        values[f"RAMNT_{n}"] = amount
        values[f"RDATE_{n}"] = "9501"
    return ",".join(str((values | other)[name]) for name in HEADER)


def write(path, *rows, header=HEADER):
    path.write_text("\r\n".join([",".join(header), *rows]) + "\r\n")
    return path


@pytest.fixture
def file(tmp_path):
    return tmp_path / "cup98LRN.txt"


def test_mailings_and_gifts_by_campaign(file):
    found = read(write(file, row([24, 23, 3], {23: "10", 3: "5.5"}), row([20], {20: "0"}), row()))
    assert found.mailed.shape == found.gifts.shape == (3, 22)
    assert np.flatnonzero(found.mailed[0]).tolist() == [0, 1, 21]
    assert found.gifts[0, [0, 1, 21]].tolist() == [0, 10, 5.5]
    assert np.flatnonzero(found.mailed[1]).tolist() == [4]
    assert not found.gifts[1:].any()
    assert not found.synthetic


def test_the_calendar_has_every_campaign_once():
    assert len(MAIL_TYPES) == len(SUFFIXES) == len(DATES) == 22


def test_a_bad_month_is_named_with_its_line(file):
    write(file, row(), row(ADATE_7="9613"))
    with pytest.raises(op.OffPolicyError, match=r"cup98LRN.txt: line 3: ADATE_7 is '9613'; expected a month YYMM"):
        read(file)


@pytest.mark.parametrize("amount", ["ten", "-1", "nan", "inf"])
def test_a_bad_gift_is_named_with_its_line(file, amount):
    write(file, row([5], {5: amount}))
    with pytest.raises(op.OffPolicyError, match=rf"line 2: RAMNT_5 is '{amount}'; expected an amount"):
        read(file)


def test_missing_columns_are_named(file):
    short = [name for name in HEADER if name not in ("ADATE_9", "RAMNT_4")]
    write(file, header=short)
    with pytest.raises(op.OffPolicyError, match=r"2 columns are missing \(ADATE_9, RAMNT_4\); is it cup98LRN.txt"):
        read(file)


def test_a_file_without_donors_or_no_file_at_all(file):
    with pytest.raises(op.OffPolicyError, match="no such file"):
        read(file)
    with pytest.raises(op.OffPolicyError, match="no donor"):
        read(write(file))


def test_the_domain_reads_the_file_of_the_environment_and_says_so(file, monkeypatch):
    write(file, *(row([24, 23, 22, 3], {23: str(5 + i)}) for i in range(9)))
    monkeypatch.setenv("OFFPOLICY_KDD98", str(file))
    domain = Kdd98(donors=4)
    assert domain.trajectories["episode"].n_unique() == 4
    assert "synthetic" not in domain.notice
    assert "a national veterans organization" in domain.notice
    assert Kdd98(path="").notice.startswith("synthetic donors")
    one, same, other = (Kdd98(donors=4, seed=seed).campaigns.gifts for seed in (1, 1, 2))
    assert (one == same).all()
    assert (one != other).any()
