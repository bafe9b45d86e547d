// Where the page's data come from: the server that the link named, or the answers that a file holds.

const held = document.getElementById("answers");
const answers = held && JSON.parse(held.textContent);
const KEY = "pennon-token";

export const isFile = Boolean(answers);

// The token stands behind the # of the link.  It is kept for this tab alone, and taken out of the address bar.
export function takeToken() {
  const found = /^#token=([\w-]+)$/.exec(location.hash);
  if (!found) return;
  sessionStorage.setItem(KEY, found[1]);
  history.replaceState(null, "", "#/");
}

function given(values) {
  return Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== 0)
    .map(([name, value]) => [name, String(value)]).sort((a, b) => (a[0] < b[0] ? -1 : 1));
}

function answerOf(path, values) {
  const found = answers[[path, ...given(values).map(([name, value]) => name + "=" + value)].join("|")];
  if (found === undefined) throw new Error("This file does not hold it. Run `pennon view` for the whole table.");
  return found;
}

async function request(path, values) {
  const query = new URLSearchParams(given(values)).toString();
  let response;
  try {
    response = await fetch(path + (query && "?" + query), {headers: {"X-Pennon-Token": sessionStorage.getItem(KEY) || ""}});
  } catch {
    throw new Error("The server of this page has ended. Start `pennon view` again, and open its link.");
  }
  if (response.ok) return response;
  throw new Error((await response.json().catch(() => ({}))).error || response.statusText);
}

// Returns the answer of an address as an object.
export async function load(path, values = {}) {
  const found = isFile ? answerOf(path, values) : await (await request(path, values)).json();
  if (found.error) throw new Error(found.error);
  return found;
}

// Returns an object URL of an image or a sound.
export async function loadMedia(values) {
  if (!isFile) return URL.createObjectURL(await (await request("/api/media", values)).blob());
  const found = answerOf("/api/media", values);
  const bytes = Uint8Array.from(atob(found.data), each => each.charCodeAt(0));
  return URL.createObjectURL(new Blob([bytes], {type: found.mime}));
}
