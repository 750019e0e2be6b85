"use strict";
const order = (column, isUp) => (a, b) => {
  const [x, y] = [a, b].map(row => row.cells[column].dataset.value);
  if (x === undefined && y === undefined) {
    const [left, right] = [a, b].map(row => row.cells[column].textContent.trim());
    return (isUp ? 1 : -1) * left.localeCompare(right, "en", { numeric: true });
  }
  // Missing values are last in both directions.
  if (x === undefined || y === undefined) return x === undefined ? 1 : -1;
  return (isUp ? 1 : -1) * (x - y);
};
for (const table of document.querySelectorAll(".sortable")) {
  const headings = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  for (const heading of headings) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const isUp = heading.getAttribute("aria-sort") !== "ascending";
      for (const other of headings) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", isUp ? "ascending" : "descending");
      body.append(...[...body.rows].sort(order(heading.cellIndex, isUp)));
    });
  }
  table.caption.append(" Click a heading to sort.");
}
const unfold = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let fold = target.closest("details"); fold; fold = fold.parentNode.closest("details"))
    fold.open = true;
  target.scrollIntoView();
};
addEventListener("hashchange", unfold);
unfold();
