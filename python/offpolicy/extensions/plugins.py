"""The registry of plugins, which finds packages without importing them and loads one when it is needed.

A package announces itself by an entry point of the group `offpolicy` whose value is a module with hook functions. To
find an object by name, an entry point of the same name (`sailing`) is loaded first, and others only if it does not have
the object. An error in one plugin does not affect the others.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import pluggy

from offpolicy import _core, hookspecs, intervals
from offpolicy._util.installed import Installed
from offpolicy._util.scalars import text
from offpolicy.errors import OffPolicyError
from offpolicy.errors.hints import suggestion
from offpolicy.errors.kinds.of_arguments import unknown_name
from offpolicy.errors.kinds.of_plugins import (
    incomplete_plugin,
    maker_failed,
    no_hook,
    number_expected,
    refused_by_maker,
    unknown_plugin,
    wrong_answer_of_hook,
)
from offpolicy.evaluation import from_plugins
from offpolicy.evaluation.estimators import ESTIMATORS
from offpolicy.evaluation.from_plugins import FromPlugin
from offpolicy.experiments.experiment import Study
from offpolicy.protocols import Domain, Generator, ModelFitter

#: The built-in objects of `offpolicy` are a plugin too, with this name.
BUILTIN = "builtin"
OURS = EntryPoint(BUILTIN, "offpolicy.extensions.builtin", hookspecs.GROUP)
#: The name of what each hook offers, for messages.
KINDS = {
    "offpolicy_domains": "domain",
    "offpolicy_model_fitters": "model fitter",
    "offpolicy_candidate_policies": "generator",
    "offpolicy_experiments": "experiment",
    "offpolicy_estimators": "estimator",
    "offpolicy_intervals": "interval",
}
#: The members that an object must have before it is returned; `offpolicy.testing` checks the rest.
MEMBERS = {
    "offpolicy_domains": ("reset", "step"),
    "offpolicy_model_fitters": ("fit",),
    "offpolicy_candidate_policies": ("candidates",),
    "offpolicy_experiments": ("make", "read", "draw"),
    "offpolicy_estimators": ("values",),
    "offpolicy_intervals": ("ends",),
}
#: Names that are ours, which no plugin can bring.
OWN: dict[str, Sequence[str]] = {"offpolicy_estimators": ESTIMATORS, "offpolicy_intervals": intervals.CHOICES}


@dataclass
class Plugin:
    """A package that was found; loading it fills `brings` or sets `error`."""

    name: str
    package: str
    version: str
    entry: EntryPoint | None = None
    module: Any = None
    brings: dict[str, dict[str, Callable[..., Any]]] = field(default_factory=dict)  # hook -> name -> maker
    error: str | None = None
    warnings: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)  # hooks that this version does not have

    @property
    def loaded(self) -> bool:
        """Whether loading was tried."""
        return bool(self.brings) or self.error is not None

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `offpolicy plugins --json` prints."""
        brings = {KINDS[hook]: sorted(makers) for hook, makers in self.brings.items()}
        return {
            "name": self.name,
            "package": self.package,
            "version": self.version,
            "brings": {kind: names for kind, names in brings.items() if names},
            "error": self.error,
            "warnings": self.warnings,
        }


