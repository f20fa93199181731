// Executions as they run: a list, and one of them in full. Everything shown comes from the API.
const REFRESH_MILLISECONDS = 2000;
const OPEN = ["PENDING", "RUNNING", "PAUSED"];
const EVENTS_SHOWN = 200;
const main = document.querySelector("main");
const trouble = document.querySelector(".trouble");
let timer = null;
let turn = 0;
let known = ""; // what is drawn: the same again is left as it is, with what a reader has marked in it

const when = (text) => make("span", { class: "time" }, text ? text.slice(0, 19).replace("T", " ") : "");
const took = ({ duration_seconds: spent, duration_human: words }) =>
  spent == null ? "" : spent < 60 ? `${spent.toFixed(spent < 10 ? 2 : 1)} s` : words;
const status = (text) => make("span", { class: `status ${text}` }, text.toLowerCase());
const link = (id) => make("a", { class: "mono", href: `#${id}` }, id);

function bar(loop) {
  const total = loop.total == null ? Math.max(loop.done, 1) : Math.max(loop.total, 1);
  const share = Math.min(100, (100 * loop.done) / total);
  const filled = make("i", { class: share < 100 ? "busy" : "" });
  filled.style.width = `${share}%`;
  return make("div", { class: "bar", title: `${Math.round(share)} %` }, filled);
}

function rowsOf(loop) {
  const failed = loop.failed ? `, ${loop.failed.toLocaleString()} failed` : "";
  const total = loop.total == null ? "" : ` of ${loop.total.toLocaleString()}`;
  return `${loop.done.toLocaleString()}${total} rows${failed}`;
}

const askForList = () => Promise.all([ask("/api/executions?limit=50"), ask("/api/catalog/list", {})]);

function list([executions, catalogue]) {
  const newest = new Map();
  for (const entry of catalogue.entries) {
    if (!newest.has(entry.path) || newest.get(entry.path).version < entry.version) newest.set(entry.path, entry);
  }
  const rows = executions.map((each) => [
    link(each.execution_id), status(each.status), each.path, when(each.start_time), took(each), String(each.event_count),
    make("td", { class: `told ${each.status === "FAILED" ? "FAILED" : "note"}`, title: each.error },
      OPEN.includes(each.status) ? each.loop_progress.map(bar) : (each.error || ""))]);
  const playbooks = [...newest.values()].map((entry) => [
    make("span", { class: "mono" }, entry.path), String(entry.version), entry.description || "",
    make("button", { onclick: () => { location.hash = `run/${entry.path}`; } }, "run…")]);
  return [
    make("h2", {}, "Executions"),
    rows.length ? table(["id", "status", "playbook", "started (UTC)", "#took", "#events", ""], rows)
      : make("p", { class: "note" }, "None yet. Run one: ", make("code", {}, "noetl run FILE")),
    make("h2", {}, "Playbooks"),
    playbooks.length ? table(["path", "#version", "", ""], playbooks)
      : make("p", { class: "note" }, "None yet. Register one: ", make("code", {}, "noetl playbooks register FILE"))];
}

function actions(shown) {
  const act = (name, body) => async () => {
    if (name === "cancel" && !confirm(`Cancel ${shown.path}, execution ${shown.execution_id}? What runs is stopped.`)) return;
    try {
      await ask(`/api/executions/${shown.execution_id}/${name}`, body || {});
    } catch (error) {
      trouble.textContent = error.message;
      return;
    }
    draw();
  };
  const names = { RUNNING: ["pause", "cancel"], PENDING: ["cancel"], PAUSED: ["resume", "cancel"], FAILED: ["retry"], CANCELLED: ["retry"] };
  return make("div", { class: "row" }, (names[shown.status] || []).map((name) => make("button", { onclick: act(name) }, name)));
}

