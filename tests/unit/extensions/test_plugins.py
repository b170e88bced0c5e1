"""Plugins are found without import, loaded when named, and kept apart when broken."""

import inspect
import json
import re
import sys
from pathlib import Path

import click
import offpolicy as op
import pytest
from cli import offpolicy, process
from offpolicy import hookspecs, protocols
from offpolicy.cli import complete
from offpolicy.extensions import plugins
from offpolicy.extensions.plugins import KINDS, MEMBERS, Registry
from places import ROOT

GUIDE = (ROOT / "plugins" / "README.md").read_text()
HOOKS = [name for name, thing in vars(hookspecs).items() if inspect.isfunction(thing) and name.startswith("offpolicy_")]
PROTOCOLS = ["Policy", "ValueModel", "Model", "Setting", "Domain", "ModelFitter", "Generator", "KnownTransitions"]
PROTOCOLS += ["BatchedValues", "BatchedPolicy", "TabulatedPolicy", "Aggregation", "Estimator"]

HEAD = """
from offpolicy.hookspecs import hookimpl
from offpolicy.testing import Walk

class Pond(Walk):
    pass

class Fit:
    def fit(self, log, domain):
        return None

class Propose:
    def __init__(self, share=0.5):
        self.share = share
    def candidates(self, log, domain):
        return []

class Waves:
    make = read = draw = staticmethod(lambda *_: None)

class Ripples:
    name, needs, unbiased = "ripples", ("ratio",), False
    def values(self, block):
        return block.by_trajectory_sum(block["ratio"] * block["reward"])

def wide():
    from offpolicy.intervals import Method
    return Method("heuristic", lambda request: request.around(request.value, 9.0))
"""
GOOD = (
    HEAD
    + """
@hookimpl
def offpolicy_domains():
    return {"pond": Pond}

@hookimpl
def offpolicy_model_fitters():
    return {"pond-fit": Fit}

@hookimpl
def offpolicy_candidate_policies():
    return {"pond-propose": Propose}

@hookimpl
def offpolicy_experiments():
    return {"pond-waves": Waves}

@hookimpl
def offpolicy_estimators():
    return {"pond-ripples": Ripples}

@hookimpl
def offpolicy_intervals():
    return {"pond-wide": wide}
"""
)