class Registry:
    """All plugins of this environment."""

    def __init__(self) -> None:
        """Find entry points without importing them."""
        self.made: dict[tuple[str, str], Any] = {}
        self.plugins = [Plugin(BUILTIN, "offpolicy", _core.__version__, OURS)]
        for entry in sorted(entry_points(group=hookspecs.GROUP)):
            package = (entry.dist and entry.dist.name) or entry.value
            self.plugins.append(Plugin(entry.name, package, (entry.dist and entry.dist.version) or "", entry))

    def load(self, plugin: Plugin) -> Plugin:
        """Import a plugin and call its hooks once; an exception is kept as its `error`."""
        if plugin.loaded:
            return plugin
        try:
            with redirect_stdout(sys.stderr):  # stdout may be a JSON document
                if plugin.entry is not None:
                    plugin.module = plugin.entry.load()
                plugin.brings, plugin.unknown = _ask(plugin.module)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # includes SystemExit and panics of extensions
            plugin.error = f"{type(error).__name__}: {error}"
        return plugin

    def load_all(self) -> list[Plugin]:
        """Load every plugin; return them with their errors, and with warnings for names that an earlier plugin has."""
        for plugin in self.plugins:
            self.load(plugin)
        for plugin in self.plugins:
            plugin.warnings = [_not_known(hook) for hook in plugin.unknown] + [
                f"{KINDS[hook]} {name!r} is not used: plugin {first.name!r} of {first.package} has that name first"
                for hook, makers in plugin.brings.items()
                for name in sorted(makers)
                if (first := self._owner(hook, name)) and first is not plugin
            ]
            plugin.warnings += [
                f"{KINDS[hook]} {name!r} is not used: offpolicy itself has that name"
                for hook, names in OWN.items()
                for name in plugin.brings.get(hook, {})
                if name in names
            ]
        return self.plugins

    def find(self, hook: str, name: str) -> Callable[..., Any]:
        """Return the maker of that name."""
        text(f"the name of a {KINDS[hook]}", name)
        owner = self._owner(hook, name)
        if owner is not None:
            return owner.brings[hook][name]
        known = sorted(self.names(hook))
        hint = suggestion(name, known) or (f"; there are {', '.join(known)}" if known else "; none is installed")
        raise unknown_plugin(what=KINDS[hook], name=repr(name), hint=f"{hint}{self.broken()}")

    def broken(self) -> str:
        """Say which plugins cannot be asked, or not for all that they have, to be put after what was said."""
        broken = [f"; plugin {p.name!r} is broken ({p.error})" for p in self.plugins if p.error]
        strange = [f"; of plugin {p.name!r}, {_not_known(each)}" for p in self.plugins for each in p.unknown]
        return "".join(broken + strange)

    def once(self, hook: str, name: str, wrap: Callable[[str, str, Any], Any]) -> Any:
        """Return what a plugin brings by this name, made and wrapped once; None where no plugin brings it."""
        if (hook, name) not in self.made:
            owner = self._owner(hook, name) if isinstance(name, str) else None
            if owner is None:
                return None
            self.made[hook, name] = wrap(name, owner.name, _make(hook, name, {}))
        return self.made[hook, name]

    def names(self, hook: str) -> list[str]:
        """Return the names that plugins offer through a hook, each once, in the order of the plugins."""
        return list(dict.fromkeys(name for plugin in self.plugins for name in self.load(plugin).brings.get(hook, {})))

    def _owner(self, hook: str, name: str) -> Plugin | None:
        """Return the first plugin that has the name: the built-in one, an entry point of that name, or another."""
        for plugin in sorted(self.plugins, key=lambda plugin: (plugin.name != BUILTIN, plugin.name != name)):
            if name in self.load(plugin).brings.get(hook, {}):
                return plugin
        return None


def _not_known(hook: str) -> str:
    return f"offpolicy {_core.__version__} has no hook {hook!r} and leaves it out{suggestion(hook, KINDS)}"


def _ask(module: Any) -> tuple[dict[str, dict[str, Callable[..., Any]]], list[str]]:
    """Return the makers that a module's hooks offer, and its hooks that this version does not have."""
    manager = pluggy.PluginManager(hookspecs.GROUP)
    manager.add_hookspecs(hookspecs)
    manager.register(module)
    callers = manager.get_hookcallers(module) or []
    if not callers:
        raise no_hook(why="it has no hook: mark its functions with offpolicy.hookspecs.hookimpl")
    unknown = sorted(caller.name for caller in callers if not caller.has_spec())
    if len(unknown) == len(callers):  # no known hook is left
        raise no_hook(why="; ".join(_not_known(hook) for hook in unknown))
    return {hook: _makers(hook, getattr(manager.hook, hook)()) for hook in KINDS}, unknown


def _makers(hook: str, answers: Iterable[Any]) -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {}
    for answer in answers:
        if not isinstance(answer, Mapping):
            raise wrong_answer_of_hook(
                hook=hook, expected="return a mapping of names to makers", found=type(answer).__name__
            )
        for name, maker in answer.items():
            if not isinstance(name, str) or not callable(maker):
                raise wrong_answer_of_hook(
                    hook=hook, expected="map names to makers", found=f"{name!r} to {type(maker).__name__}"
                )
            found[name] = maker
    return found


_registry: Registry | None = None


def registry() -> Registry:
    """Return the plugins of this environment, which are searched only once."""
    global _registry
    if _registry is None:
        _registry = Registry()
    return _registry


