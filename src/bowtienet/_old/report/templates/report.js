(function () {
  "use strict";
  document.documentElement.classList.add("js");

  document.querySelectorAll("select[data-chooses]").forEach(function (select) {
    var figures = document.querySelectorAll("[data-choice='" + select.dataset.chooses + "']");
    function choose() {
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
