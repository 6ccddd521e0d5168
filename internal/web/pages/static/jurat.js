// Every page works without this file. It updates a courtroom during its trial, sends each form once, and copies.
"use strict";

// merge makes one element equal to another and changes only the parts that differ. So focus, scroll position and what a screen
// reader has announced stay. Only the server renders HTML.
function merge(now, then) {
  if (now.dataset?.loaded && now.dataset.whole === then.dataset?.whole) return; // the reader has the whole text of which this is the beginning
  attributes(now, then);
  const known = new Map([...now.children].filter((c) => c.id).map((c) => [c.id, c]));
  let at = now.firstChild;
  for (const next of [...then.childNodes]) {
    const same = next.id ? known.get(next.id) : alike(at, next) ? at : null;
    if (!same) {
      now.insertBefore(document.importNode(next, true), at);
      continue;
    }
    if (same === at) at = at.nextSibling;
    else now.insertBefore(same, at);
    if (same.isEqualNode(next)) continue;
    if (same.nodeType === Node.ELEMENT_NODE) merge(same, next);
    else same.data = next.data;
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

function attributes(now, then) {
  for (const a of [...now.attributes]) {
    if (!then.hasAttribute(a.name) && a.name !== "open") now.removeAttribute(a.name);
  }
  for (const a of then.attributes) {
    if (a.name !== "data-patch" && now.getAttribute(a.name) !== a.value) now.setAttribute(a.name, a.value);
  }
}

// update makes an element equal to another. If the server sent only its new parts, it inserts these.
function update(now, then) {
  if ("patch" in then.dataset) patch(now, then);
  else merge(now, then);
}

// patch updates each element that exists already, wherever it is, and inserts the others before the element that follows them.
function patch(now, then) {
  attributes(now, then);
  let before = null;
  for (const next of [...then.children].reverse()) {
    const same = document.getElementById(next.id);
    if (!same) {
      before = now.insertBefore(document.importNode(next, true), before);
      continue;
    }
    update(same, next);
    if (same.parentNode === now) before = same;
  }
}

function alike(a, b) {
  return a && !a.id && a.nodeType === b.nodeType && a.nodeName === b.nodeName;
}

// What runs while a trial runs: the time, and the view, which follows what is said if the reader wants that. The server's
// answer replaces the elements, so their state is kept here.
let following = false, seen = 0;

function lively() {
  const button = document.querySelector(".follow");
  const said = document.querySelectorAll("#discussion > .statement");
  if (button) {
    button.hidden = false;
    button.setAttribute("aria-pressed", following);
    button.onclick = () => {
      following = !following;
      seen = -1;
      lively();
    };
  }
  if (following && said.length !== seen) {
    (said[said.length - 1] ?? document.getElementById("jury")).scrollIntoView({ block: "center" });
  }
  seen = said.length;
  tick();
}

function tick() {
  const clock = document.querySelector(".clock[data-since]");
  if (!clock) return;
  const seconds = Math.max(0, Math.round((Date.now() - new Date(clock.dataset.since)) / 1000));
  clock.textContent = [seconds / 3600, seconds / 60 % 60, seconds % 60].map((n) => String(Math.floor(n)).padStart(2, "0")).join(":");
}

function follow(main) {
  const source = new EventSource(main.dataset.events);
  let busy = false, again = false, asked = Date.now();
  async function refresh() {
    asked = Date.now();
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    do {
      again = false;
      try {
        const news = new URL(location.href);
        if (main.dataset.nth) news.searchParams.set("after", main.dataset.nth);
        const answer = await fetch(news, { headers: { Accept: "text/html" }, cache: "no-store" });
        if (!answer.ok) break; // the next event, or the reader, starts a new request
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const then = page.getElementById("main");
        if (!then) break;
        document.title = page.title;
        update(main, then);
        lively();
        if (!main.dataset.events) source.close(); // the trial is over
      } catch {
        break; // no connection: EventSource reconnects by itself, and then an event follows
      }
    } while (again);
    busy = false;
  }
  for (const type of ["open", "message", "submission_received", "phase_started", "juror_evaluated", "juror_absent", "consensus_checked",
    "round_started", "juror_statement", "round_completed", "judge_spoke", "final_judgment", "trial_closed", "trial_degraded", "recorded"]) {
    source.addEventListener(type, refresh);
  }
  // That a trial is stopped, broken off or continued, and its place in the queue, are no events of the trial.
  setInterval(() => {
    if (main.dataset.events && main.dataset.nth && document.visibilityState === "visible" && Date.now() - asked > quiet) refresh();
  }, 1000);
}

const quiet = 5000; // milliseconds without an event, after which the page asks by itself

const main = document.getElementById("main");
if (main && main.dataset.events) {
  follow(main);
  lively();
  setInterval(tick, 1000);
}

// A text of which the page has only the beginning is fetched when the reader asks for it. Without this, the link leads to its page.
const loads = new WeakMap();

async function fetched(address) {
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  if (!answer.ok) throw new Error(answer.statusText);
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

async function load(cut) {
  try {
    const [address, part] = cut.dataset.whole.split("#");
    const whole = document.importNode((await fetched(address)).getElementById(part), true);
    whole.removeAttribute("id");
    whole.classList.add("long");
    for (const [name, value] of [["tabindex", "0"], ["role", "group"], ["aria-label", cut.querySelector(".said").getAttribute("aria-label") ?? cut.querySelector(".rest a").textContent]]) whole.setAttribute(name, value);
    cut.dataset.loaded = "yes";
    cut.replaceChildren(whole);
    return whole;
  } catch {
    loads.delete(cut); // the next attempt starts anew
    const told = cut.querySelector('[role="status"]');
    told.textContent = told.dataset.failed;
    return null;
  }
}

function whole(cut) {
  if (!loads.has(cut)) loads.set(cut, load(cut));
  return loads.get(cut);
}

document.addEventListener("click", async (event) => {
  const link = event.target.closest(".cut > .rest a");
  if (!link || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  (await whole(link.closest(".cut")))?.focus({ preventScroll: true });
});

const cuts = (within) => [...(within?.querySelectorAll(".cut:not([data-loaded])") ?? [])];

// A link to a message opens what is folded in it, and loads what is not there.
function unfold(message) {
  for (const folded of message?.querySelectorAll("details.result") ?? []) folded.open = true;
  cuts(message).forEach(whole);
}
addEventListener("hashchange", () => unfold(document.getElementById(location.hash.slice(1))));
if (location.hash.startsWith("#message-")) unfold(document.getElementById(location.hash.slice(1)));

// The field that finds a text in the conversation, and the way from one cited message to the next. The server searches the texts that
// the page does not have.
const find = document.querySelector("form.find");
if (find) {
  const field = find.querySelector("input"), told = find.querySelector('[role="status"]');
  let last = null, elsewhere = null;
  const all = () => [...document.querySelectorAll(".conversation > .message")];
  async function ask(text) {
    try {
      const page = await fetched(find.action + "?find=" + encodeURIComponent(text));
      return new Set([...page.querySelectorAll("[data-message]")].map((m) => "message-" + m.dataset.message));
    } catch {
      return null;
    }
  }
  const matches = {
    found: (message) => field.value !== "" && (message.textContent.toLowerCase().includes(field.value.toLowerCase()) || elsewhere?.has(message.id)),
    cited: (message) => message.querySelector(".cited:not([hidden])") !== null,
  };
  async function go(which) {
    let partly = false;
    if (which === "found" && field.value !== "" && cuts(document.querySelector(".conversation")).length) {
      elsewhere ??= await ask(field.value);
      partly = elsewhere === null;
    }
    const places = all().filter(matches[which]);
    const after = last ? places.findIndex((m) => last.compareDocumentPosition(m) & Node.DOCUMENT_POSITION_FOLLOWING) : 0;
    const at = Math.max(after, 0);
    told.textContent = (places.length ? `${at + 1} / ${places.length}` : "0") + (partly ? " " + told.dataset.partly : "");
    if (!places.length) return;
    last = places[at];
    unfold(last);
    last.scrollIntoView({ block: "start" });
    for (const message of document.querySelectorAll(".message.here")) message.classList.remove("here");
    last.classList.add("here");
  }
  field.addEventListener("input", () => { last = elsewhere = null; });
  find.addEventListener("submit", (event) => {
    event.preventDefault();
    event.stopPropagation();
    go("found");
  });
  const cited = find.querySelector('[data-go="cited"]');
  cited.addEventListener("click", () => go("cited"));
  cited.hidden = false;
}

// The reviewer's keys. A key chooses a button of the form; it is sent with the reason. Keys are left alone while somebody types, and
// with Ctrl, Alt or Meta, which belong to browsers and screen readers.
const deciding = document.querySelector("form.decide");
let chosen = null;

function choose(button) {
  chosen = button;
  for (const b of deciding.querySelectorAll("button[data-key]")) b.setAttribute("aria-pressed", b === button);
  const told = deciding.querySelector(".chosen");
  told.textContent = told.dataset.says + " " + button.textContent;
  // The focus moves when the key is up: otherwise its letter could go into the text.
  document.addEventListener("keyup", () => deciding.querySelector(button.dataset.key === "c" ? "#text" : "#reason").focus(), { once: true });
}

document.addEventListener("keydown", (event) => {
  if (event.repeat || event.isComposing) return;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && deciding && deciding.contains(event.target)) {
    event.preventDefault();
    const told = deciding.querySelector(".chosen");
    if (chosen) deciding.requestSubmit(chosen);
    else told.textContent = told.dataset.lacks;
    return;
  }
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest('input:not([type="checkbox"]), textarea, select, [contenteditable]')) return;
  const key = event.key.toLowerCase();
  const button = deciding && /^[a-z]$/.test(key) ? deciding.querySelector(`button[data-key="${key}"]`) : null;
  const link = key === "k" ? document.querySelector('a[rel="prev"]') : key === "j" || key === "n" ? document.querySelector('a[rel="next"], .waiting a') : null;
  if (!button && !link) return;
  event.preventDefault();
  if (button) choose(button);
  else link.click();
});

// The button that marks every case, or none if all are marked.
const markAll = document.querySelector(".mark-all");
if (markAll) {
  const boxes = [...document.querySelectorAll('.waiting input[name="case"]')];
  markAll.hidden = boxes.length < 2;
  markAll.addEventListener("click", () => {
    const all = boxes.every((box) => box.checked);
    for (const box of boxes) box.checked = !all;
  });
}

// A form is sent once, even if its button is pressed twice. The browser would show the second answer, and a link signs in only once.
const sent = new WeakSet();
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (sent.has(form)) event.preventDefault();
  sent.add(form);
  setTimeout(() => sent.delete(form), 3000); // the request may have failed
});

for (const button of document.querySelectorAll("button[data-copy]")) {
  if (!navigator.clipboard) continue; // the reader can still select the text
  button.hidden = false;
  button.addEventListener("click", async () => {
    const from = document.getElementById(button.dataset.copy);
    await navigator.clipboard.writeText([...from.children].map((p) => p.textContent).join("\n\n"));
    const told = document.getElementById(button.dataset.copy + "-copied");
    told.textContent = told.dataset.done;
  });
}
