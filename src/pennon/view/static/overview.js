// The first page: facts, warnings, bytes of columns and of versions, indices.
import { card, h, later } from "./dom.js";
import { load } from "./source.js";
import { bar, columnsChart } from "./draw.js";

const TOP = ["rows", "size", "fragments", "data files", "deleted rows"];

export function showOverview(root, table, state) {
  const facts = new Map(table.facts);
  const columns = load("/api/columns", {version: table.version});
  const health = load("/api/health", {version: table.version});
  const versions = load("/api/versions", {limit: state.file ? 25 : 40, last: state.file ? 0 : table.version});
  root.append(
    h("div", {class: "stats"}, TOP.map(name => stat(name, facts.get(name))), stat("columns", table.column_count.toLocaleString("en"))),
    later(health, found => found.warnings.length ? h("ul", {class: "warnings"}, found.warnings.map(warning)) : ""),
    h("div", {class: "two"},
      h("div", {}, card("Columns", later(columns, found => columnTable(table, found)))),
      h("div", {},
        card("Size by version", later(versions, found => history(found, table))),
        card("Indices", later(health, found => indices(found.indices))),
        card("Facts", definition(table.facts.filter(([name]) => !TOP.includes(name)).concat([["committed", table.time]],
          table.branch ? [["branch", table.branch]] : [], table.tags.length ? [["tags", table.tags.join(", ")]] : []))),
        table.config.length ? card("Settings", definition(table.config)) : "")));
}

function stat(name, value) {
  return h("div", {class: "stat"}, h("span", {class: "quiet"}, name), h("strong", {}, value));
}

function warning(each) {
  return h("li", {}, h("span", {}, each.text), each.advice && h("code", {}, each.advice));
}

function definition(pairs) {
  return h("dl", {}, pairs.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

function columnTable(table, found) {
  const most = Math.max(...found.columns.map(each => each.share), found.rest.share, 1e-9);
  const line = (name, type, part) => h("tr", {}, h("th", {scope: "row"}, name, h("small", {}, type)),
    h("td", {class: "grow"}, bar(part.share / most)), h("td", {class: "number"}, part.size),
    h("td", {class: "number quiet"}, (part.share * 100).toFixed(part.share < 0.1 ? 1 : 0) + " %"));
  return [
    h("div", {class: "scroll"}, h("table", {class: "facts"},
      h("thead", {}, h("tr", {}, ["column", "", "bytes", "share"].map((name, i) => h("th", {scope: "col", class: i > 1 && "number"}, name)))),
      h("tbody", {}, found.columns.map((part, i) => line(table.columns[i].name,
        table.columns[i].type + (table.columns[i].nullable ? "" : ", not null"), part)),
      line("all else", "file metadata, padding, blob values", found.rest)))),
    table.column_count > table.columns.length && h("p", {class: "quiet"}, `the first ${table.columns.length} of ${table.column_count} columns`),
    found.note && h("p", {class: "quiet"}, found.note)];
}

function history(found, table) {
  const shown = found.versions.filter(each => !each.damaged).reverse();
  return [columnsChart(shown.map(each => ({value: each.bytes, on: each.version === table.version, href: "/versions",
    label: `version ${each.version}, ${each.did}: ${each.size}, ${each.rows_text} rows`})), 110, "size by version"),
  h("p", {class: "quiet between"}, h("span", {}, shown.length ? "version " + shown[0].version : ""),
    h("span", {}, shown.length > 1 ? "version " + shown[shown.length - 1].version : ""))];
}

function indices(found) {
  if (!found.length) return h("p", {class: "quiet"}, "No index. Filters and searches read the columns.");
  return h("ul", {class: "indices"}, found.map(each => h("li", {},
    h("div", {}, h("b", {}, each.name), h("span", {class: "badge"}, each.kind), each.unused && h("span", {class: "badge bad"}, "not used")),
    h("small", {}, `${each.columns.join(", ")} · ${each.rows} rows` + (each.size && ` · ${each.size}`)
      + (each.segments > 1 ? ` · ${each.segments} segments` : "") + (each.left && ` · ${each.left} rows not covered`)))));
}
