"""The options that commands share, and how their values are read."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, cast

import click

from offpolicy.cli import complete
from offpolicy.drivers.arguments import COUNTS
from offpolicy.errors import UsageError
from offpolicy.errors.hints import hint, suggestion
from offpolicy.evaluation.bounds import Bounds
from offpolicy.evaluation.estimators import named, usual
from offpolicy.evaluation.plan import TRUNCATIONS
from offpolicy.intervals import CHOICES, method_of
from offpolicy.logs.columns import Columns, PolicyColumns

Command = TypeVar("Command", bound=Callable[..., Any])

ROLES = tuple(field.name for field in dataclasses.fields(Columns))
POLICY_ROLES = ("target_prob", "ratio", "q_hat", "v_hat", "r_hat", "transition_ratio")
POLICY_ROLE = re.compile(rf"(?:^|,)({'|'.join(POLICY_ROLES)})=")
#: A word in the place of a role, which may be a misspelt one.
NEARLY_A_ROLE = re.compile(r"(?:^|,)\s*(\w+)=")
MIXTURE = "mix:"


def log_options(command: Command) -> Command:
    """Add the options of commands that read a log with the columns of its policies."""
    return with_options(
        command,
        log_argument,
        column_option,
        click.option(
            "--policy",
            "policies",
            multiple=True,
            metavar="NAME=COLUMN",
            callback=read_policies,
            help="A target policy and its target_prob column; may be repeated. More columns follow after "
            "commas: new=p_new,q_hat=q_new,v_hat=v_new. "
            "NAME=mix:BASE:ALPHA is (1-ALPHA)·BASE + ALPHA·behaviour.",
        ),
        click.option("--horizon", type=click.IntRange(min=1), help="H; by default the longest episode."),
        click.option("--density", is_flag=True, help="Probabilities are densities, which may exceed 1."),
        threads_option,
        json_option,
    )


def driver_options(command: Command) -> Command:
    """Add the options of commands that fit models to a log: its domain, the fitter, and how the log is read."""
    return with_options(
        command,
        log_argument,
        column_option,
        click.option(
            "--domain",
            required=True,
            metavar="NAME",
            shell_complete=complete.domains,
            help="What made the log; see `offpolicy plugins`.",
        ),
        parameters_option("--set", "parameters", "the domain"),
        click.option(
            "--fitter",
            default="tabular",
            show_default=True,
            metavar="NAME",
            shell_complete=complete.fitters,
            help="What fits the model.",
        ),
        parameters_option("--fitter-set", "fitter_parameters", "the fitter"),
        click.option(
            "--behavior", type=click.Choice([COUNTS]), help="Estimate the behaviour probabilities, by counts."
        ),
        click.option("--smoothing", type=float, default=1.0, show_default=True, help="What is added to each count."),
        click.option(
            "--transition-ratio/--no-transition-ratio",
            default=True,
            help="Whether dr-v2 gets P̂/P where domain and model know them; 1 otherwise.",
        ),
        click.option("--discount", type=float, help="γ; by default the domain's."),
        click.option("--horizon", type=click.IntRange(min=1), help="H; by default the domain's."),
        order_option,
        truncation_option,
        threads_option,
        json_option,
    )


def estimate_options(command: Command) -> Command:
    """Add the options that say what is estimated, and how the intervals are made."""
    ids = f"May be repeated, or a list with commas; by default all that the columns allow of {', '.join(usual())}."
    if others := named(lambda about: about.only_when_asked):
        ids += f" By name alone: {', '.join(others)}."
    return with_options(
        command,
        click.option(
            "--estimator",
            "estimators",
            multiple=True,
            metavar="ID",
            callback=read_ids,
            shell_complete=complete.estimators,
            help=ids,
        ),
        click.option("--baseline", type=float, help="The constant of dr-bsl."),
        click.option(
            "--cluster", metavar="COLUMN", help="Episodes with the same value there, such as a user, may be dependent."
        ),
        click.option("--confidence", type=float, default=0.95, show_default=True, help="Level of the intervals."),
        click.option(
            "--interval",
            callback=read_interval,
            shell_complete=complete.intervals,
            default="t",
            show_default=True,
            metavar="METHOD",
            help=f"One of {', '.join(CHOICES)}, or of a plugin.",
        ),
        bounds_options,
        click.option("--continuing", is_flag=True, help="The task goes on after H: bound what follows too."),
    )


def bounds_options(command: Command) -> Command:
    """Add the options of known bounds, which some intervals need; the command gets them as `bounds`."""
    ends: dict[str, Any] = {"metavar": "LOWEST,HIGHEST", "callback": read_range}
    names = ("reward_range", "ratio_bound", "q_range", "fixed_length")

    @functools.wraps(command)
    def with_bounds(**given: Any) -> Any:
        return command(bounds=make_bounds(*(given.pop(name) for name in names)), **given)

    return with_options(
        cast(Command, with_bounds),
        click.option("--reward-range", **ends, help="Bounds of a reward, for intervals of finite samples."),
        click.option("--ratio-bound", type=float, help="Largest possible π1/π0, where they need it."),
        click.option("--q-range", **ends, help="Bounds of q_hat and v_hat, for them with dr."),
        click.option("--fixed-length", is_flag=True, help="Every episode has H steps, which narrows them."),
    )


def parameters_option(flag: str, name: str, whose: str) -> Callable[[Command], Command]:
    """Return an option such as `--set NAME=VALUE`."""
    text = f"A parameter of {whose}; may be repeated."
    return click.option(flag, name, multiple=True, metavar="NAME=VALUE", callback=read_parameters, help=text)


def with_options(command: Command, *options: Callable[[Command], Command]) -> Command:
    """Return the command with these options, in their order."""
    for option in reversed(options):
        command = option(command)
    return command


def log_argument(command: Command) -> Command:
    """Add the argument `LOG...`."""
    return click.argument("log", nargs=-1, required=True, metavar="LOG...", shell_complete=complete.files)(command)


def column_option(command: Command) -> Command:
    """Add the option `--column`."""
    text = f"Name of a column; may be repeated. Roles: {', '.join(ROLES)}. terminal= leaves it unread."
    option = click.option("--column", "columns", multiple=True, metavar="ROLE=NAME", callback=read_columns, help=text)
    return option(command)


def order_option(command: Command) -> Command:
    """Add the option `--order`."""
    choice = click.Choice(["sorted", "any"])
    return click.option("--order", type=choice, default="sorted", help="any: sort the log first.")(command)


def dedupe_option(command: Command) -> Command:
    """Add the option `--dedupe`."""
    text = "Sort the log first, and drop rows that are there twice."
    return click.option("--dedupe", type=click.Choice(["identical"]), help=text)(command)


def truncation_option(command: Command) -> Command:
    """Add the option `--truncation`."""
    text = "Take episodes that were cut off as ended, add what the model expects, or evaluate the steps that all have."
    return click.option("--truncation", type=click.Choice(TRUNCATIONS), help=text)(command)


def threads_option(command: Command) -> Command:
    """Add the option `--threads`."""
    return click.option("--threads", type=click.IntRange(min=1), help="By default all cores.")(command)


def memory_option(command: Command) -> Command:
    """Add the option `--memory`."""
    text = "Bytes that may be taken, such as 2GB; by default half of what is available."
    return click.option("--memory", metavar="SIZE", help=text)(command)


def json_option(command: Command) -> Command:
    """Add the option `--json`."""
    text = "Print one JSON document and nothing else."
    return click.option("--json", "as_json", is_flag=True, help=text)(command)


def read_columns(_context: click.Context, _option: click.Parameter, pairs: Sequence[str]) -> Columns:
    """Read options such as `--column reward=gain`; `terminal=` leaves the column `terminal` unread."""
    names: dict[str, Any] = {}
    for role, name in _pairs(pairs, "ROLE=NAME", without=("terminal", "truncated")):
        if role not in ROLES:
            raise click.BadParameter(f"no role {role!r}{hint(role, ROLES)}")
        if role in names:
            raise click.BadParameter(f"{role} is named twice")
        names[role] = tuple(name.split(",")) if role == "state" else name or None
    return Columns(**names)


def read_policies(
    _context: click.Context, _option: click.Parameter, pairs: Sequence[str]
) -> dict[str, PolicyColumns] | None:
    """Read options such as `--policy new=p_new`; return None if there is none."""
    policies: dict[str, PolicyColumns] = {}
    for name, text in _pairs(pairs, "NAME=COLUMN"):
        if name in policies:
            raise click.BadParameter(f"policy {name!r} is there twice")
        policies[name] = read_policy(text)
    return policies or None


def read_ids(_context: click.Context, _option: click.Parameter, texts: Sequence[str]) -> tuple[str, ...]:
    """Read options such as `--estimator dr --estimator step-is` or `--estimator dr,step-is`."""
    return tuple(part.strip() for text in texts for part in text.split(",") if part.strip())


def read_interval(_context: click.Context, _option: click.Parameter, name: str | None) -> str | None:
    """Return the name of a confidence interval, if we or a plugin have it."""
    if name is not None and name not in CHOICES:
        try:
            method_of(name)
        except UsageError as error:
            raise click.BadParameter(error.in_words("cli")) from None
    return name


def read_names(_context: click.Context, _option: click.Parameter, names: Sequence[str]) -> Sequence[str]:
    """Read options such as `--policy careful`, and refuse a policy that is named twice."""
    for name in names:
        if names.count(name) > 1:
            raise click.BadParameter(f"policy {name!r} is there twice")
    return names


def read_policy(text: str) -> PolicyColumns:
    """Return the columns of one policy.

    >>> read_policy("p,q_hat=q").q_hat, read_policy("mix:new:0.5").alpha, read_policy("ratio=w").ratio
    ('q', 0.5, 'w')
    """
    for role in NEARLY_A_ROLE.findall(text):
        if role not in POLICY_ROLES and (close := suggestion(role, POLICY_ROLES)):
            raise click.BadParameter(f"a policy has no column {role!r} in {text!r}{close}")
    head, *rest = POLICY_ROLE.split(text)
    chosen: dict[str, Any] = {}
    if head.startswith(MIXTURE):
        base, alpha = read_mixture(head)
        chosen = {"mixture_of": base, "alpha": alpha}
    elif head:
        chosen["target_prob"] = head
    for role, name in zip(rest[::2], rest[1::2], strict=True):
        if role in chosen or not name:
            raise click.BadParameter(f"{role} needs one column in {text!r}")
        chosen[role] = name
    return PolicyColumns(**chosen)


def read_mixture(text: str) -> tuple[str, float | None]:
    """Return a name and an α, which is None without `mix:`.

    >>> read_mixture("mix:new:0.5"), read_mixture("new")
    (('new', 0.5), ('new', None))
    """
    if not text.startswith(MIXTURE):
        return text, None
    base, _, alpha = text.removeprefix(MIXTURE).rpartition(":")
    try:
        return base, float(alpha)
    except ValueError:
        raise click.BadParameter(f"a mixture is mix:BASE:ALPHA, not {text!r}") from None


def read_parameters(_context: click.Context, _option: click.Parameter, pairs: Sequence[str]) -> dict[str, Any]:
    """Read options such as `--set horizon=50`."""
    found: dict[str, Any] = {}
    for name, text in _pairs(pairs, "NAME=VALUE"):
        name = name.replace("-", "_")
        if name in found:
            raise click.BadParameter(f"{name} is set twice")
        found[name] = literal(text)
    return found


def literal(text: str) -> bool | int | float | str:
    """Return a text as the value that it looks like: true or false, a number, or the text itself.

    >>> literal("4"), literal("1e-3"), literal("true"), literal("valley")
    (4, 0.001, True, 'valley')
    """
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def read_range(_context: click.Context, _option: click.Parameter, text: str | None) -> tuple[float, float] | None:
    """Read an option such as `--reward-range 0,1`."""
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(f"a range is LOWEST,HIGHEST, not {text!r}") from None
    return low, high


def make_bounds(
    reward: tuple[float, float] | None,
    ratio: float | None,
    q: tuple[float, float] | None,
    fixed_length: bool,
) -> Bounds | None:
    """Return the bounds, or None if none were given."""
    if reward is not None:
        return Bounds(reward=reward, ratio=ratio, q=q, fixed_length=fixed_length)
    if fixed_length or any(bound is not None for bound in (ratio, q)):
        raise click.UsageError("bounds need --reward-range too")
    return None


def _pairs(texts: Sequence[str], form: str, without: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield the two sides of each text; the right one may be empty if the left is one of `without`."""
    for text in texts:
        left, equals, right = text.partition("=")
        if not (left and equals and (right or left in without)):
            raise click.BadParameter(f"expected {form}, not {text!r}")
        yield left, right
