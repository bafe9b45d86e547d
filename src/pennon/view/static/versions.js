// The versions: what each did, and how two differ.
import { card, failure, h, later, put } from "./dom.js";
import { isFile, load } from "./source.js";
import { drawCell } from "./cells.js";

export function showVersions(root, table, state) {
  const detail = h("div", {class: "detail", "aria-live": "polite"}, h("p", {class: "quiet"},
    "Choose a version to see how it differs from the one before."));
  const compare = (before, after) => put(detail, later(load("/api/difference", {before, after}), found => difference(found)));
  const last = Number(state.get("last"));
  root.append(card("", isFile ? "" : chooser(table, compare), h("div", {class: "beside wide"},
    later(load("/api/versions", {limit: 25, last}), found => [timeline(found, table, state, compare),
      !isFile && (found.next || last) ? h("div", {class: "pager"}, last ? h("a", {class: "button plain", href: state.link("versions", {last: ""})}, "← Newest") : "",
        found.next ? h("a", {class: "button plain", href: state.link("versions", {last: found.next})}, "Older →") : "",
        h("span", {class: "quiet"}, `${found.count.toLocaleString("en")} versions, ${found.oldest} to ${found.newest}`)) : ""]), detail)));
}

function chooser(table, compare) {
  const number = (name, value) => h("input", {type: "text", inputmode: "numeric", name, value, "aria-label": name, class: "short"});
  const before = number("from version", Math.max(1, table.newest - 1)), after = number("to version", table.newest);
  return h("form", {class: "tools", onsubmit: event => { event.preventDefault(); compare(before.value, after.value); }},
    h("span", {class: "quiet"}, "Compare version"), before, h("span", {class: "quiet"}, "with"), after, h("button", {type: "submit"}, "Compare"));
}

function timeline(found, table, state, compare) {
  const list = h("ol", {class: "timeline"}, found.versions.map((each, i) => {
    const before = i + 1 < found.versions.length ? found.versions[i + 1].version : found.next;
    const choose = () => {
      for (const other of list.querySelectorAll(".chosen")) other.classList.remove("chosen");
      item.classList.add("chosen");
      if (before) compare(before, each.version);
    };
    const item = h("li", {class: each.version === table.version && "on"},
      h("button", {type: "button", class: "line", disabled: !before, onclick: choose, title: before ? "compare with the version before" : "the oldest version"},
        h("span", {class: "dot", "aria-hidden": "true"}), h("b", {class: "no"}, String(each.version)),
        h("span", {class: "badge " + (each.damaged ? "bad" : each.did.replaceAll(/[^a-z]/g, "-"))}, each.did), h("span", {class: "what"}, each.detail),
        h("small", {class: "when"}, each.time),
        !each.damaged && h("small", {class: "sums"}, `${each.rows_text} rows`, change(each.rows_change), ` · ${each.size}`, change(each.bytes_change))),
      !isFile && each.version !== table.version && !each.damaged && h("a", {class: "look", href: state.link("overview", {version: each.version})}, "open"));
    return item;
  }));
  return list;
}

function change(text) {
  return text ? h("span", {class: text.startsWith("+") ? "more" : "less"}, ` ${text}`) : "";
}

function difference(found) {
  const rows = h("div", {});
  const show = () => put(rows, later(load("/api/changed", {before: found.before, after: found.after}), changed));
  return [h("h2", {}, `Version ${found.before} → ${found.after}`),
    h("table", {class: "facts"}, h("tbody", {}, found.facts.map(([name, value, more]) =>
      h("tr", {}, h("th", {scope: "row"}, name), h("td", {class: "number"}, value), h("td", {class: "number quiet"}, more))))),
    changes("Columns", found.columns), changes("Indices", found.indices), changes("Settings", found.settings),
    isFile ? "" : h("button", {type: "button", class: "plain", onclick: show}, "Show the rows that changed"), rows];
}

function changes(title, lines) {
  if (!lines.length) return "";
  return [h("h3", {}, title), h("ul", {class: "changes"}, lines.map(([how, name, value]) =>
    h("li", {}, h("span", {class: "badge " + how}, how), h("b", {}, name), h("small", {}, value))))];
}

function changed(found) {
  if (!found.rows.length) return h("p", {class: "quiet"}, "No row changed.");
  return [h("div", {class: "scroll"}, h("table", {class: "data"}, h("thead", {}, h("tr", {}, found.columns.map(name => h("th", {scope: "col"}, name)))),
    h("tbody", {}, found.rows.map(row => h("tr", {}, row.map(cell => h("td", {}, drawCell(cell, null, "")))))))),
  found.more && h("p", {class: "quiet"}, "There are more; dataset.changes() returns all.")];
}