def domains(answer):
    return HEAD + f"\n@hookimpl\ndef offpolicy_domains():\n    return {answer}\n"


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Puts a package on the path as pip would, with its entry points; its module says when it is imported."""
    monkeypatch.setattr(plugins, "_registry", None)
    monkeypatch.syspath_prepend(tmp_path)
    written = []

    def write(package, source, entries=None, version="1.2"):
        module = package.replace("-", "_")
        (tmp_path / f"{module}.py").write_text(source)
        info = tmp_path / f"{module}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        lines = [f"{name} = {module}" for name in entries or [package.removeprefix("offpolicy-")]]
        (info / "entry_points.txt").write_text("\n".join(["[offpolicy]", *lines]) + "\n")
        written.append(module)

    yield write
    for module in written:
        sys.modules.pop(module, None)


def listed(name):
    """That plugin in `offpolicy plugins --json`."""
    document = offpolicy("plugins", "--json").document
    return next(plugin for plugin in document["plugins"] if plugin["name"] == name)


def test_every_hook_has_a_heading_in_the_guide_a_kind_and_members():
    assert HOOKS
    assert re.findall(r"^### `(offpolicy_\w+)`$", GUIDE, re.MULTILINE) == HOOKS
    assert list(KINDS) == list(MEMBERS) == HOOKS


def test_every_hook_has_a_test():
    tests = Path(__file__).read_text()
    assert all(f"def test_hook_{hook}(" in tests for hook in HOOKS)


def test_the_guide_tells_of_exact_values_and_terminal_states():
    assert "`value(policy)`" in GUIDE
    assert "the terminal ones too" in GUIDE


def test_every_protocol_has_a_heading_in_the_guide():
    headings = re.findall(r"^### (\w+)$", GUIDE, re.MULTILINE)
    assert set(headings) == set(PROTOCOLS)
    declared = {name for name, thing in vars(protocols).items() if getattr(thing, "_is_protocol", False)}
    assert declared - {"Protocol"} == set(PROTOCOLS)


def test_hook_offpolicy_domains(install):
    install("offpolicy-pond", GOOD)
    assert op.domain("pond", horizon=3).horizon == 3


def test_hook_offpolicy_model_fitters(install):
    install("offpolicy-pond", GOOD)
    assert type(op.fitter("pond-fit")).__name__ == "Fit"


def test_hook_offpolicy_candidate_policies(install):
    install("offpolicy-pond", GOOD)
    assert op.generator("pond-propose", share=0.2).share == 0.2
    assert type(op.generator("mixture")).__name__ == "Mixtures"


def test_hook_offpolicy_estimators(install):
    install("offpolicy-pond", GOOD)
    log = op.demo_log(episodes=50)
    value = op.evaluate(log, estimators=["pond-ripples"])["pond-ripples"].value
    assert value == pytest.approx((log["target_prob"] / log["behavior_prob"] * log["reward"]).sum() / 50)
    with pytest.raises(op.UsageError, match=r"no estimator 'pond-ripple'; did you mean 'pond-ripples'\?"):
        op.evaluate(log, estimators=["pond-ripple"])


def test_hook_offpolicy_intervals(install):
    install("offpolicy-pond", GOOD)
    ev = op.evaluate(op.demo_log(episodes=50), estimators=["dr"], interval="pond-wide")
    assert ev["dr"].high - ev["dr"].value == pytest.approx(9.0)
    assert (ev["dr"].own_interval.method, ev["dr"].own_interval.kind) == ("pond-wide", "heuristic")
    with pytest.raises(op.UsageError, match=r"no interval 'pond-wid'; did you mean 'pond-wide'\?"):
        ev["dr"].interval(method="pond-wid")


def test_an_estimator_of_ours_asks_no_plugin(install):
    install("offpolicy-pond", GOOD)
    op.evaluate(op.demo_log(episodes=50), estimators=["dr"], interval="normal")["dr"].interval(method="bootstrap")
    assert "offpolicy_pond" not in sys.modules


def test_a_plugin_cannot_take_a_name_of_ours(install):
    taken = GOOD.replace('"pond-ripples"', '"dr"').replace('"pond-wide"', '"auto"')
    install("offpolicy-pond", taken)
    ev = op.evaluate(op.demo_log(episodes=50), estimators=["dr"])
    assert ev["dr"].value != 0
    context, option = click.Context(click.Command("x")), click.Option(["--x"])
    for completer, name in ((complete.estimators, "dr"), (complete.averages, "dr"), (complete.intervals, "auto")):
        assert [item.value for item in completer(context, option, name)].count(name) == 1
    warnings = listed("pond")["warnings"]
    assert "estimator 'dr' is not used: offpolicy itself has that name" in warnings
    assert "interval 'auto' is not used: offpolicy itself has that name" in warnings


def test_a_broken_plugin_is_told_where_an_estimator_is_not_found(install):
    install("offpolicy-mud", "raise RuntimeError('stuck')")
    with pytest.raises(op.UsageError, match=r"no estimator 'ripple'.*plugin 'mud' is broken \(RuntimeError: stuck\)"):
        op.evaluate(op.demo_log(episodes=5), estimators=["ripple"])


def test_the_command_line_takes_estimators_and_intervals_of_plugins(install, tmp_path):
    install("offpolicy-pond", GOOD)
    path = tmp_path / "log.parquet"
    op.demo_log(episodes=50).write_parquet(path)
    run = offpolicy("evaluate", str(path), "--estimator", "dr,pond-ripples", "--interval", "pond-wide", "--json")
    assert [row["estimator"] for row in run.document["estimates"]] == ["dr", "pond-ripples"]
    assert {row["interval"]["method"] for row in run.document["estimates"]} == {"pond-wide"}
    assert listed("pond")["brings"]["estimator"] == ["pond-ripples"]
    assert listed("pond")["brings"]["interval"] == ["pond-wide"]
    wrong = offpolicy("evaluate", str(path), "--interval", "pond-wid")
    assert wrong.code == 2
    assert "did you mean 'pond-wide'?" in wrong.err
    context, option = click.Context(click.Command("x")), click.Option(["--x"])
    assert [item.value for item in complete.estimators(context, option, "dr,pond")] == ["dr,pond-ripples"]
    assert [item.value for item in complete.averages(context, option, "pond")] == ["pond-ripples"]
    assert [item.value for item in complete.intervals(context, option, "pond")] == ["pond-wide"]


def test_hook_offpolicy_experiments(install):
    install("offpolicy-pond", GOOD)
    assert type(plugins.study("pond-waves")).__name__ == "Waves"
    assert "pond-waves" in plugins.registry().names("offpolicy_experiments")
    run = offpolicy("reproduce", "pond-wave")
    assert run.code == 2
    assert "did you mean 'pond-waves'?" in run.err


def test_found_without_import_and_loaded_when_named(install):
    install("offpolicy-pond", GOOD)
    install("offpolicy-other", domains('{"other": Walk}'))
    found = {plugin.name: plugin for plugin in plugins.registry().plugins}
    assert (found["pond"].package, found["pond"].version) == ("offpolicy-pond", "1.2")
    assert not {"offpolicy_pond", "offpolicy_other"} & set(sys.modules)
    op.domain("pond")
    assert "offpolicy_pond" in sys.modules
    assert "offpolicy_other" not in sys.modules


def test_the_package_itself_imports_no_plugin(install, tmp_path):
    install("offpolicy-pond", f"open({str(tmp_path / 'imported')!r}, 'w')\n" + GOOD)
    environment = {"PYTHONPATH": str(tmp_path), "PATH": ""}
    process("demo", env=environment)
    assert not (tmp_path / "imported").exists()
    assert "pond" in process("plugins", env=environment).out
    assert (tmp_path / "imported").exists()


def test_an_entry_point_of_another_name_is_found_too(install):
    install("offpolicy-pond", GOOD, entries=["water"])
    assert op.domain("pond").name == "walk"


def test_a_package_may_have_several_entry_points_for_one_module(install):
    install("offpolicy-pond", GOOD, entries=["pond", "pond-fit"])
    assert op.fitter("pond-fit")
    assert op.domain("pond")
    assert listed("pond")["error"] is None


def test_a_plugin_is_loaded_once(install):
    install("offpolicy-pond", "import sys\nsys.pond = getattr(sys, 'pond', 0) + 1\n" + GOOD)
    registry = Registry()
    for _ in range(3):
        registry.load_all()
        registry.find("offpolicy_domains", "pond")
    assert sys.pond == 1
    del sys.pond


BROKEN = {
    "a missing module": ("import no_such_module_at_all", "ModuleNotFoundError: No module named"),
    "a syntax error": ("def broken(:", "SyntaxError"),
    "an exit": ("raise SystemExit(3)", "SystemExit: 3"),
    "an exit in a hook": (domains("exit(4)"), "SystemExit: 4"),
    "a base exception": ("class Panic(BaseException): pass\nraise Panic('core')", "Panic: core"),
    "a hook that raises": (domains("1 / 0"), "ZeroDivisionError: division by zero"),
    "a hook that returns a list": (
        domains("[Walk]"),
        "offpolicy_domains must return a mapping of names to makers, not list",
    ),
    "a name that is no text": (domains("{3: Walk}"), "must map names to makers, not 3 to"),
    "a maker that is none": (domains('{"pond": 3}'), "must map names to makers, not 'pond' to int"),
    "no hook": ("x = 1", "it has no hook: mark its functions with offpolicy.hookspecs.hookimpl"),
    "a misspelt hook": (
        HEAD + "\n@hookimpl\ndef offpolicy_domain():\n    return {}\n",
        "has no hook 'offpolicy_domain' and leaves it out; did you mean 'offpolicy_domains'?",
    ),
    "a hook with arguments": (
        HEAD + "\n@hookimpl\ndef offpolicy_domains(log):\n    return {}\n",
        "PluginValidationError",
    ),
}


def test_an_unknown_hook_is_told_and_the_rest_of_the_plugin_works(install):
    unknown = ("offpolicy_domain", "offpolicy_experiment")
    later = "".join(f"\n@hookimpl\ndef {hook}():\n    return {{}}\n" for hook in unknown)
    install("offpolicy-pond", GOOD + later)
    assert op.domain("pond", horizon=3).horizon == 3
    assert op.fitter("pond-fit")
    pond = listed("pond")
    assert pond["error"] is None
    assert pond["brings"]["domain"] == ["pond"]
    assert pond["warnings"] == [
        f"offpolicy {op.__version__} has no hook {hook!r} and leaves it out; did you mean '{hook}s'?"
        for hook in unknown
    ]
    assert "hook 'offpolicy_experiment'" in " ".join(offpolicy("plugins").out.split())
    with pytest.raises(op.PluginError, match=r"no domain 'lake'.*of plugin 'pond', offpolicy .* has no hook"):
        op.domain("lake")


NUMBERS = """
class Count(Walk):
    def __init__(self, depth: float = 2.0, size=3, label: "int | str" = 1):
        super().__init__()
        object.__setattr__(self, "depth", depth)
        if size != 3:
            raise ValueError(f"size must be 3, not {size!r}")

    def reset(self, n, rng):
        return super().reset(n, rng) + 0 * int(self.depth)

