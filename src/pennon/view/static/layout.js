// The layout: fragments × columns, coloured by bytes, encodings or pages; a click shows the pages of a cell.
import { card, h, later, put } from "./dom.js";
import { isFile, load } from "./source.js";
import { bar, columnsChart, hues } from "./draw.js";

const MODES = [["bytes", "Bytes"], ["encoding", "Encoding"], ["pages", "Pages"]];
const STEP = 60, COLUMNS = 40;

export function showLayout(root, table, state) {
  const mode = state.get("colour") || "bytes";
  const detail = h("div", {class: "detail", "aria-live": "polite"}, h("p", {class: "quiet"},
    "Choose a cell to see its pages: layout, encodings, and the use of each byte."));
  const first = Number(state.get("first")), column = Number(state.get("column"));
  root.append(card("Fragments", later(load("/api/strip", {version: table.version}), found => strip(found, state, first))),
    card("", h("div", {class: "modes", role: "group", "aria-label": "colour by"}, h("span", {class: "quiet"}, "Colour by"), MODES.map(([name, label]) =>
      h("a", {class: "button plain" + (name === mode ? " on" : ""), "aria-current": name === mode && "true",
        href: state.link("layout", {colour: name})}, label))),
    h("div", {class: "beside"}, later(load("/api/grid", {version: table.version, first, first_column: column, limit: isFile ? STEP - 20 : STEP}),
      found => grid(found, table, state, mode, detail)), detail)));
}

function strip(found, state, first) {
  const bars = found.bars;
  return [columnsChart(bars.map((each, i) => {
    const end = i + 1 < bars.length ? bars[i + 1].first : found.fragments;
    return {value: each.bytes, label: each.text, on: found.fragments > STEP && each.first < first + STEP && end > first,
      href: isFile ? "/layout" : state.link("layout", {first: each.first || "", column: ""})};
  }), 64, "bytes of fragments"),
  h("p", {class: "quiet between"}, h("span", {}, "bytes of each fragment, in the order of a scan"), h("span", {}, found.fragments.toLocaleString("en") + (found.fragments === 1 ? " fragment" : " fragments")))];
}

function grid(found, table, state, mode, detail) {
  if (!found.fragments.length) return h("p", {class: "empty"}, "This version has no fragments.");
  const cells = found.cells.flat().filter(Boolean);
  const most = Math.max(...cells.map(each => (mode === "pages" ? each.pages : each.bytes)), 1);
  const known = hues(cells.map(each => each.encoding || "not known"));
  const body = h("tbody", {}, found.fragments.map((fragment, r) => h("tr", {},
    h("th", {scope: "row", title: `${fragment.rows} rows, ${fragment.deleted} deleted, ${fragment.size} in ${fragment.files} file(s)`},
      String(fragment.id), h("small", {}, fragment.rows)),
    found.cells[r].map((cell, c) => h("td", {}, square(cell, mode, most, known, () => {
      for (const other of body.querySelectorAll(".chosen")) other.classList.remove("chosen");
      body.rows[r].cells[c + 1].firstChild.classList.add("chosen");
      put(detail, later(load("/api/pages", {version: table.version, fragment: fragment.id, column: found.columns[c].path}), pagesOf));
      if (window.innerWidth < 1000) detail.scrollIntoView({block: "start"});
    }, `fragment ${fragment.id}, ${found.columns[c].name}`, r + c === 0))))));
  body.addEventListener("keydown", event => move(event, body));
  return [h("div", {class: "scroll"}, h("table", {class: "grid" + (found.columns.length <= 16 ? " roomy" : "")},
    h("thead", {}, h("tr", {}, h("th", {scope: "col"}, "fragment", h("small", {}, "rows")),
      found.columns.map(each => h("th", {scope: "col", class: "slant", title: each.name}, h("span", {}, each.name))))), body)),
  legend(mode, most, known, cells), isFile || (found.count <= STEP && found.column_count <= COLUMNS) ? "" : places(found, state)];
}

