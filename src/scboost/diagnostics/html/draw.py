"""Small charts as SVG text. Colours are classes of the page's style sheet, so that they follow its light and dark."""

from __future__ import annotations

import base64
import json
import math
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray

WIDTH, HEIGHT = 440, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 22, 12, 46
_MAX_CELLS = 100
# Blue to white to red, from the colour-blind safe scheme RdBu of ColorBrewer.
_DIVERGING = ((33, 102, 172), (146, 197, 222), (247, 247, 247), (244, 165, 130), (178, 24, 43))
_UNDEFINED = (128, 128, 128)


@dataclass(frozen=True)
class Line:
    """A line of a chart.

    Attributes
    ----------
    name : str
        For the legend and what is shown under the pointer.
    x, y : ndarray of shape (p,)
        Points; those that are not finite are left out.
    style : str
        Class of the style sheet: "first", "second" or "quiet".
    points : bool
        Whether to mark the points.
    """

    name: str
    x: FloatArray
    y: FloatArray
    style: str
    points: bool = False


@dataclass(frozen=True)
class Axis:
    """One axis: what it shows, from where to where."""

    label: str
    low: float
    high: float
    log: bool = False
    percent: bool = False

    def place(self, value: float) -> float:
        """Return where a value is, from 0 to 1."""
        if self.log:
            value, low, high = math.log10(value), math.log10(self.low), math.log10(self.high)
        else:
            low, high = self.low, self.high
        return (value - low) / (high - low) if high > low else 0.5

    def ticks(self) -> list[float]:
        """Return round values, about five."""
        if self.log:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            steps = (1, 2, 5) if len(decades) <= 4 else (1,)
            return [m * 10.0**e for e in decades for m in steps if self.low <= m * 10.0**e <= self.high]
        if self.high <= self.low:
            return [self.low]
        raw = (self.high - self.low) / 5
        unit = 10.0 ** math.floor(math.log10(raw))
        step = unit * next(m for m in (1, 2, 5, 10) if m * unit >= raw * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        return [i * step for i in range(first, math.floor(self.high / step + 1e-9) + 1)]

    def name(self, value: float) -> str:
        """Write a value as it stands at a tick."""
        if self.percent:
            return f"{100 * value:g}%" if abs(100 * value - round(100 * value)) < 1e-6 else f"{100 * value:.3g}%"
        if 1000 <= abs(value) < 1e9:  # longer ones would run into the label of the axis
            return f"{value / 1e3:.4g}k" if abs(value) < 1e6 else f"{value / 1e6:.4g}M"
        return f"{value:.4g}"


def _finite(values: Sequence[FloatArray]) -> FloatArray:
    flat = np.concatenate([np.ravel(v) for v in values])
    return np.asarray(flat[np.isfinite(flat)])


def around(*values: FloatArray, share: float = 0.06) -> tuple[float, float]:
    """Return limits that leave some space around all finite values."""
    flat = _finite(values)
    low, high = (float(flat.min()), float(flat.max())) if len(flat) else (0.0, 1.0)
    space = (high - low) * share or max(abs(high) * share, 1e-6)
    return low - space, high + space


def axis_around(label: str, *values: FloatArray) -> Axis:
    """Return an axis with some space around all finite values, logarithmic where they differ by a factor of ten."""
    flat = _finite(values)
    if len(flat) and 0 < 10 * flat.min() < flat.max():
        return Axis(f"{label}, logarithmic", float(flat.min()) / 1.15, float(flat.max()) * 1.15, log=True)
    return Axis(label, *around(flat))


def _x(axis: Axis, value: float) -> float:
    return _LEFT + axis.place(value) * (WIDTH - _LEFT - _RIGHT)


def _y(axis: Axis, value: float) -> float:
    return HEIGHT - _BOTTOM - axis.place(value) * (HEIGHT - _TOP - _BOTTOM)


def _frame(x: Axis, y: Axis) -> str:
    """Return grid, ticks and labels."""
    bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
    parts = []
    for value in y.ticks():
        at = _y(y, value)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text class="tick" x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{y.name(value)}</text>')
    for value in x.ticks():
        at = _x(x, value)
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{bottom}" y2="{bottom + 4}"/>')
        parts.append(f'<text class="tick" x="{at:.1f}" y="{bottom + 17}" text-anchor="middle">{x.name(value)}</text>')
    middle = (_LEFT + right) / 2
    parts.append(f'<text class="label" x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x.label)}</text>')
    centre = (_TOP + bottom) / 2
    parts.append(
        f'<text class="label" transform="translate(12 {centre}) rotate(-90)" text-anchor="middle">'
        f"{escape(y.label)}</text>"
    )
    parts.append(f'<line class="axis" x1="{_LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>')
    return "".join(parts)


def _path(x: Axis, y: Axis, line: Line) -> str:
    points = [(_x(x, float(a)), _y(y, float(b))) for a, b in zip(line.x, line.y, strict=True) if np.isfinite(b)]
    text = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points) if points else ""
    dots = "".join(f'<circle class="{line.style}" cx="{a:.1f}" cy="{b:.1f}" r="3"/>' for a, b in points)
    return f'<path class="line {line.style}" d="{text}"/>' + (dots if line.points else "")


