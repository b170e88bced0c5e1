"""See that an installed wheel gives the demo's value: `python .ci/smoke.py` in an environment without the sources."""

import offpolicy as op

ev = op.evaluate(op.demo_log(), discount=0.9)
assert abs(ev["dr"].value - op.demo_value()) < 4 * ev["dr"].std_error, ev.table
assert ev.verdict.level == "reliable", ev.verdict
print("the wheel of", op.__version__, "works")
