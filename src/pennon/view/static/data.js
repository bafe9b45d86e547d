// The page of rows: a filter, searches by words and by the vector of a row, values drawn by their kind.
import { failure, h, put } from "./dom.js";
import { isFile, load } from "./source.js";
import { drawCell } from "./cells.js";

const PAGE = 25;

export function showData(root, table, state) {
  const box = h("div", {class: "rows"});
  if (!isFile) root.append(toolbar(table, state));
  else root.append(h("p", {class: "quiet"}, "The first rows. `pennon view` also filters and searches."));
  root.append(box);
  showRows(box, table, state);
}

function toolbar(table, state) {
  const texts = table.columns.filter(each => each.search === "text").sort((a, b) => b.indexed - a.indexed);
  const filter = h("input", {id: "filter", name: "filter", value: state.get("filter"), placeholder: example(table),
    autocomplete: "off", spellcheck: "false", "aria-describedby": "problem"});
  const words = h("input", {id: "words", name: "words", value: state.get("words"), placeholder: "words to find", autocomplete: "off"});
  const column = h("select", {name: "column", "aria-label": "column to search"}, texts.map(each =>
    h("option", {value: each.path, selected: each.path === state.get("column")}, each.name + (each.indexed ? "" : " (no index)"))));
  const go = event => {
    event.preventDefault();
    const near = words.value ? "" : state.get("near");
    state.go("data", {filter: filter.value, words: words.value, near,
      column: words.value ? column.value : near && state.get("column")});
  };
  return h("form", {class: "tools", role: "search", onsubmit: go},
    h("label", {class: "grow", for: "filter"}, h("span", {}, "Filter in SQL", h("kbd", {}, "/")), filter),
    texts.length > 0 && h("label", {for: "words"}, h("span", {}, "Search"), h("span", {class: "joined"}, words, column)),
    h("button", {type: "submit"}, "Show rows"),
    (state.get("filter") || state.get("words") || state.get("near")) &&
      h("a", {class: "button plain", href: state.link("data", {filter: "", words: "", near: "", column: "", offset: ""})}, "Clear"),
    state.get("near") && h("p", {class: "chip"}, `nearest to row ${state.get("near")} by ${nameOf(table, state.get("column"))}`));
}

// The path of a column is for requests alone; its name is safe to show.
function nameOf(table, path) {
  return (table.columns.find(each => each.path === path) || {name: "?"}).name;
}

// Returns a filter that this table has columns for.
function example(table) {
  const plain = table.columns.filter(each => each.path === each.name);
  const number = plain.find(each => each.number), text = plain.find(each => each.search === "text");
  return [number && `${number.path} > 10`, text && `${text.path} LIKE 'a%'`].filter(Boolean).join(" AND ") || "SQL that is true or false";
}

function showRows(box, table, state) {
  const asked = {version: table.version, limit: PAGE, filter: state.get("filter"), words: state.get("words"), near: state.get("near"),
    column: state.get("words") || state.get("near") ? state.get("column") : "", offset: Number(state.get("offset")),
    first_column: Number(state.get("first"))};
  put(box, h("p", {class: "quiet"}, "loading …"));
  load("/api/rows", asked).then(found => put(box, rowTable(found, table, state), pager(found, table, state, asked)),
    error => put(box, h("div", {id: "problem"}, failure(error),
      asked.filter && h("p", {class: "quiet"}, "Columns: " + table.columns.slice(0, 40).map(each => each.name).join(", ")))));
}

function rowTable(found, table, state) {
  if (!found.rows.length) return h("p", {class: "empty"}, "No rows here.");
  const searchable = new Map(table.columns.map(each => [each.path, each.search]));
  const known = new Map(table.columns.map(each => [each.path, each]));
  const side = c => (known.get(found.fields[c]) || {}).number && "number";
  const near = (path, row) => !isFile && searchable.get(path) === "vector" && h("a", {class: "near", title: "rows with the nearest vectors",
    href: state.link("data", {near: row, column: path, words: "", offset: ""})}, "nearest");
  return h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "rows"}, h("table", {class: "data"},
    h("thead", {}, h("tr", {}, found.scores && h("th", {scope: "col", class: "number"}, found.score_name),
      found.columns.map((name, i) => h("th", {scope: "col", class: side(i)}, name, h("small", {}, (known.get(found.fields[i]) || {}).type))))),
    h("tbody", {}, found.rows.map((cells, r) => h("tr", {}, found.scores && h("td", {class: "number"}, found.scores[r]),
      cells.map((cell, c) => h("td", {class: side(c)},
        drawCell(cell, {version: table.version, column: found.fields[c], row: found.addresses[r]}, found.columns[c]),
        cell.kind === "vector" && near(found.fields[c], found.addresses[r]))))))));
}

function pager(found, table, state, asked) {
  if (isFile) return "";
  const end = asked.offset + found.rows.length;
  const count = h("span", {}, asked.words || asked.near ? "" : asked.filter ? " of …" : " of " + table.rows.toLocaleString("en"));
  if (asked.filter && !asked.words && !asked.near) load("/api/count", {version: table.version, filter: asked.filter})
    .then(all => put(count, " of " + all.text), () => put(count, ""));
  const step = (name, label, offset, isThere) => isThere
    ? h("a", {class: "button plain", href: state.link("data", {offset}), "data-key": name}, label)
    : h("span", {class: "button plain off", "aria-hidden": "true"}, label);
  const shown = found.columns.length, first = asked.first_column;
  return h("div", {class: "pager"},
    step("p", "← Previous", Math.max(0, asked.offset - PAGE), asked.offset > 0),
    h("span", {class: "quiet"}, `rows ${(found.rows.length ? asked.offset + 1 : 0).toLocaleString("en")} to ${end.toLocaleString("en")}`, count),
    step("n", "Next →", end, found.rows.length === PAGE),
    table.column_count > shown && [
      h("span", {class: "quiet"}, `columns ${first + 1} to ${first + shown} of ${table.column_count}`),
      h("a", {class: "button plain", href: state.link("data", {first: Math.max(0, first - 60) || ""})}, "‹ columns"),
      h("a", {class: "button plain", href: state.link("data", {first: Math.min(first + shown, table.column_count - 1)})}, "columns ›")]);
}