def _check_parameters(maker: Callable[..., Any], what: str, options: Mapping[str, Any]) -> None:
    known = inspect.signature(maker).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
        return
    for option in options:
        if option not in known:
            hint = suggestion(option, known) or (f"; there are {', '.join(known)}" if known else "")
            raise unknown_name(lack=f"{what} has no parameter", name=repr(option), hint=hint)


def _refuse_texts(maker: Callable[..., Any], what: str, options: Mapping[str, Any]) -> None:
    """Raise an error for a text in place of a number, if the maker's own error did not say so."""
    known = inspect.signature(maker).parameters
    for option, given in options.items():
        if option in known and _is_no_number(known[option], given):
            default = known[option].default
            raise number_expected(option=option, what=what, default=repr(default), found=repr(given))


def _is_no_number(parameter: inspect.Parameter, given: Any) -> bool:
    """Return whether a text was given for a parameter that, by its default and annotation, is a number."""
    annotation = parameter.annotation
    said = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    number = isinstance(parameter.default, int | float) and not isinstance(parameter.default, bool)
    return isinstance(given, str) and number and said in ("int", "float", "int | float", "float | int")


def _make(hook: str, name: str, options: Mapping[str, Any]) -> Any:
    maker = registry().find(hook, name)
    _check_parameters(maker, f"{KINDS[hook]} {name!r}", options)
    try:
        inspect.signature(maker).bind(**options)
    except TypeError as error:
        raise refused_by_maker(what=KINDS[hook], name=repr(name), error=error) from None
    try:
        made = maker(**options)
    except OffPolicyError:
        raise
    except Exception as error:
        _refuse_texts(maker, f"{KINDS[hook]} {name!r}", options)
        given = ", ".join(f"{option}={value!r}" for option, value in options.items())
        what = f"{KINDS[hook]} {name!r} cannot be made{' with ' if given else ''}{given}"
        raise maker_failed(what=what, type=type(error).__name__, error=error) from error
    _refuse_texts(maker, f"{KINDS[hook]} {name!r}", options)
    missing = [member for member in MEMBERS[hook] if not callable(getattr(made, member, None))]
    if missing:
        raise incomplete_plugin(
            what=KINDS[hook], name=repr(name), found=type(made).__name__, missing=" and ".join(missing)
        )
    return made


def domain(name: str, **options: Any) -> Domain:
    """Make the domain of that name, from any installed package.

    >>> import offpolicy as op
    >>> op.domain("no-such-domain")
    Traceback (most recent call last):
        ...
    offpolicy.errors.PluginError: no domain 'no-such-domain'; ...
    """
    made: Domain = _make("offpolicy_domains", name, options)
    return made


def fitter(name: str, **options: Any) -> ModelFitter:
    """Make the model fitter of that name.

    >>> import offpolicy as op
    >>> op.fitter("no-such-fitter")
    Traceback (most recent call last):
        ...
    offpolicy.errors.PluginError: no model fitter 'no-such-fitter'; ...
    """
    made: ModelFitter = _make("offpolicy_model_fitters", name, options)
    return made


def generator(name: str, **options: Any) -> Generator:
    """Make the generator of candidate policies of that name.

    >>> import offpolicy as op
    >>> op.generator("no-such-generator")
    Traceback (most recent call last):
        ...
    offpolicy.errors.PluginError: no generator 'no-such-generator'; ...
    """
    made: Generator = _make("offpolicy_candidate_policies", name, options)
    return made


def study(name: str) -> Study:
    """Return the study of that name."""
    made: Study = _make("offpolicy_experiments", name, {})
    return made


def _estimator(name: str) -> FromPlugin | None:
    found: FromPlugin | None = registry().once("offpolicy_estimators", name, FromPlugin)
    return found


def _method(name: str) -> intervals.Method | None:
    found: intervals.Method | None = registry().once("offpolicy_intervals", name, intervals.of_plugin)
    return found


def _connect(place: Installed[Any], hook: str, find: Callable[[str], Any]) -> None:
    """Let a room that plugins import ask for what they bring."""
    place.find = find
    place.names = lambda: [name for name in registry().names(hook) if name not in OWN[hook]]
    place.broken = lambda: registry().broken()


_connect(from_plugins.INSTALLED, "offpolicy_estimators", _estimator)
_connect(intervals.INSTALLED, "offpolicy_intervals", _method)
