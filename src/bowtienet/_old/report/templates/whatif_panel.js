/* The what-if panel: controls, and what the model predicts for them. */
(function () {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";
  const MINUS = "\u2212", DAY = 86400000;

  /* As `wording.number` and `wording.quantity` write numbers. */
  function shown(value, kind) {
    if (kind === "date") { return new Date(Math.floor(value) * DAY).toISOString().slice(0, 10); }
    const size = Math.abs(value), digits = 4;
    let text;
    if (size >= 1e9 || (size > 0 && size < 1e-3)) {
      text = value.toExponential(digits - 1).replace(/\.?0+e/, "e");
    } else {
      const places = size === 0 ? 0 : Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
      text = value.toLocaleString("en-US", {
        maximumFractionDigits: Math.min(places, 8), useGrouping: kind !== "year"
      });
    }
    return text.replace(/-/g, MINUS) + (kind === "duration" ? " days" : "");
  }

  function percent(share) {
    const value = 100 * share;
    const places = value >= 99.95 || value < 0.05 ? 2 : 1;
    return value.toFixed(places).replace(/\.?0+$/, "") + "\u00a0%";
  }

  function element(name, attributes, parent) {
    const found = document.createElementNS(SVG, name);
    Object.keys(attributes).forEach(function (key) { found.setAttribute(key, attributes[key]); });
    if (parent) { parent.appendChild(found); }
    return found;
  }

  /* About four round numbers between two ends. */
  function ticks(low, high) {
    const rough = (high - low) / 4, power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = power * [1, 2, 5, 10].find(function (factor) { return factor * power >= rough; });
    const first = Math.ceil(low / step) * step;
    return [0, 1, 2, 3, 4, 5].map(function (k) { return first + k * step; })
      .filter(function (value) { return value <= high; });
  }

  /* Interval, middle half and mean along an axis. */
  function drawInterval(svg, target, found, start) {
    const low = Math.min(target.low, found.quantiles[0], start.quantiles[0]);
    const high = Math.max(target.high, found.quantiles[3], start.quantiles[3]);
    const left = 12, width = 336;
    function at(value) { return (left + width * (value - low) / (high - low || 1)).toFixed(2); }
    function bar(from, to, y, height, name) {
      const begin = Number(at(from)), length = Math.max(1, at(to) - begin);
      element("rect", { x: begin, y: y, width: length, height: height, class: name }, svg);
    }
    svg.textContent = "";
    element("line", { x1: left, x2: left + width, y1: 62, y2: 62, class: "axis" }, svg);
    ticks(low, high).forEach(function (value) {
      element("line", { x1: at(value), x2: at(value), y1: 62, y2: 67, class: "axis" }, svg);
      const label = element("text", { x: at(value), y: 80, "text-anchor": "middle" }, svg);
      label.textContent = shown(value, target.kind);
    });
    bar(start.quantiles[0], start.quantiles[3], 50, 4, "start");
    bar(found.quantiles[0], found.quantiles[3], 20, 14, "outer");
    bar(found.quantiles[1], found.quantiles[2], 16, 22, "inner");
    element("line", { x1: at(found.mean), x2: at(found.mean), y1: 10, y2: 44, class: "mean" }, svg);
  }

  function drawClasses(list, classes, found, start) {
    const order = classes.map(function (_, c) { return c; });
    if (classes.length > 12) { order.sort(function (a, b) { return found[b] - found[a]; }); }
    list.textContent = "";
    order.slice(0, 12).forEach(function (c) {
      const item = list.appendChild(document.createElement("li"));
      const name = item.appendChild(document.createElement("bdi"));
      name.textContent = classes[c];
      const look = { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" };
      const svg = element("svg", look, item);
      const lengths = [found[c], start[c]].map(function (p) { return (100 * p).toFixed(2); });
      element("rect", { x: 0, y: 0, width: lengths[0], height: 6, class: "inner" }, svg);
      element("rect", { x: 0, y: 8, width: lengths[1], height: 2, class: "start" }, svg);
      item.appendChild(document.createElement("span")).textContent = percent(found[c]);
    });
  }

  function openPanel(root) {
    const given = JSON.parse(root.dataset.structure), about = given.panel;
    const model = window.bowtienet.read(given.model, root.dataset.numbers);
    const tail = 0.5 * (1 - about.coverage), levels = [tail, 0.25, 0.75, 1 - tail];
    const size = model.center.values.length;
    const controls = Array.prototype.slice.call(root.querySelectorAll("[data-feature]"));
    const [rows, targets, words, note, drawing, reset] =
      ["row", "target", "words", "note", "drawing", "reset"].map(function (role) {
        return root.querySelector("[data-role=" + role + "]");
      });
    let base = 0, state = [], start = null;

    function chosenTarget() { return targets ? Number(targets.value) : 0; }

    function encoded() {
      const found = new Float64Array(size);
      about.features.forEach(function (feature, place) {
        const own = state[place];
        if (feature.indicator !== null && own.missing) { found[feature.indicator] = 1; }
        if (feature.kind !== "category") {
          found[feature.columns[0]] = own.missing ? feature.typical : own.value;
        } else if (!own.missing && own.value >= 0) { found[feature.columns[own.value]] = 1; }
      });
      return found;
    }

    function predict() {
      const x = window.bowtienet.standardized(model, encoded());
      if (about.classes.length) { return window.bowtienet.predictClasses(model, x, base); }
      return window.bowtienet.predictNumber(model, x, base, chosenTarget(), levels);
    }

    function departures() {
      const found = [];
      about.features.forEach(function (feature, place) {
        const own = state[place], range = feature.range;
        if (feature.kind === "category" || own.missing || !range) { return; }
        const slack = 1e-9 * Math.max(range[1] - range[0], Math.abs(range[0]), Math.abs(range[1]));
        const below = own.value < range[0] - slack, above = own.value > range[1] + slack;
        if (!below && !above) { return; }
        found.push(feature.name + " = " + shown(own.value, feature.kind) + ", training "
          + (below ? "minimum " : "maximum ") + shown(range[below ? 0 : 1], feature.kind));
      });
      return found;
    }

    function showNumber(found) {
      const target = about.targets[chosenTarget()], ends = [found.quantiles[0], found.quantiles[3]];
      words.textContent = "";
      words.appendChild(document.createElement("strong")).textContent = shown(found.mean, target.kind);
      words.appendChild(document.createElement("span")).textContent =
        percent(about.coverage) + " interval "
        + ends.map(function (end) { return shown(end, target.kind); }).join(" to ");
      drawInterval(drawing, target, found, start);
      root.dataset.mean = found.mean;
      root.dataset.deviation = found.deviation;
      root.dataset.low = ends[0];
      root.dataset.high = ends[1];
    }

    function showClasses(found) {
      const likeliest = found.indexOf(Math.max.apply(null, found));
      words.textContent = "";
      words.appendChild(document.createElement("strong")).textContent = about.classes[likeliest];
      words.appendChild(document.createElement("span")).textContent = percent(found[likeliest]);
      drawClasses(drawing, about.classes, found, start);
      root.dataset.probabilities = JSON.stringify(Array.from(found));
    }

    function update() {
      const found = predict();
      start = start || found;
      if (about.classes.length) { showClasses(found); } else { showNumber(found); }
      const outside = departures();
      note.hidden = outside.length === 0;
      note.textContent = "Outside the training range: " + outside.join("; ") + ".";
    }

    function fillControl(control, place) {
      const feature = about.features[place], own = state[place];
      const [slider, box, choice, gap] =
        ["[type=range]", "[data-role=box]", "select", "[type=checkbox]"].map(function (one) {
          return control.querySelector(one);
        });
      if (choice) { choice.value = own.missing ? "missing" : String(own.value); }
      if (gap) { gap.checked = own.missing; }
      if (slider) {
        slider.value = own.value;
        slider.disabled = box.disabled = own.missing;
        slider.setAttribute("aria-valuetext", shown(own.value, feature.kind));
      }
      if (box && document.activeElement !== box) {
        box.value = feature.kind === "date" ? shown(own.value, "date") : String(own.value);
      }
    }

    function change(place, event) {
      const own = state[place], from = event.target;
      if (from.type === "checkbox") {
        own.missing = from.checked;
      } else if (from.tagName === "SELECT") {
        own.missing = from.value === "missing";
        own.value = own.missing ? -1 : Number(from.value);
      } else {
        const value = from.type === "date" ? Date.parse(from.value) / DAY : Number(from.value);
        if (from.value === "" || !isFinite(value)) { return; }
        own.value = value;
      }
      fillControl(controls[place], place);
      update();
    }

    function baseState() {
      return about.rows[base].map(function (own) { return Object.assign({}, own); });
    }

    function begin() {
      base = Number(rows.value);
      state = baseState();
      start = null;
      controls.forEach(fillControl);
      update();
    }

    /* Another target of the same row; what was moved stays. */
    function changeTarget() {
      const moved = state;
      state = baseState();
      start = predict();
      state = moved;
      update();
    }

    controls.forEach(function (control, place) {
      control.addEventListener("input", function (event) { change(place, event); });
      control.addEventListener("focusout", function () { fillControl(control, place); });
    });
    rows.addEventListener("change", begin);
    if (targets) { targets.addEventListener("change", changeTarget); }
    reset.addEventListener("click", begin);
    begin();
  }

  document.querySelectorAll("[data-structure]").forEach(function (root) { openPanel(root); });
}());