def _legend(names: Sequence[tuple[str, str]]) -> str:
    keys = "".join(f'<li><i class="{style}"></i>{escape(name)}</li>' for name, style in names)
    return f'<ul class="legend">{keys}</ul>'


def _figure(title: str, svg: str, legend: str, hover: dict[str, object] | None, kind: str = "chart") -> str:
    """Return a figure with a title, a legend and a line of text for what is under the pointer."""
    data = f' data-hover="{escape(json.dumps(hover, allow_nan=False))}"' if hover is not None else ""
    return (
        f'<figure class="{kind}"{data}><figcaption>{escape(title)}</figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">{svg}</svg>'
        f'{legend}<output class="readout"></output></figure>'
    )


def _numbers(values: FloatArray, digits: int = 5) -> list[float | None]:
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in np.asarray(values, float)]


def line_chart(title: str, lines: Sequence[Line], x: Axis, y: Axis, *, under: str = "") -> str:
    """Draw lines; the values under the pointer are written below.

    Parameters
    ----------
    title : str
    lines : sequence of Line
    x, y : Axis
    under : str, default=""
        SVG that is drawn below the lines.

    Returns
    -------
    str
        A figure element.
    """
    svg = _frame(x, y) + under + "".join(_path(x, y, line) for line in lines)
    svg += f'<line class="cursor" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/>'
    hover: dict[str, object] = {
        "label": x.label,
        "percent": y.percent,
        "lines": [
            {
                "name": line.name,
                "x": _numbers(line.x),
                "at": [round(_x(x, float(v)), 1) for v in line.x],
                "y": _numbers(line.y),
            }
            for line in lines
        ],
    }
    legend = _legend([(line.name, line.style) for line in lines]) if len(lines) > 1 else ""
    return _figure(title, svg, legend, hover)


def cursor_places(x: Axis, values: FloatArray) -> list[float]:
    """Return where a marker of a chart with this axis stands for each value."""
    return [round(_x(x, float(v)), 1) for v in values]


def stacked_bars(title: str, share: FloatArray, x: Axis, names: tuple[str, str]) -> str:
    """Draw, for each round, a share and what is left of it as a filled area."""
    y = Axis("share of the tree's variation", 0, 1, percent=True)
    rounds = np.arange(1, len(share) + 1)
    edges = np.r_[rounds - 0.5, rounds[-1] + 0.5]
    bottom = HEIGHT - _BOTTOM
    steps = "".join(
        f"L{_x(x, a):.1f} {_y(y, float(s)):.1f}L{_x(x, b):.1f} {_y(y, float(s)):.1f}"
        for a, b, s in zip(edges[:-1], edges[1:], share, strict=True)
    )
    left, right = _x(x, edges[0]), _x(x, edges[-1])
    svg = (
        f'<rect class="first" x="{left:.1f}" y="{_TOP}" width="{right - left:.1f}" height="{bottom - _TOP}"/>'
        f'<path class="repeated" d="M{left:.1f} {bottom}{steps}L{right:.1f} {bottom}Z"/>'
    )
    hover: dict[str, object] = {
        "label": x.label,
        "percent": True,
        "lines": [
            {
                "name": names[0],
                "x": rounds.tolist(),
                "at": cursor_places(x, rounds.astype(float)),
                "y": _numbers(share, 4),
            }
        ],
    }
    svg = svg + _frame(x, y) + f'<line class="cursor" y1="{_TOP}" y2="{bottom}"/>'
    return _figure(title, svg, _legend([(names[0], "repeated"), (names[1], "first")]), hover)


def intervals(
    title: str, predicted: FloatArray, bounds: tuple[FloatArray, FloatArray, FloatArray], axes: tuple[Axis, Axis]
) -> str:
    """Draw observed values with intervals against predicted ones, and the diagonal where both are equal.

    Parameters
    ----------
    title : str
    predicted : ndarray of shape (p,)
    bounds : tuple of ndarray
        Observed values, lower and upper ends.
    axes : tuple of Axis
        Horizontal and vertical.

    Returns
    -------
    str
        A figure element.
    """
    x, y = axes
    observed, low, high = bounds
    first, last = max(x.low, y.low), min(x.high, y.high)
    under = (
        f'<line class="quiet line" x1="{_x(x, first):.1f}" y1="{_y(y, first):.1f}" '
        f'x2="{_x(x, last):.1f}" y2="{_y(y, last):.1f}"/>'
    )
    for p, a, b in zip(predicted, low, high, strict=True):
        at = _x(x, float(p))
        under += (
            f'<line class="whisker" x1="{at:.1f}" x2="{at:.1f}" y1="{_y(y, float(a)):.1f}" y2="{_y(y, float(b)):.1f}"/>'
        )
    return line_chart(title, [Line("observed", predicted, observed, "first", points=True)], x, y, under=under)


