"use strict";
for (const box of document.querySelectorAll("input[data-for]")) {
  const rows = document.getElementById(box.dataset.for).tBodies[0].rows;
  const line = box.closest(".filter");
  line.hidden = false;
  box.addEventListener("input", () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    line.lastElementChild.textContent = words.length ? shown + " of " + rows.length : "";
  });
}
const order = new Intl.Collator(undefined, { numeric: true }).compare;
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  if (body.rows.length < 2) continue;
  table.classList.add("sortable");
  for (const head of table.tHead.querySelectorAll("th")) {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const sign = head.ariaSort === "ascending" ? -1 : 1;
      for (const other of table.tHead.querySelectorAll("th")) other.ariaSort = null;
      head.ariaSort = sign > 0 ? "ascending" : "descending";
      const value = (row) => {
        const cell = row.cells[head.cellIndex];
        return cell.dataset.sort ?? cell.textContent.replace(/(\d),(?=\d{3})/g, "$1");
      };
      body.append(...[...body.rows].sort((one, two) => sign * order(value(one), value(two))));
    });
  }
}
const unfold = () => {
  let at = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const inside = at && at.querySelector(":scope > details");
  if (inside) inside.open = true;
  for (; at; at = at.parentElement) if (at.localName === "details") at.open = true;
};
addEventListener("hashchange", unfold);
unfold();
