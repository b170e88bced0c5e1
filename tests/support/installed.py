"""Studies as a plugin brings them, in the place of those that are installed."""

from types import ModuleType

from offpolicy.extensions import plugins
from offpolicy.hookspecs import hookimpl

HOOK = "offpolicy_experiments"


def install_studies(monkeypatch, studies, without=None):
    """Let these be the only studies, by name, as if a package were not installed; domains stay as they are."""
    module = ModuleType("tested")
    makers = {name: lambda study=study: study for name, study in studies.items()}
    setattr(module, HOOK, hookimpl(lambda: makers, specname=HOOK))
    registry = plugins.Registry()
    registry.plugins = [plugin for plugin in registry.plugins if plugin.package != without]
    for plugin in registry.load_all():
        plugin.brings.pop(HOOK, None)
    registry.plugins.append(plugins.Plugin("tested", "offpolicy-tested", "1", module=module))
    monkeypatch.setattr(plugins, "_registry", registry)
