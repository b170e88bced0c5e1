"""The domain is what the protocol asks for."""

import offpolicy as op
from offpolicy.testing import check_domain


def test_the_domain_conforms():
    check_domain(op.domain("kdd98"))