async function askForOne(place) {
  const id = encodeURIComponent(place);
  const [shown, why] = await Promise.all([
    ask(`/api/executions/${id}?include_events=false&page_size=${EVENTS_SHOWN}`), ask(`/api/executions/${id}/explain`)]);
  // The last page may be a short one: with the one before it there are enough.
  const last = shown.pagination.total_pages;
  const pages = await Promise.all([last - 1, last].filter((page) => page > 0).map(
    (page) => ask(`/api/executions/${id}/events?page=${page}&page_size=${EVENTS_SHOWN}`)));
  return [{ ...shown, events: pages.flatMap((page) => page.events).slice(-EVENTS_SHOWN) }, why];
}

function one(id, [shown, why]) {
  const loops = shown.loop_progress.map((loop) => [loop.step, loop.mode || "", make("td", {}, bar(loop)), rowsOf(loop)]);
  const events = shown.events.map((event) => [
    String(event.stream_version), when(event.created_at), make("span", { class: "mono" }, event.event_type), event.node_name || ""]);
  const total = shown.event_count;
  return [
    make("p", {}, make("a", { href: "#" }, "← executions")),
    make("h2", {}, `${shown.path} `, status(shown.status)),
    make("p", { class: "note" }, `${id} · `, when(shown.start_time), [" UTC", took(shown), `${total} events`].filter(Boolean).join(" · ")),
    ...why.sentences.map((sentence) => make("p", {}, sentence)),
    actions(shown),
    ...(shown.error ? [make("h2", {}, "Error"), make("pre", { class: "FAILED" }, shown.error)] : []),
    ...(loops.length ? [make("h2", {}, "Loops"), table(["step", "mode", "", "rows"], loops)] : []),
    ...(shown.result == null ? [] : [make("h2", {}, "Result"), make("pre", {}, JSON.stringify(shown.result, null, 2))]),
    make("h2", {}, "Events"),
    table(["#", "time (UTC)", "event", "step"], events),
    total > events.length ? make("p", { class: "note" }, `the newest ${events.length} of ${total}; all: noetl executions events ${id} --all`) : null];
}

function form(path) {
  const payload = make("textarea", { "aria-label": "payload", spellcheck: "false" }, "{}");
  const start = async (event) => {
    event.preventDefault();
    try {
      const begun = await ask("/api/execute", { path, payload: JSON.parse(payload.value || "{}") });
      location.hash = begun.execution_id;
    } catch (error) {
      trouble.textContent = error.message;
    }
  };
  return [
    make("p", {}, make("a", { href: "#" }, "← executions")),
    make("h2", {}, `Run ${path}`),
    make("form", { onsubmit: start }, make("p", {}, "Values of the workload, as JSON:"), payload,
      make("p", { class: "row" }, make("button", {}, "run")))];
}

function placeOf(hash) {
  try {
    return decodeURIComponent(hash);
  } catch {
    return hash; // a % that means nothing: the server says that there is no such thing
  }
}

async function draw() {
  clearTimeout(timer);
  const mine = ++turn;
  const place = placeOf(location.hash.slice(1));
  const isForm = place.startsWith("run/");
  let isSettled = isForm; // nothing changes any more, unless somebody asks for it here
  try {
    const told = isForm ? null : place ? await askForOne(place) : await askForList();
    if (mine !== turn) return;
    isSettled = isForm || (place !== "" && !OPEN.includes(told[0].status));
    trouble.textContent = "";
    const seen = JSON.stringify([place, told]);
    if (seen !== known) {
      const drawn = isForm ? form(place.slice(4)) : place ? one(place, told) : list(told);
      main.replaceChildren(...drawn.filter(Boolean));
      known = seen;
    }
  } catch (error) {
    if (mine !== turn) return;
    trouble.textContent = error.status === 401 && !key() ? "" : error.message;
    known = "";
    if (error.status === 401) {
      main.replaceChildren(askForKey(draw));
      return;
    }
  }
  if (!isSettled) timer = setTimeout(() => (document.hidden ? wait() : draw()), REFRESH_MILLISECONDS);
}

function wait() {
  document.addEventListener("visibilitychange", draw, { once: true });
}

addEventListener("hashchange", draw);
draw();
