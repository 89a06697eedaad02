"use strict";
for (const box of document.querySelectorAll("input[data-for]")) {
  const rows = document.querySelectorAll("#" + box.dataset.for + " tbody tr");
  box.parentElement.hidden = false;
  box.addEventListener("input", () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    box.nextElementSibling.textContent = words.length ? shown + " of " + rows.length : "";
  });
}
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
});
