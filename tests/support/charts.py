"""What an Altair chart draws, by its Vega-Lite dictionary."""

from __future__ import annotations

from typing import Any


class Drawn:
    """The rows behind a chart, its panels, and its layers by the name of their mark."""

    def __init__(self, chart: Any) -> None:
        self.spec = chart.to_dict()
        self.facet = self.spec.get("facet")
        inner = self.spec["spec"] if self.facet else self.spec
        self.layers = {layer["mark"]["type"]: layer["encoding"] for layer in inner["layer"]}
        (self.rows,) = self.spec["datasets"].values()

    def fields(self, mark: str, *channels: str) -> list[str]:
        """The columns behind the channels of a mark."""
        return [self.layers[mark][channel]["field"] for channel in channels]

    def panels(self) -> list[Any]:
        """What each panel shows."""
        return sorted({row[self.facet["field"]] for row in self.rows})

    def legend(self, mark: str, channel: str) -> list[str]:
        """The names in a legend, in their order; none if it was turned off."""
        encoding = self.layers[mark][channel]
        return [] if encoding.get("legend", "") is None else encoding["scale"]["domain"]
