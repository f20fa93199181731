// A page's script without a browser: as much of a document as it uses, and the real server to ask.
// Takes {script, address, hash, click} on stdin; says what was drawn, asked and planned.
"use strict";
const vm = require("node:vm");
const input = JSON.parse(require("node:fs").readFileSync(0, "utf-8"));

class Element {
  constructor(tag) {
    Object.assign(this, { tag, children: [], listeners: {}, style: {} });
  }
  setAttribute() {}
  addEventListener(name, listener) { this.listeners[name] = listener; }
  append(child) { this.children.push(child); }
  replaceChildren(...children) { this.children = children; }
  set textContent(text) { this.children = [text]; }
  get textContent() { return this.children.map((each) => each.textContent ?? each).join(" "); }
  all() { return [this, ...this.children.flatMap((each) => (each instanceof Element ? each.all() : []))]; }
}
class Cell extends Element {}

const main = new Element("main");
const trouble = new Element("div");
const timers = new Set();
const asked = [];
const questions = [];
const page = vm.createContext({
  document: {
    querySelector: (wanted) => (wanted === "main" ? main : trouble),
    createElement: (tag) => (tag === "td" ? new Cell(tag) : new Element(tag)),
  },
  HTMLTableCellElement: Cell,
  location: { hash: input.hash },
  sessionStorage: { getItem: () => null },
  addEventListener: () => {},
  setTimeout: (later) => { timers.add(later); return later; },
  clearTimeout: (later) => timers.delete(later),
  confirm: (question) => { questions.push(question); return false; },
  fetch: (path, options) => {
    asked.push(`${options.method} ${path}`);
    return fetch(input.address + path, options);
  },
});

async function run() {
  vm.runInContext(input.script, page);
  await page.draw();
  const button = main.all().find((each) => each.tag === "button" && each.textContent === input.click);
  asked.length = input.click ? 0 : asked.length;
  if (button) await button.listeners.click();
  const rows = main.all().filter((each) => each.tag === "tr").map((each) => each.textContent);
  const told = { text: main.textContent, trouble: trouble.textContent, rows, timers: timers.size, asked, questions };
  process.stdout.write(JSON.stringify(told));
}

run();