function square(cell, mode, most, known, choose, name, isFirst) {
  if (!cell) return h("span", {class: "square none", title: name + ": not in this fragment"});
  const label = `${name}: ${cell.size}, ${cell.pages} page${cell.pages === 1 ? "" : "s"}` + (cell.encoding && `, ${cell.encoding}`);
  const button = h("button", {type: "button", class: "square" + (cell.damage ? " damaged" : ""), title: label, "aria-label": label,
    tabindex: isFirst ? "0" : "-1", onclick: choose});
  if (mode === "encoding") button.style.setProperty("--hue", known.get(cell.encoding || "not known"));
  else {
    const value = mode === "pages" ? cell.pages : cell.bytes;
    button.style.setProperty("--depth", (8 + 92 * (Math.log1p(value) / Math.log1p(most)) ** 2).toFixed(1) + "%");
  }
  button.classList.add(mode === "encoding" ? "by-hue" : "by-depth");
  return button;
}

function move(event, body) {
  const steps = {ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0]}[event.key];
  const from = event.target.closest("td");
  if (!steps || !from) return;
  event.preventDefault();
  const row = body.rows[from.parentNode.rowIndex - 1 + steps[0]];
  const next = row && row.cells[from.cellIndex + steps[1]];
  const button = next && next.querySelector("button");
  if (!button) return;
  event.target.tabIndex = -1;
  button.tabIndex = 0;
  button.focus();
}

function legend(mode, most, known, cells) {
  if (mode !== "encoding") return h("p", {class: "legend"}, h("span", {class: "quiet"}, "few"),
    h("span", {class: "ramp", "aria-hidden": "true"}), h("span", {class: "quiet"}, mode === "pages" ? `${most} pages` : "most bytes"));
  const totals = new Map();
  for (const each of cells) totals.set(each.encoding || "not known", (totals.get(each.encoding || "not known") || 0) + 1);
  return h("ul", {class: "legend"}, [...totals].sort((a, b) => b[1] - a[1]).map(([name, count]) => {
    const dot = h("span", {class: "square by-hue small", "aria-hidden": "true"});
    dot.style.setProperty("--hue", known.get(name));
    return h("li", {}, dot, name, h("small", {}, ` ${count}`));
  }));
}

function places(found, state) {
  const end = found.first + found.fragments.length, columns = found.first_column + found.columns.length;
  const link = (label, values, isThere) => isThere ? h("a", {class: "button plain", href: state.link("layout", values)}, label)
    : h("span", {class: "button plain off", "aria-hidden": "true"}, label);
  return h("div", {class: "pager"},
    link("↑ Fragments", {first: Math.max(0, found.first - STEP) || ""}, found.first > 0),
    h("span", {class: "quiet"}, `fragments ${found.first + 1} to ${end} of ${found.count.toLocaleString("en")}`),
    link("↓ Fragments", {first: end}, end < found.count),
    found.column_count > found.columns.length && [link("← Columns", {column: Math.max(0, found.first_column - COLUMNS) || ""}, found.first_column > 0),
      h("span", {class: "quiet"}, `columns ${found.first_column + 1} to ${columns} of ${found.column_count}`),
      link("→ Columns", {column: columns}, columns < found.column_count)]);
}

function pagesOf(found) {
  return [h("h2", {}, found.column), h("p", {class: "quiet"},
    `fragment ${found.fragment.id}, ${found.fragment.rows} rows: ${found.size} in ${found.pages} page${found.pages === "1" ? "" : "s"}`),
    found.parts.map(part => {
      const most = Math.max(...part.pages.map(each => each.bytes), 1);
      return h("div", {class: "part"}, part.name !== found.column && h("h3", {}, part.name), h("p", {class: "quiet file"}, part.file),
        part.pages.length ? part.pages.map(page => pageBox(page, most)) : h("p", {class: "quiet"}, "no pages"));
    })];
}

function pageBox(page, most) {
  const row = (name, value) => [h("dt", {}, name), h("dd", {}, value)];
  return h("details", {class: "page", open: page.number < 2}, h("summary", {}, h("b", {}, "page " + page.number),
    h("span", {}, `${page.rows} rows`), page.layout && h("span", {class: "badge"}, page.layout), bar(page.bytes / most), h("span", {class: "number"}, page.size)),
  h("dl", {}, page.encodings.map(([name, how]) => row(name, how)), page.facts.length > 0 && row("holds", page.facts.join("; ")),
    page.parts.map(part => row(part.kind, h("span", {class: "use"}, bar(part.bytes / (page.bytes || 1), "second"), part.size, h("small", {}, ` ${part.from} – ${part.to}`))))));
}
