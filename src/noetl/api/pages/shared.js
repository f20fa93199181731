// What both pages use. Text is always set as text: what a playbook says is never markup here.
"use strict";

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}

function key() {
  return sessionStorage.getItem("noetl-key");
}

async function ask(path, body) {
  const headers = {};
  if (key()) headers.Authorization = `Bearer ${key()}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const method = body === undefined ? "GET" : "POST";
  const answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const told = await answer.json().catch(() => ({}));
  if (answer.ok) return told;
  const error = new Error(told.detail || `the server answers with ${answer.status}`);
  error.status = answer.status;
  throw error;
}

function table(heads, rows) {
  const head = heads.map((text) => make("th", text.startsWith("#") ? { class: "number" } : {}, text.replace("#", "")));
  const cells = (row) => row.map((cell, at) =>
    cell instanceof HTMLTableCellElement ? cell : make("td", heads[at].startsWith("#") ? { class: "number" } : {}, cell ?? ""));
  return make("table", {}, make("thead", {}, make("tr", {}, head)),
    make("tbody", {}, rows.map((row) => make("tr", {}, cells(row)))));
}

function askForKey(again) {
  const field = make("input", { type: "password", placeholder: "NOETL_API_KEY", "aria-label": "key", autofocus: "" });
  const take = (event) => {
    event.preventDefault();
    sessionStorage.setItem("noetl-key", field.value.trim());
    again();
  };
  return make("form", { class: "row", onsubmit: take },
    make("span", {}, "This server has a key. It stays in this tab:"), field, make("button", {}, "open"));
}
