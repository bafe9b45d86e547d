// Small drawings: curves of vectors, bars, colours.
import { h, s } from "./dom.js";

// Draws the values of a vector as a curve around 0; gaps are values that are no finite numbers.
export function sparkline(values, width, height) {
  const finite = values.filter(each => each !== null);
  const top = Math.max(...finite.map(Math.abs), 1e-12);
  const x = i => (values.length < 2 ? 0 : (i / (values.length - 1)) * (width - 2)) + 1;
  const y = value => height / 2 - (value / top) * (height / 2 - 2);
  let path = "", pen = "M";
  values.forEach((value, i) => {
    if (value === null) { pen = "M"; return; }
    path += pen + x(i).toFixed(1) + " " + y(value).toFixed(1);
    pen = "L";
  });
  return s("svg", {class: "spark", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true"},
    s("line", {x1: 0, x2: width, y1: height / 2, y2: height / 2, class: "axis"}), s("path", {d: path || "M0 0"}));
}

// A bar that fills a share of its place.
export function bar(share, kind = "") {
  const inner = h("span", {class: "fill " + kind});
  inner.style.setProperty("--share", (Math.max(0, Math.min(1, share)) * 100).toFixed(2) + "%");
  return h("span", {class: "bar", "aria-hidden": "true"}, inner);
}

// Draws one column for each item {value, label, on, href}: heights from 0 to the largest value.
export function columnsChart(items, height, label) {
  const most = Math.max(...items.map(each => each.value), 1);
  return h("div", {class: "chart", role: "group", "aria-label": label}, items.map(item => {
    const inner = h("span", {class: "stick"});
    inner.style.setProperty("--share", Math.max(1.5, (item.value / most) * 100).toFixed(2) + "%");
    const properties = {class: "slot" + (item.on ? " on" : ""), title: item.label, "aria-label": item.label};
    return item.href ? h("a", {...properties, href: item.href}, inner)
      : h("button", {...properties, type: "button", onclick: item.click}, inner);
  }));
}

const HUES = [222, 160, 32, 280, 190, 345, 95, 255, 10, 130, 310, 60];

// Returns one colour for each name, the same on every page of a table.
export function hues(names) {
  const known = new Map();
  [...new Set(names)].sort().forEach((name, i) => known.set(name, HUES[i % HUES.length]));
  return known;
}