def bars(
    title: str, names: Sequence[str], values: FloatArray, errors: FloatArray | None, name: Callable[[float], str]
) -> str:
    """Draw horizontal bars with a name and a value each, as an HTML list: long names wrap where SVG text would not."""
    top = float(np.max(np.abs(values))) or 1.0
    rows = []
    for i, (label, value) in enumerate(zip(names, values, strict=True)):
        error = f" &plusmn; {name(float(errors[i]))}" if errors is not None else ""
        width = 100 * max(float(value), 0) / top
        rows.append(
            f'<li><span class="name" title="{escape(label)}">{escape(label)}</span>'
            f'<span class="bar"><i class="first" style="width:{width:.1f}%"></i></span>'
            f'<span class="value">{name(float(value))}{error}</span></li>'
        )
    return f'<figure class="bars"><figcaption>{escape(title)}</figcaption><ul>{"".join(rows)}</ul></figure>'


def heat_map(title: str, values: FloatArray) -> str:
    """Draw a square matrix of correlations as a picture; at most 100 cells a side, each the mean of what it covers."""
    T = len(values)
    cells = min(T, _MAX_CELLS)
    edges = np.linspace(0, T, cells + 1).round().astype(int)
    defined = np.isfinite(values)
    total = np.add.reduceat(np.add.reduceat(np.where(defined, values, 0.0), edges[:-1], 0), edges[:-1], 1)
    count = np.add.reduceat(np.add.reduceat(defined.astype(float), edges[:-1], 0), edges[:-1], 1)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    side = HEIGHT - _TOP - _BOTTOM
    left, top = _LEFT + 20, _TOP
    rounds = Axis("round", 0.5, T + 0.5)
    parts = [_picture(left, top, side, side, mean)]
    for value in rounds.ticks():
        if value < 1:
            continue
        at = rounds.place(value) * side
        parts.append(
            f'<text class="tick" x="{left + at:.1f}" y="{top + side + 17}" text-anchor="middle">{value:g}</text>'
        )
        parts.append(f'<text class="tick" x="{left - 6}" y="{top + at + 4:.1f}" text-anchor="end">{value:g}</text>')
    middle = left + side / 2
    parts.append(f'<text class="label" x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">round of a tree</text>')
    parts.append(
        f'<text class="label" transform="translate(24 {top + side / 2}) rotate(-90)" text-anchor="middle">'
        "round of another tree</text>"
    )
    key = left + side + 22
    scale = np.linspace(1, -1, 64)[:, None]
    parts.append(_picture(key, top, 12, side, scale))
    for value, at in ((1, 0.0), (0.5, 0.25), (0, 0.5), (-0.5, 0.75), (-1, 1.0)):
        parts.append(f'<text class="tick" x="{key + 18}" y="{top + at * side + 4:.1f}">{value:g}</text>')
    hover: dict[str, object] = {
        "map": [[None if np.isnan(v) else round(100 * float(v)) for v in row] for row in mean],
        "box": [left, top, side],
        "edges": edges.tolist(),
    }
    legend = _legend([("the same for every row", "undefined")]) if np.isnan(mean).any() else ""
    return _figure(title, "".join(parts), legend, hover)


def _picture(left: int, top: int, width: int, height: int, values: FloatArray) -> str:
    return (
        f'<image class="map" x="{left}" y="{top}" width="{width}" height="{height}" preserveAspectRatio="none" '
        f'href="data:image/png;base64,{_png(values)}"/>'
    )


def _png(values: FloatArray) -> str:
    """Return values from -1 to 1 as the text of a PNG picture with one pixel a value."""
    stops = np.linspace(-1, 1, len(_DIVERGING))
    colours = np.array(_DIVERGING, float)
    pixels = np.stack([np.interp(np.nan_to_num(values), stops, colours[:, c]) for c in range(3)], axis=-1)
    pixels[np.isnan(values)] = _UNDEFINED
    rows: npt.NDArray[np.uint8] = pixels.round().astype(np.uint8)
    lines = b"".join(b"\0" + row.tobytes() for row in rows)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", values.shape[1], values.shape[0], 8, 2, 0, 0, 0)
    picture = (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
    )
    return base64.b64encode(picture).decode("ascii")
