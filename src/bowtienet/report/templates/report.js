(function () {
  "use strict";
  var root = document.documentElement;
  root.classList.add("js");
  var tip = document.getElementById("tip");
  var lit = null;

  // Titles of marks become tips that also fingers and keys can open.
  document.querySelectorAll("svg .mark > title").forEach(function (title) {
    title.parentNode.setAttribute("data-tip", title.textContent);
    title.remove();
  });

  function hide() {
    tip.hidden = true;
    if (lit) { lit.classList.remove("lit"); }
    lit = null;
  }

  function show(mark) {
    hide();
    lit = mark;
    mark.classList.add("lit");
    tip.textContent = mark.getAttribute("data-tip");
    tip.hidden = false;
    var at = mark.getBoundingClientRect();
    var box = tip.getBoundingClientRect();
    var left = at.left + at.width / 2 - box.width / 2;
    var above = at.top - box.height - 8;
    left = Math.max(4, Math.min(left, root.clientWidth - box.width - 4));
    if (above < 4) { above = Math.min(at.bottom + 8, window.innerHeight - box.height - 4); }
    tip.style.left = left + "px";
    tip.style.top = Math.max(4, above) + "px";
  }

  function markOf(event) {
    return event.target.closest ? event.target.closest("[data-tip]") : null;
  }

  ["pointerover", "click"].forEach(function (kind) {
    document.addEventListener(kind, function (event) {
      var mark = markOf(event);
      if (mark) { show(mark); } else { hide(); }
    });
  });
  window.addEventListener("scroll", hide, { passive: true });

  // One stop of the tabulator for each chart; arrows go through its marks.
  document.querySelectorAll("svg.chart").forEach(function (chart) {
    var marks = Array.prototype.slice.call(chart.querySelectorAll("[data-tip]"));
    if (!marks.length) { return; }
    chart.setAttribute("tabindex", "0");
    chart.addEventListener("keydown", function (event) {
      if (event.key === "Escape") { hide(); return; }
      var step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) { return; }
      event.preventDefault();
      var place = marks.indexOf(lit);
      place = place < 0 ? (step > 0 ? 0 : marks.length - 1) : place + step;
      show(marks[(place + marks.length) % marks.length]);
    });
    chart.addEventListener("blur", hide);
  });

  document.querySelectorAll("select[data-chooses]").forEach(function (select) {
    var figures = document.querySelectorAll("[data-choice='" + select.dataset.chooses + "']");
    function choose() {
      hide();
      figures.forEach(function (figure, place) {
        figure.hidden = select.value !== "all" && select.value !== String(place);
      });
    }
    select.addEventListener("change", choose);
    choose();
  });

  document.querySelectorAll("input[data-filters]").forEach(function (input) {
    var rows = document.querySelectorAll("#" + input.dataset.filters + " tbody tr");
    input.addEventListener("input", function () {
      var wanted = input.value.toLowerCase();
      rows.forEach(function (row) {
        row.hidden = row.cells[0].textContent.toLowerCase().indexOf(wanted) < 0;
      });
    });
  });

  function value(row, column) {
    var cell = row.cells[column];
    var number = cell.hasAttribute("data-value") ? Number(cell.getAttribute("data-value")) : NaN;
    return isNaN(number) ? cell.textContent : number;
  }

  document.querySelectorAll("table.sortable").forEach(function (table) {
    var heads = Array.prototype.slice.call(table.tHead.rows[0].cells);
    heads.forEach(function (head, column) {
      var button = document.createElement("button");
      button.type = "button";
      while (head.firstChild) { button.appendChild(head.firstChild); }
      head.appendChild(button);
      button.addEventListener("click", function () {
        var down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        var rows = Array.prototype.slice.call(table.tBodies[0].rows);
        rows.sort(function (a, b) {
          var x = value(a, column), y = value(b, column);
          var order = typeof x === "number" && typeof y === "number"
            ? x - y : String(x).localeCompare(String(y), undefined, { numeric: true });
          return down ? -order : order;
        });
        rows.forEach(function (row) { table.tBodies[0].appendChild(row); });
      });
    });
  });
}());
