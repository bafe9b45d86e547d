// Values of a table: as they stand in a row, and alone in a window.
import { failure, h, later, put } from "./dom.js";
import { load, loadMedia } from "./source.js";
import { sparkline } from "./draw.js";

const waitingImages = new IntersectionObserver(entries => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    waitingImages.unobserve(entry.target);
    entry.target.dispatchEvent(new Event("seen"));
  }
});

// Draws a value; `place` names it: {version, column, row}.
export function drawCell(cell, place, name) {
  const open = () => openCell(cell, place, name);
  if (cell.kind === "null") return h("span", {class: "null"}, "NULL");
  if (cell.kind === "number") return h("span", {class: "number"}, cell.text);
  if (cell.kind === "error") return h("span", {class: "failure"}, cell.text);
  if (cell.kind === "large") return h("span", {class: "quiet"}, cell.text);
  if (cell.kind === "bytes") return h("span", {class: "bytes"}, h("code", {}, cell.text), cell.size && h("small", {}, " " + cell.size));
  if (cell.kind === "text" && !cell.more && cell.text.length < 60) return h("span", {class: "text"}, cell.text);
  if (!place) return h("span", {class: "text"}, cell.text);
  if (cell.kind === "image") return h("button", {type: "button", class: "cell media", onclick: open, title: `${cell.name} ${cell.pixels}, ${cell.size}`},
    picture(place, `${cell.name} of ${name}`, "thumb"), h("small", {}, [cell.pixels, cell.size].filter(Boolean).join(" · ")));
  if (cell.kind === "audio") return h("button", {type: "button", class: "cell sound", onclick: open}, h("span", {class: "play", "aria-hidden": "true"}),
    h("span", {}, cell.name, h("small", {}, " " + cell.size)));
  if (cell.kind === "vector") return h("button", {type: "button", class: "cell vector", onclick: open, title: `${cell.dim} numbers, norm ${cell.norm}`},
    sparkline(cell.values, 96, 26), h("small", {}, `${cell.dim}d · ‖${cell.norm}‖`));
  return h("button", {type: "button", class: "cell " + cell.kind, onclick: open}, cell.text, cell.more && h("small", {}, ` … ${cell.more}`));
}

function picture(place, label, kind) {
  const image = h("img", {class: kind + " waiting", alt: label});
  const done = url => { image.classList.remove("waiting"); URL.revokeObjectURL(url); };
  image.addEventListener("seen", () => loadMedia(place).then(url => {
    image.onload = () => done(url);
    image.onerror = () => { done(url); image.replaceWith(h("span", {class: "quiet"}, "damaged")); };
    image.src = url;
  }, error => image.replaceWith(failure(error))));
  waitingImages.observe(image);
  return image;
}

// Shows one value in a window.
function openCell(cell, place, name) {
  const box = h("div", {class: "value"});
  const window_ = openWindow(name, box, ["row address " + place.row, cell.size, cell.pixels].filter(Boolean).join(" · "));
  if (cell.kind === "image") put(box, picture(place, name, "whole"));
  else if (cell.kind === "audio") put(box, later(loadMedia(place), url => {
    const sound = h("audio", {controls: true});
    sound.src = url;
    window_.addEventListener("close", () => { sound.pause(); URL.revokeObjectURL(url); });
    return sound;
  }));
  else put(box, later(load("/api/cell", place), drawWhole));
}

function drawWhole(cell) {
  if (cell.kind === "vector") return [sparkline(cell.values, 640, 160),
    h("p", {}, `${cell.dim} numbers, norm ${cell.norm}`),
    h("pre", {class: "wrap"}, cell.items.join("  ") + (cell.items.length < cell.dim ? "  …" : ""))];
  if (cell.tree) return h("div", {class: "tree"}, node(cell.tree, true));
  return [h("pre", {class: "wrap"}, cell.text), cell.more && h("p", {class: "quiet"}, `cut: the whole text has ${cell.more}`)];
}

function node(tree, isOpen) {
  const label = tree.label !== undefined && h("b", {}, tree.label + " ");
  if (!tree.children) return h("div", {class: "leaf"}, label, h("span", {}, tree.text));
  return h("details", {open: isOpen}, h("summary", {}, label, h("span", {class: "quiet"}, tree.text)),
    tree.children.map(child => node(child, false)), tree.hidden > 0 && h("div", {class: "leaf quiet"}, `… ${tree.hidden} more`));
}

// Opens a window over the page; Escape closes it.
export function openWindow(title, content, note) {
  const close = () => dialog.close();
  const dialog = h("dialog", {"aria-label": title},
    h("header", {}, h("div", {}, h("h2", {}, title), note && h("p", {class: "quiet"}, note)),
      h("button", {type: "button", class: "plain", onclick: close, "aria-label": "close"}, "✕")), content);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", event => event.target === dialog && close());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
