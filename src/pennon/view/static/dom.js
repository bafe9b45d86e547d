// Elements made by hand.  Text goes through text nodes only: no value of a table is ever read as markup.

const PLAIN = new Set(["class", "id", "for", "type", "name", "value", "placeholder", "title", "role", "tabindex", "scope",
  "colspan", "autocomplete", "spellcheck", "inputmode", "controls", "open", "checked", "disabled", "hidden", "selected",
  "alt", "list"]);

// Makes an element: h("p", {class: "note"}, "text", child, ...).  Properties on… are listeners; href leads to this page only.
export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "href") element.setAttribute("href", "#" + value);
    else if (PLAIN.has(name) || name.startsWith("aria-") || name.startsWith("data-")) {
      element.setAttribute(name, value === true ? "" : String(value));
    } else throw new Error("no such property: " + name);
  }
  return fill(element, children);
}

const SVG = "http://www.w3.org/2000/svg";

// Makes an element of a drawing.
export function s(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, String(value));
  return fill(element, children);
}

function fill(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false || child === "") continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

// Puts children in place of all that an element has.
export function put(element, ...children) {
  element.replaceChildren();
  return fill(element, children);
}

// Returns a box that shows what `make` returns once `wait` is done, and the error if it fails.
export function later(wait, make, name = "div") {
  const box = h(name, {class: "waiting", "aria-busy": "true"}, h("span", {class: "quiet"}, "loading …"));
  wait.then(found => put(box, make(found)), error => put(box, failure(error)))
    .finally(() => { box.classList.remove("waiting"); box.removeAttribute("aria-busy"); });
  return box;
}

export function failure(error) {
  return h("p", {class: "failure", role: "alert"}, error.message || String(error));
}

export function card(title, ...children) {
  return h("section", {class: "card"}, title && h("h2", {}, title), ...children);
}
