"""The machine does what its description says."""

import numpy as np
import offpolicy as op
from offpolicy_template import Machine
from offpolicy_template.machine import REPAIR, RUN, WORN_OUT


def steps(wear, action, n=4000):
    machine = Machine()
    return machine.step(np.full((n, 1), wear), np.full(n, action), np.random.default_rng(1))


def test_running_wears_it_half_the_time():
    then, rewards, done = steps(2, RUN)
    assert set(then[:, 0]) == {2, 3}
    assert abs((then[:, 0] == 3).mean() - 0.5) < 5 * 0.5 / np.sqrt(4000)
    assert (rewards == 0.6).all()
    assert not done.any()


def test_a_worn_out_machine_breaks():
    _, rewards, done = steps(WORN_OUT, RUN)
    assert abs(done.mean() - 0.5) < 5 * 0.5 / np.sqrt(4000)
    assert (rewards == np.where(done, -2, 0)).all()


def test_a_repaired_machine_is_new():
    then, rewards, done = steps(3, REPAIR)
    assert (then == 0).all()
    assert (rewards == -0.5).all()
    assert not done.any()


def exact_value(machine, policy):
    """By backward induction over wear and step."""
    wear = np.arange(WORN_OUT + 1)
    value = np.zeros(len(wear))
    for t in reversed(range(machine.horizon)):
        pi = policy.probabilities(wear[:, None], t)
        worse = np.append(1 - wear[:-1] / WORN_OUT + machine.discount * value[1:], -2.0)
        same = 1 - wear / WORN_OUT + machine.discount * value
        repaired = -0.5 + machine.discount * value[0]
        value = pi[:, RUN] * (worse + same) / 2 + pi[:, REPAIR] * repaired
    return value[0]


def test_a_log_of_the_coin_tells_the_value_of_another_policy():
    machine = Machine()
    careful = machine.policies["careful"]
    log = machine.simulate(machine.behavior, 20_000, seed=1)
    pi = careful.probabilities(log.select("wear").to_numpy(), log["step"].to_numpy())
    log = log.with_columns(target_prob=pi[np.arange(log.height), log["action"].to_numpy()])
    ev = op.evaluate(log, discount=machine.discount, estimators=["mc", "step-is"])
    assert abs(ev["mc"].value - exact_value(machine, machine.behavior)) < 4 * ev["mc"].std_error
    assert abs(ev["step-is"].value - exact_value(machine, careful)) < 4 * ev["step-is"].std_error
