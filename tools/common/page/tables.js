// Elements from data. All text goes through textContent, because names in a module may be hostile.
const make = (tag, text, parent, name) => {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = text;
  if (name) made.className = name;
  if (parent) parent.append(made);
  return made;
};

// Rows of cells; a cell is a text, or { text, number: true }.
const table = (parent, titles, rows) => {
  const made = make("table", undefined, parent);
  if (titles) {
    const head = make("tr", undefined, made);
    for (const title of titles) make("th", title, head);
  }
  for (const row of rows) {
    const line = make("tr", undefined, made);
    for (const cell of row) {
      if (cell && typeof cell === "object") make("td", cell.text, line, cell.number ? "number" : "");
      else make("td", cell, line);
    }
  }
  return made;
};

const isNumber = (size) => typeof size === "number";

const bytes = (size) => {
  if (!isNumber(size)) return String(size);
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0, value = size;
  for (; value >= 1024 && unit + 1 < units.length; ++unit) value /= 1024;
  return (unit === 0 ? String(value) : value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : value.toFixed(0)) + " " + units[unit];
};

const duration = (ns) => ns < 1e3 ? `${ns.toFixed(0)} ns` : ns < 1e6 ? `${(ns / 1e3).toFixed(1)} µs` : ns < 1e9 ? `${(ns / 1e6).toFixed(2)} ms` : `${(ns / 1e9).toFixed(2)} s`;

const sum = (sizes) => sizes.every(isNumber) ? sizes.reduce((all, size) => all + size, 0) : sizes.filter((size) => size !== 0).join(" + ");
