"use strict";

const view = document.getElementById("view");
const news = document.getElementById("news");
let token = sessionStorage.getItem("token");
let filter = "";
// Whether the part that comes next was opened by a link.
let isNew = false;
// Whatever belongs to the part that is shown ends with it.
let shown = new AbortController();

class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  const answer = await fetch(path, { ...options, headers, signal: options.signal ?? shown.signal });
  if (answer.status === 401) {
    askForToken();
    throw new Refused("a token is needed", 401);
  }
  if (!answer.ok) {
    const said = await answer.json().catch(() => null);
    throw new Refused(said?.error?.message ?? `the server answered ${answer.status}`, answer.status);
  }
  return answer;
}

function fill(name) {
  view.replaceChildren(document.getElementById(name).content.cloneNode(true));
  settle();
  return view.querySelector("form");
}

function askForToken() {
  const isWrong = token !== null;
  token = null;
  sessionStorage.removeItem("token");
  const form = fill("token");
  if (isWrong) form.querySelector(".error").textContent = "The server does not know this token.";
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    token = form.elements.token.value.trim();
    sessionStorage.setItem("token", token);
    route();
  });
  form.elements.token.focus();
}

// The title of the tab is the heading of the part. A part that was just opened is read from its heading on.
function settle() {
  const heading = view.querySelector("h1");
  document.title = heading ? `${heading.textContent} · consensus` : "consensus";
  if (!isNew || !heading) return;
  isNew = false;
  focusOn(heading);
  scrollTo(0, 0);
}

function focusOn(heading) {
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}

function tell(why) {
  if (why.name === "AbortError") return;
  news.textContent = why instanceof Refused ? why.message : "the server cannot be reached";
}

const pause = (ms, signal) =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });

// The list is fetched anew every two seconds, and only changes where it is different.
async function list({ signal }) {
  let before = "";
  while (!signal.aborted) {
    const html = await (await ask("/page/runs", { signal })).text();
    if (html !== before) {
      const focused = document.activeElement?.closest("tr, button");
      const key = focused?.dataset.run ?? focused?.dataset.filter;
      view.innerHTML = html;
      before = html;
      settle();
      for (const button of view.querySelectorAll("[data-filter]")) {
        button.addEventListener("click", () => ((filter = button.dataset.filter), sift()));
        if (key === button.dataset.filter && focused.matches("button")) button.focus();
      }
      if (focused?.matches("tr")) view.querySelector(`tr[data-run="${key}"] a`)?.focus();
      sift();
    }
    news.textContent = "";
    await pause(2000, signal);
  }
}

function sift() {
  let count = 0;
  for (const row of view.querySelectorAll("#runs tbody tr")) {
    row.hidden = filter !== "" && !row.dataset.flags.split(" ").includes(filter);
    count += row.hidden ? 0 : 1;
  }
  for (const button of view.querySelectorAll("[data-filter]"))
    button.setAttribute("aria-pressed", String(button.dataset.filter === filter));
  const status = view.querySelector("#count");
  if (status) status.textContent = count === 1 ? "1 run" : `${count} runs`;
}

// A run is fetched anew with each of its records.
async function run(id, { signal }) {
  let fetching = null;
  let again = false;
  let working = "";
  const showAtWork = () => {
    const part = document.getElementById("at-work");
    if (part) part.innerHTML = working;
  };
  const draw = async () => {
    const html = await (await ask(`/page/runs/${id}`, { signal })).text();
    const open = [...view.querySelectorAll("details[open]")].map((details) => details.id);
    const focused = document.activeElement?.closest("[id]")?.id;
    const acting = Boolean(document.activeElement?.closest(".actions"));
    const isAtHeading = Boolean(document.activeElement?.matches("h1"));
    view.innerHTML = html;
    settle();
    if (isAtHeading) focusOn(view.querySelector("h1"));
    showAtWork();
    for (const details of open) document.getElementById(details)?.setAttribute("open", "");
    if (focused && focused !== "view") document.querySelector(`#${CSS.escape(focused)} summary`)?.focus();
    for (const link of view.querySelectorAll('a[href^="#quote-"]')) link.addEventListener("click", jump);
    actions(id);
    if (acting) view.querySelector(".actions button")?.focus();
  };
  // While one answer is on its way, any number of records ask for one more.
  const redraw = () => {
    again = true;
    fetching ??= (async () => {
      while (again) {
        again = false;
        await draw();
      }
    })().finally(() => (fetching = null));
    return fetching;
  };
  await redraw();
  while (!signal.aborted) {
    const answer = await ask(`/page/runs/${id}/news`, { signal });
    if (answer.status === 204) break;
    for await (const { event, data } of events(answer.body)) {
      if (event === "record") {
        news.textContent = data;
        redraw().catch(tell);
      } else if (event === "at_work") {
        working = JSON.parse(data);
        showAtWork();
      }
    }
    if (view.querySelector(".outcome.open") === null) break;
    await pause(200, signal);
  }
  await redraw();
  news.textContent = "";
}

