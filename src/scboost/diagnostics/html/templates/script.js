"use strict";
(function () {
  document.documentElement.classList.add("js");

  // Tabs: click, or the arrow keys.
  const tabs = [...document.querySelectorAll("[role=tab]")];
  function select(tab, focus) {
    for (const other of tabs) {
      const chosen = other === tab;
      other.setAttribute("aria-selected", String(chosen));
      other.tabIndex = chosen ? 0 : -1;
      document.getElementById(other.getAttribute("aria-controls")).hidden = !chosen;
    }
    if (focus) tab.focus();
  }
  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => select(tab, false));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) select(tabs[(i + step + tabs.length) % tabs.length], true);
    });
  });
  if (tabs.length) select(tabs[0], false);

  function write(value, percent) {
    if (value === null) return "undefined";
    return percent ? (100 * value).toFixed(1) + "%" : String(Number(value.toPrecision(4)));
  }
  function nearest(places, at) {
    let best = 0;
    places.forEach((place, i) => { if (Math.abs(place - at) < Math.abs(places[best] - at)) best = i; });
    return best;
  }

  // The values under the pointer, below the chart.
  for (const figure of document.querySelectorAll("[data-hover]")) {
    const data = JSON.parse(figure.dataset.hover);
    const svg = figure.querySelector("svg");
    const readout = figure.querySelector(".readout");
    const cursor = svg.querySelector(".cursor");
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const scale = svg.viewBox.baseVal.width / box.width;
      const x = (event.clientX - box.left) * scale;
      const y = (event.clientY - box.top) * scale;
      if (data.map) {
        const [left, top, width, height] = data.box;
        const n = data.map.length;
        const i = Math.floor((y - top) / height * n);
        const j = Math.floor((x - left) / width * n);
        if (i < 0 || j < 0 || i >= n || j >= n) { readout.textContent = ""; return; }
        const name = (k) => {
          const first = data.edges[k] + 1, last = data.edges[k + 1];
          return first === last ? "tree " + first : "trees " + first + " to " + last;
        };
        const value = data.map[i][j];
        readout.textContent = name(i) + " and " + name(j) + ": correlation " + (value === null ? "undefined" : (value / 100).toFixed(2));
        return;
      }
      const first = data.lines[0];
      const k = nearest(first.at, x);
      cursor.setAttribute("x1", first.at[k]);
      cursor.setAttribute("x2", first.at[k]);
      cursor.classList.add("on");
      readout.textContent = data.label + " " + write(first.x[k], false) + ": " + data.lines.map((line) => {
        const i = nearest(line.at, first.at[k]);
        const same = line.x[i] === first.x[k];
        return line.name + " " + write(line.y[i], data.percent) + (same ? "" : " (at " + write(line.x[i], false) + ")");
      }).join(", ");
    });
    svg.addEventListener("pointerleave", () => {
      readout.textContent = "";
      if (cursor) cursor.classList.remove("on");
    });
  }

  // The slider of the number of trees, with the call that prunes to it.
  const slider = document.getElementById("trees-kept");
  const stops = JSON.parse(document.getElementById("slider-data").textContent);
  if (slider && stops) {
    const marks = [...document.querySelectorAll(".markable svg")].map((svg) => {
      const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
      line.setAttribute("class", "mark on");
      const cursor = svg.querySelector(".cursor");
      line.setAttribute("y1", cursor.getAttribute("y1"));
      line.setAttribute("y2", cursor.getAttribute("y2"));
      svg.append(line);
      return line;
    });
    const show = () => {
      const stop = stops[Number(slider.value)];
      document.getElementById("trees-kept-words").textContent = stop.words;
      document.getElementById("trees-kept-call").textContent = stop.call;
      slider.setAttribute("aria-valuetext", stop.size + " trees");
      for (const mark of marks) {
        mark.setAttribute("x1", stop.at);
        mark.setAttribute("x2", stop.at);
      }
    };
    slider.addEventListener("input", show);
    show();
  }

  // The threshold of a class: counts and scores at each of its stops.
  const control = document.getElementById("threshold-control");
  if (control) {
    const classes = JSON.parse(control.dataset.thresholds);
    const chosen = document.getElementById("threshold-class");
    const threshold = document.getElementById("threshold");
    const put = (id, text) => { document.getElementById("threshold-" + id).textContent = text; };
    const ratio = (a, b) => (b ? (a / b).toFixed(3) : "undefined");
    const show = () => {
      const data = classes[Number(chosen.value)];
      const i = Number(threshold.value);
      const tp = data.tp[i], fp = data.fp[i], fn = data.positive - tp, tn = data.negative - fp;
      const at = (i / 100).toFixed(2);
      put("words", "At " + at + ": precision " + ratio(tp, tp + fp) + ", recall " + ratio(tp, tp + fn) + ", F1 " +
        ratio(2 * tp, 2 * tp + fp + fn) + ", accuracy " + ratio(tp + tn, tp + fp + fn + tn) +
        ". F1 is highest at " + (data.best / 100).toFixed(2) + ".");
      for (const [id, count] of Object.entries({ tp, fp, fn, tn })) put(id, count.toLocaleString("en"));
      put("call", "model.predict_proba(X)[:, " + data.k + "] >= " + at);
      threshold.setAttribute("aria-valuetext", at);
    };
    chosen.value = control.dataset.start;
    chosen.addEventListener("change", show);
    threshold.addEventListener("input", show);
    show();
  }

  // In a notebook, the frame takes the height of what it shows.
  if (window.parent !== window) {
    const tell = () => window.parent.postMessage({ reportHeight: document.body.offsetHeight + 8 }, "*");
    new ResizeObserver(tell).observe(document.body);
    tell();
  }
})();