class Careless(Walk):
    def __init__(self, horizon=12):
        super().__init__(horizon=horizon)

@hookimpl
def offpolicy_domains():
    return {"count": Count, "careless": Careless, "pond": Pond}
"""


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("pond", "--set", "horizon=abc"), "horizon of domain 'pond' must be a number, such as its default 12, not"),
        (("count", "--set", "depth=abc"), "depth of domain 'count' must be a number, such as its default 2.0"),
        (("count", "--set", "size=abc"), "domain 'count' cannot be made with size='abc': ValueError: size must be 3"),
        (("careless", "--set", "horizon=abc"), "the horizon of the domain must be a whole number of at least 1"),
        (("count", "--set", "depth=nan"), "a simulation of domain 'walk' failed: ValueError: cannot convert float NaN"),
    ],
)
def test_a_value_of_set_that_a_domain_refuses_is_a_clear_error(install, tmp_path, options, says):
    install("offpolicy-pond", HEAD + NUMBERS)
    run = offpolicy("simulate", *options, "--episodes", "3", "--out", str(tmp_path / "log.parquet"))
    assert run.code in (1, 2)
    text = re.sub(r"\s+", " ", run.err)
    assert says in text
    assert "Traceback" not in text


def test_a_text_may_stand_where_the_annotation_allows_it(install):
    install("offpolicy-pond", HEAD + NUMBERS)
    assert op.domain("count", label="abc", depth=3)


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_plugin_is_listed_and_harms_nobody(case, install):
    source, says = BROKEN[case]
    install("offpolicy-broken", source)
    install("offpolicy-pond", GOOD)
    broken = listed("broken")
    assert says in broken["error"]
    assert broken["brings"] == {}
    assert listed("pond")["error"] is None
    assert op.domain("pond")
    with pytest.raises(op.PluginError, match="plugin 'broken' is broken"):
        op.domain("broken")


def test_an_interrupt_is_not_swallowed(install):
    install("offpolicy-slow", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        Registry().load_all()


def test_what_a_plugin_prints_is_no_part_of_the_document(install):
    install("offpolicy-pond", "print('hello')\n" + GOOD)
    assert listed("pond")["brings"]["domain"] == ["pond"]


def test_an_unknown_name_is_answered_by_a_near_one_or_all(install):
    install("offpolicy-pond", GOOD)
    with pytest.raises(op.PluginError, match="no domain 'pont'; did you mean 'pond'"):
        op.domain("pont")
    with pytest.raises(op.PluginError, match=r"no model fitter 'zzz'; there are .*pond-fit"):
        op.fitter("zzz")


def test_an_unknown_option_is_named(install):
    install("offpolicy-pond", GOOD)
    with pytest.raises(op.UsageError, match="domain 'pond' has no parameter 'depth'"):
        op.domain("pond", depth=3)


def test_a_maker_that_fails_or_makes_something_else_is_named(install):
    install("offpolicy-odd", domains('{"raises": lambda: 1 / 0, "number": lambda: 3}'))
    with pytest.raises(op.PluginError, match="domain 'raises' cannot be made: ZeroDivisionError: division by zero"):
        op.domain("raises")
    with pytest.raises(op.PluginError, match="domain 'number' is a int without reset and step"):
        op.domain("number")


def test_a_built_in_name_stays_ours_and_the_clash_is_told(install):
    install(
        "offpolicy-thief", HEAD + '\n@hookimpl\ndef offpolicy_candidate_policies():\n    return {"mixture": Propose}\n'
    )
    assert type(op.generator("mixture")).__name__ == "Mixtures"
    assert listed("thief")["warnings"] == [
        "generator 'mixture' is not used: plugin 'builtin' of offpolicy has that name first"
    ]
    assert listed("builtin")["warnings"] == []
    assert "is not used" in re.sub(r"\s+", " ", offpolicy("plugins").out)


def test_between_plugins_the_entry_point_of_that_name_comes_first(install):
    install("offpolicy-aaa", domains('{"pond": Walk, "aaa": Walk}'))
    install("offpolicy-pond", GOOD)
    assert listed("pond")["warnings"] == []
    assert listed("aaa")["warnings"] == [
        "domain 'pond' is not used: plugin 'pond' of offpolicy-pond has that name first"
    ]
    registry = Registry()
    (pond,) = (plugin for plugin in registry.load_all() if plugin.name == "pond")
    assert registry.find("offpolicy_domains", "pond") is pond.brings["offpolicy_domains"]["pond"]


def test_the_built_ins_come_through_the_same_hooks():
    ours = listed("builtin")
    assert (ours["package"], ours["version"], ours["error"]) == ("offpolicy", op.__version__, None)
    assert "mixture" in ours["brings"]["generator"]


def test_the_json_form(install):
    install("offpolicy-pond", GOOD)
    run = offpolicy("plugins", "--json")
    assert (run.code, run.err) == (0, "")
    assert json.loads(run.out) == run.document
    assert listed("pond") == {
        "name": "pond",
        "package": "offpolicy-pond",
        "version": "1.2",
        "brings": {
            "domain": ["pond"],
            "model fitter": ["pond-fit"],
            "generator": ["pond-propose"],
            "experiment": ["pond-waves"],
            "estimator": ["pond-ripples"],
            "interval": ["pond-wide"],
        },
        "error": None,
        "warnings": [],
    }


def test_the_table_names_what_is_installed_and_what_is_broken(install):
    install("offpolicy-pond", GOOD)
    install("offpolicy-broken", "1 / 0")
    run = offpolicy("plugins")
    assert run.code == 0
    assert "domain pond" in run.out
    assert "ZeroDivisionError" in run.out