// A quote of the answer leads to its place without leaving the run.
function jump(event) {
  event.preventDefault();
  const place = document.getElementById(event.currentTarget.hash.slice(1));
  if (!place) return;
  for (const other of view.querySelectorAll("mark.here")) other.classList.remove("here");
  place.classList.add("here");
  place.tabIndex = -1;
  place.focus();
  place.scrollIntoView({ block: "center" });
}

function actions(id) {
  const is_open = view.querySelector(".outcome.open") !== null;
  const box = document.createElement("div");
  box.className = "actions";
  if (is_open) {
    const stop = document.createElement("button");
    stop.type = "button";
    stop.textContent = "Stop";
    stop.addEventListener("click", () => ask(`/v1/runs/${id}`, { method: "DELETE" }).catch(tell));
    box.append(stop);
  } else {
    const save = document.createElement("button");
    save.type = "button";
    save.textContent = "Journal";
    save.addEventListener("click", () => keep(id).catch(tell));
    box.append(save);
  }
  view.prepend(box);
}

async function keep(id) {
  const lines = await (await ask(`/v1/runs/${id}/journal`)).blob();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(lines);
  link.download = "journal.jsonl";
  link.click();
  URL.revokeObjectURL(link.href);
}

// The events of a stream. A browser's own reader of events sends no token.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const event = {};
      for (const line of part.split("\n")) {
        const at = line.indexOf(": ");
        if (at > 0) event[line.slice(0, at)] = line.slice(at + 2);
      }
      yield event;
    }
  }
}

async function begin() {
  // The form comes when its rolesets are there, so that nothing is typed into one that is replaced.
  const { data } = await (await ask("/v1/models")).json();
  const form = fill("new");
  const { model, task } = form.elements;
  for (const { id } of data) model.add(new Option(id.replace(/^consensus\//, ""), id));
  const describe = () => {
    const chosen = data.find(({ id }) => id === model.value);
    document.getElementById("about").textContent = chosen?.description ?? "";
  };
  model.addEventListener("change", describe);
  model.value = [...model.options].find((option) => option.text === "generalist_critic")?.value ?? model.value;
  describe();
  task.focus();
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    form.querySelector("button").disabled = true;
    send(form).catch((why) => {
      form.querySelector("button").disabled = false;
      if (why.name !== "AbortError") form.querySelector(".error").textContent = why.message;
    });
  });
}

async function send(form) {
  const { task, model, canonical, choices } = form.elements;
  const consensus = {};
  if (canonical.value) consensus.canonical = canonical.value;
  const allowed = choices.value.split("\n").map((line) => line.trim()).filter(Boolean);
  if (allowed.length > 0) consensus.choices = allowed;
  // With a key, the run goes on when this page is closed.
  const key = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const answer = await ask("/v1/chat/completions", {
    method: "POST",
    headers: { "Content-Type": "application/json", "Idempotency-Key": key },
    body: JSON.stringify({ model: model.value, stream: true, messages: [{ role: "user", content: task.value }], consensus }),
  });
  for await (const event of events(answer.body)) {
    if (!event.data) continue;
    const { id, error } = JSON.parse(event.data);
    if (error) throw new Refused(error.message);
    location.hash = `run=${id.replace(/^chatcmpl-/, "")}`;
    return;
  }
}

// A part goes on when the server is back.
async function keepOn(part, signal) {
  while (!signal.aborted) {
    try {
      return await part();
    } catch (why) {
      tell(why);
      if (why instanceof Refused && why.status < 429) return end(why);
      await pause(2000, signal).catch(() => null);
    }
  }
}

// A run that was stopped, or is unknown, has no page.
function end(why) {
  if (why.status !== 404 && why.status !== 410) return;
  const heading = document.createElement("h1");
  heading.textContent = why.status === 410 ? "The run was stopped" : "There is no such run";
  view.replaceChildren(heading);
  settle();
  news.textContent = "";
}

function route() {
  shown.abort();
  shown = new AbortController();
  const signal = shown.signal;
  const place = location.hash.slice(1);
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash.slice(1) === place) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  news.textContent = "";
  const id = /^run=([0-9a-f-]{36})$/.exec(place)?.[1];
  const part = () => (id ? run(id, { signal }) : place === "new" ? begin() : list({ signal }));
  keepOn(part, signal);
}

addEventListener("hashchange", () => {
  isNew = true;
  route();
});
route();
