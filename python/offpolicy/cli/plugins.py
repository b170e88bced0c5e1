"""`offpolicy plugins`."""

from __future__ import annotations

import click

from offpolicy.cli.options import json_option
from offpolicy.cli.output import one_document
from offpolicy.extensions.plugins import registry


@click.command()
@json_option
def plugins(as_json: bool) -> int:
    """List the installed plugins, what each brings, and what is wrong with a broken one."""
    found = [plugin.to_dict() for plugin in registry().load_all()]
    if as_json:
        click.echo(one_document({"plugins": found}))
    else:
        from offpolicy.cli import show

        show.plugins(found)
    return 0
