"""matplotlib charts as inline SVG that follows the light and dark style of the page, with data for the script.

Colours of the charts are replaced by variables of the style sheet, and fonts by those of the page. Titles and legends
become HTML, which wraps on narrow screens. Values under the pointer are shown by the script from the data of the lines.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree as ET

import numpy as np

from scboost._arrays import FloatArray
from scboost.diagnostics._plots import binned_correlations, plot_correlation
from scboost.diagnostics._redundancy import RedundancyReport

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.axes import Axes

_WIDTH, _HEIGHT = 440, 290
# Colours that charts are drawn in, and the variables of the style sheet that replace them.
_CYCLE = {"#0072b2": "--first", "#c4501b": "--second", "#7b3294": "--third", "#117733": "--fourth"}
_VARIABLES = {
    **_CYCLE,
    "#595959": "--muted",  # 0.35
    "#cccccc": "--repeated",  # 0.8
    "#808080": "--undefined",  # 0.5
    "#000000": "--ink",
}
_SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "scboost",  # the same ids in every run
    "text.parse_math": False,  # names of models may contain $
    "font.size": 13,
    "font.family": "DejaVu Sans",
    "axes.labelsize": 13,
    "lines.linewidth": 2.2,
    "axes.linewidth": 0.8,
}
_XLINK = "{http://www.w3.org/1999/xlink}"


class LegendEntry(NamedTuple):
    """A line of the legend: name, colour of the style sheet, and whether the line is dashed."""

    name: str
    color: str
    dashed: bool


@dataclass(frozen=True)
class Chart:
    """A chart of the report.

    Attributes
    ----------
    title : str
    svg : Markup
        The SVG element.
    legend : list of LegendEntry
    hover : dict
        Data of the lines or cells, for the values under the pointer.
    """

    title: str
    svg: Markup
    legend: list[LegendEntry]
    hover: dict[str, Any]


def line_chart(draw: Callable[[Axes], object], *, percent: bool = False) -> Chart:
    """Return the chart of a function that draws lines.

    Parameters
    ----------
    draw : callable
        Draws on the axes given; labelled lines and stairs show their values under the pointer.
    percent : bool, default=False
        Whether values are shown as percentages.

    Returns
    -------
    Chart
    """

    def hover(ax: Axes) -> dict[str, Any]:
        lines = [
            (line.get_label(), np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float))
            for line in ax.lines
            if not str(line.get_label()).startswith("_") and not _is_horizontal(line, ax)
        ]
        if not lines:
            area: Any = ax.patches[0]
            values, edges, _ = area.get_data()
            lines = [(area.get_label(), (edges[1:] + edges[:-1]) / 2, values)]
        return {
            "label": ax.get_xlabel(),
            "percent": percent,
            "lines": [{"name": name, "x": _plain(x), "at": positions(ax, x), "y": _plain(y)} for name, x, y in lines],
        }

    return _chart(draw, hover)


def _is_horizontal(line: Any, ax: Axes) -> bool:
    """Return whether a line was made by ``axhline``: its x are shares of the axes."""
    return bool(line.get_transform() == ax.get_yaxis_transform(which="grid"))


def correlation_chart(report: RedundancyReport) -> Chart:
    """Return the heat map of the correlations between trees."""
    values, edges = binned_correlations(report)

    def hover(ax: Axes) -> dict[str, Any]:
        box = ax.transData.transform([(0.5, 0.5), (report.n_trees + 0.5, report.n_trees + 0.5)])
        (left, top), (right, bottom) = box
        return {
            "map": [[None if np.isnan(v) else round(100 * float(v)) for v in row] for row in values],
            "box": [round(float(v), 1) for v in (left, _HEIGHT - top, right - left, top - bottom)],
            "edges": edges.tolist(),
        }

    chart = _chart(lambda ax: plot_correlation(report, ax=ax), hover)
    if np.isnan(values).any():
        chart.legend.append(LegendEntry("constant trees", "var(--undefined)", dashed=False))
    return chart


def positions(ax: Axes, x: FloatArray) -> list[float]:
    """Return the horizontal positions of values in the SVG."""
    points = np.column_stack([np.asarray(x, float), np.full(len(x), ax.get_ylim()[0])])
    return [round(float(at), 1) for at in ax.transData.transform(points)[:, 0]]


def _chart(draw: Callable[[Axes], object], hover: Callable[[Axes], dict[str, Any]]) -> Chart:
    import matplotlib as mpl
    from cycler import cycler
    from markupsafe import Markup
    from matplotlib.figure import Figure

    with mpl.rc_context({**_SETTINGS, "axes.prop_cycle": cycler(color=list(_CYCLE))}):
        figure = Figure(figsize=(_WIDTH / 72, _HEIGHT / 72), dpi=72, layout="constrained")
        ax = figure.subplots()
        draw(ax)
        title = ax.get_title()
        ax.set_title("")
        legend = _take_legend(ax)
        for artist in figure.findobj():
            artist.set_clip_on(False)  # no clip paths, whose ids would have to be unique on the page
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
        top, bottom = (_HEIGHT - float(y) for y in ax.bbox.get_points()[::-1, 1])
        svg = _themed(buffer.getvalue(), title, (top, bottom))
        return Chart(title, Markup(svg), legend, hover(ax))  # noqa: S704 - serialized by ElementTree


def _take_legend(ax: Axes) -> list[LegendEntry]:
    """Remove the legend from the axes and return its entries; none for a single line."""
    from matplotlib.colors import to_hex

    legend = ax.get_legend()
    if legend is not None:
        legend.remove()
    entries = []
    handle: Any
    for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
        is_line = hasattr(handle, "get_linestyle") and hasattr(handle, "get_color")
        color = to_hex(handle.get_color() if is_line else handle.get_facecolor())
        entries.append(LegendEntry(str(label), _variable(color), dashed=is_line and handle.get_linestyle() != "-"))
    return entries if len(entries) > 1 else []


def _variable(color: str) -> str:
    name = _VARIABLES.get(color.lower())
    return color if name is None else f"var({name})"


def _themed(svg: str, title: str, box: tuple[float, float]) -> str:
    """Return an SVG of matplotlib as an element of the page: without ids and fonts, in the colours of its style."""
    root = ET.fromstring(svg)  # noqa: S314 - made by matplotlib in this process
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        attributes = {name.replace(_XLINK, "xlink:"): value for name, value in element.attrib.items()}
        if element.tag == "g":
            attributes.pop("id", None)
        if "style" in attributes:
            attributes["style"] = _themed_style(attributes["style"])
        element.attrib.clear()
        element.attrib.update({name: value for name, value in attributes.items() if value})
    for child in [child for child in root if child.tag == "metadata"]:
        root.remove(child)
    for definitions in root.iter("defs"):
        for style in definitions.findall("style"):
            definitions.remove(style)
    root.attrib.clear()
    root.attrib.update({"viewBox": f"0 0 {_WIDTH} {_HEIGHT}", "role": "img", "aria-label": title})
    ET.SubElement(root, "line", {"class": "cursor", "y1": f"{box[0]:.1f}", "y2": f"{box[1]:.1f}"})
    return ET.tostring(root, encoding="unicode")


def _themed_style(style: str) -> str:
    """Replace colours by variables and leave fonts to the style sheet."""
    parts = [part.strip() for part in style.split(";")]
    kept = [part for part in parts if part and not part.startswith("font")]
    return re.sub(r"#[0-9a-fA-F]{6}\b", lambda match: _variable(match[0]), "; ".join(kept))


def _plain(values: FloatArray, digits: int = 5) -> list[float | None]:
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in np.asarray(values, float)]
