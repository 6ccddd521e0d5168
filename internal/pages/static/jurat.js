// Every page is whole without this file. It does three things: it keeps a courtroom in step with its trial,
// it sends a form once, and it copies.
"use strict";

// merge makes one element like another and touches nothing that is alike, so that focus, scroll position and what a screen
// reader has announced stay, and only what is new is new. The server has rendered both: there is one renderer.
function merge(now, then) {
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

// update makes an element like another, or, where the server sent only what is new of it, puts that in.
function update(now, then) {
  if ("patch" in then.dataset) patch(now, then);
  else merge(now, then);
}

// patch updates each element that comes again, wherever it stands, and inserts the others before the one that follows them.
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

function follow(main) {
  const source = new EventSource(main.dataset.events);
  let busy = false, again = false;
  async function refresh() {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    do {
      again = false;
      try {
        const news = new URL(location.href);
        news.searchParams.set("after", main.dataset.nth);
        const answer = await fetch(news, { headers: { Accept: "text/html" }, cache: "no-store" });
        if (!answer.ok) break; // the next event, or the reader, asks again
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const then = page.getElementById("main");
        if (!then) break;
        document.title = page.title;
        update(main, then);
        if (!main.dataset.events) source.close(); // the trial is over
      } catch {
        break; // no connection: EventSource tries again by itself, and then there is an event
      }
    } while (again);
    busy = false;
  }
  for (const type of ["open", "message", "submission_received", "phase_started", "juror_evaluated", "juror_absent", "consensus_checked",
    "round_started", "juror_statement", "round_completed", "judge_spoke", "final_judgment", "trial_closed", "trial_degraded"]) {
    source.addEventListener(type, refresh);
  }
}

const main = document.getElementById("main");
if (main && main.dataset.events) follow(main);

// A form is sent once, however often its button is pressed at once. The browser shows the answer to the last, and a link signs in once.
const sent = new WeakSet();
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (sent.has(form)) event.preventDefault();
  sent.add(form);
  setTimeout(() => sent.delete(form), 3000); // it may not have arrived
});

for (const button of document.querySelectorAll("button[data-copy]")) {
  if (!navigator.clipboard) continue; // the text can be selected all the same
  button.hidden = false;
  button.addEventListener("click", async () => {
    const from = document.getElementById(button.dataset.copy);
    await navigator.clipboard.writeText([...from.children].map((p) => p.textContent).join("\n\n"));
    const told = document.getElementById(button.dataset.copy + "-copied");
    told.textContent = told.dataset.done;
  });
}
