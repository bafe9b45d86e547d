// The frame of the page: its head, its four parts, and the address of what is shown.
import { failure, h, put } from "./dom.js";
import { isFile, load, takeToken } from "./source.js";
import { showOverview } from "./overview.js";
import { showData } from "./data.js";
import { showLayout } from "./layout.js";
import { showVersions } from "./versions.js";

const PARTS = [["overview", "Overview", showOverview], ["data", "Data", showData], ["layout", "Layout", showLayout],
  ["versions", "Versions", showVersions]];

// What the address says: the part, and its settings.
class State {
  constructor(hash) {
    const [part, query] = hash.replace(/^#\/?/, "").split("?");
    this.part = PARTS.some(([name]) => name === part) ? part : "overview";
    this.values = new URLSearchParams(query || "");
    this.file = isFile;
  }
  get(name) { return this.values.get(name) || ""; }
  // Returns the address of a part with some settings changed; those of another part are left out.
  link(part, values) {
    const next = new URLSearchParams(part === this.part ? this.values : this.get("version") ? {version: this.get("version")} : {});
    for (const [name, value] of Object.entries(values)) value === "" || value === 0 ? next.delete(name) : next.set(name, String(value));
    const query = next.toString();
    return "/" + part + (query && "?" + query);
  }
  go(part, values) {
    const next = "#" + this.link(part, {...values, offset: ""});
    if (next === location.hash) show(); else location.hash = next;
  }
}

let shownVersion = null, shownTable = null;

async function show() {
  takeToken();
  const state = new State(location.hash);
  const version = Number(state.get("version")) || 0;
  const main = h("main", {id: "main", tabindex: "-1"});
  try {
    if (shownTable === null || shownVersion !== version) {
      shownTable = await (isFile ? load("/api/table", {version: heldVersion()}) : load("/api/table", {version}));
      shownVersion = version;
    }
  } catch (error) {
    put(document.body, h("main", {}, h("section", {class: "card alone"}, h("h1", {}, "Pennon"), failure(error))));
    return;
  }
  document.title = `${shownTable.name} · Pennon`;
  put(document.body, head(shownTable, state), main);
  const [, , draw] = PARTS.find(([name]) => name === state.part);
  draw(main, shownTable, state);
}

function heldVersion() {
  return Number(JSON.parse(document.getElementById("answers").textContent).version);
}

function head(table, state) {
  const uri = table.facts[0][1];
  return h("header", {class: "top"},
    h("div", {class: "brand"}, h("span", {class: "flag", "aria-hidden": "true"}), h("div", {class: "title"}, h("h1", {title: uri}, table.name), h("p", {class: "quiet", title: uri}, uri))),
    h("nav", {"aria-label": "parts of the page"}, PARTS.map(([name, label], i) => h("a", {href: state.link(name, name === state.part ? {} : {}),
      "aria-current": name === state.part && "page", title: `key ${i + 1}`}, label))),
    h("div", {class: "side"},
      h("a", {class: "version", title: `${table.time}; choose another`, href: state.link("versions", {})}, "version ", h("b", {}, String(table.version))),
      table.newest > table.version && !isFile && h("a", {class: "badge warn", href: state.link(state.part, {version: table.newest})}, `newest is ${table.newest}`),
      h("button", {type: "button", class: "plain theme", onclick: turn, title: "dark or light", "aria-label": "dark or light"}, "◐")));
}

// Dark or light: as the system has it, until the button was used.
function turn() {
  const isDark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = isDark ? "light" : "dark";
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog")) return;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) { if (event.key === "Escape") event.target.blur(); return; }
  const state = new State(location.hash);
  if (/^[1-4]$/.test(event.key)) location.hash = "#" + state.link(PARTS[Number(event.key) - 1][0], {});
  else if (event.key === "/" && document.getElementById("filter")) { event.preventDefault(); document.getElementById("filter").focus(); }
  else if (event.key === "n" || event.key === "p") {
    const link = document.querySelector(`a[data-key="${event.key}"]`);
    if (link) link.click();
  }
}

addEventListener("hashchange", show);
addEventListener("keydown", key);
show();
