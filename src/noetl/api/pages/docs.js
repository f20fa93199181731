// The API as its own document describes it.
const main = document.querySelector("main");
const trouble = document.querySelector(".trouble");

const named = (schema, all) => (schema && schema.$ref ? all[schema.$ref.split("/").pop()] : schema);

function operation(path, method, told, all) {
  const parameters = told.parameters.map((each) => [
    make("code", {}, each.name), each.in, each.required ? "required" : "", (each.schema && each.schema.type) || ""]);
  const body = told.requestBody && Object.values(told.requestBody.content)[0].schema;
  const good = Object.entries(told.responses).find(([code]) => code.startsWith("2"));
  const gives = good && good[1].content && Object.values(good[1].content)[0].schema;
  const shown = (title, schema) => (schema ? [make("p", { class: "note" }, title),
    make("pre", {}, JSON.stringify(named(schema, all), null, 2))] : []);
  const name = method.toUpperCase();
  return make("details", { id: told.operationId },
    make("summary", {}, make("span", { class: `mono ${name}` }, name), make("code", {}, path), ` ${told.summary}`),
    make("div", {}, parameters.length ? table(["parameter", "in", "", "type"], parameters) : null,
      shown("Body", body), shown("Answer", gives)));
}

async function draw() {
  try {
    const told = await ask("/openapi.json");
    const groups = new Map();
    for (const [path, methods] of Object.entries(told.paths)) {
      for (const [method, each] of Object.entries(methods)) {
        const group = path.startsWith("/api/") ? each.tags[0] : "server";
        if (!groups.has(group)) groups.set(group, []);
        groups.get(group).push(operation(path, method, each, told.components.schemas));
      }
    }
    const parts = [...groups].flatMap(([name, all]) => [make("h2", {}, name), ...all]);
    main.replaceChildren(make("p", { class: "note" },
      "With NOETL_API_KEY set, callers send Authorization: Bearer KEY. Work, stages, frames and internal want NOETL_INTERNAL_KEY. ",
      "Errors are problem documents with a code. The same for programs: ", make("a", { href: "/openapi.json" }, "openapi.json")), ...parts);
    trouble.textContent = "";
  } catch (error) {
    trouble.textContent = error.status === 401 && !key() ? "" : error.message;
    if (error.status === 401) main.replaceChildren(askForKey(draw));
  }
}

draw();
