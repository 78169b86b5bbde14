// HTML with inline style and script. Their hashes are not needed, because no part of the page comes from a
// request.
#include "page.h"

namespace halyard::tools::serve {

const std::string_view kPageHeaders =
    "Content-Security-Policy: default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Cache-Control: no-store\r\n";

const std::string_view kPage = R"html(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Halyard</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 60em; padding: 0 1em; color: #222; }
h1 { font-size: 1.4em; } h2 { font-size: 1.1em; margin: 0; }
section { border: 1px solid #bbb; border-radius: 6px; padding: 1em; margin: 1em 0; }
.ready { color: #176b2c; } .down { color: #a01818; }
label { display: block; margin: .6em 0; } label span { display: inline-block; min-width: 16em; }
input { font: inherit; width: 24em; max-width: 100%; }
input.shape { width: 8em; }
button { font: inherit; padding: .2em 1em; }
pre { background: #f3f3f3; padding: .6em; overflow: auto; white-space: pre-wrap; }
</style>
</head>
<body>
<h1>Halyard <small id="server"></small></h1>
<p><a href="/v2">/v2</a> is the Open Inference Protocol, <a href="/metrics">/metrics</a> are counters for Prometheus.</p>
<div id="models">Loading the list of models…</div>
<script>
"use strict";
const make = (tag, text, parent) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
};
const get = async (path) => (await fetch(path)).json();
const count = (shape) => shape.reduce((all, size) => all * size, 1);
const numbers = (text) => text.split(/[\s,]+/).filter((word) => word !== "").map((word) => {
  if (word === "true") return true;
  if (word === "false") return false;
  const number = Number(word);
  return Number.isFinite(number) ? number : word;
});

const addForm = (section, path, metadata) => {
  const fields = metadata.inputs.map((input) => {
    const label = make("label", undefined, section);
    make("span", `${input.name}: ${input.datatype} [${input.shape.join(", ")}]`, label);
    const shape = make("input", undefined, label);
    shape.className = "shape";
    shape.setAttribute("aria-label", `shape of ${input.name}`);
    shape.value = input.shape.map((size) => size < 0 ? 1 : size).join(",");
    const data = make("input", undefined, label);
    data.setAttribute("aria-label", `numbers of ${input.name}`);
    data.placeholder = "numbers, or one for all elements";
    data.value = input.datatype === "BOOL" ? "true" : "1";
    return { input, shape, data };
  });
  const button = make("button", "Try it", section);
  const answer = make("pre", undefined, section);
  answer.hidden = true;
  button.addEventListener("click", async () => {
    button.disabled = true;
    answer.hidden = false;
    try {
      const inputs = fields.map(({ input, shape, data }) => {
        const sizes = numbers(shape.value);
        let values = numbers(data.value);
        if (values.length === 1) values = new Array(count(sizes)).fill(values[0]);
        return { name: input.name, shape: sizes, datatype: input.datatype, data: values };
      });
      const begin = performance.now();
      const response = await fetch(path + "/infer", { method: "POST", body: JSON.stringify({ inputs }) });
      const result = await response.json();
      const time = (performance.now() - begin).toFixed(1);
      answer.textContent = result.error ? `${response.status}: ${result.error}`
        : result.outputs.map((output) => `${output.name}: ${output.datatype} [${output.shape.join(", ")}]\n` +
            output.data.slice(0, 1000).join(" ") + (output.data.length > 1000 ? " …" : "")).join("\n") + `\n(${time} ms)`;
    } catch (error) {
      answer.textContent = String(error);
    }
    button.disabled = false;
  });
};

const show = async () => {
  const place = document.getElementById("models");
  document.getElementById("server").textContent = (await get("/v2")).version;
  const { models } = await get("/v2/models");
  place.textContent = models.length ? "" : "No models are served.";
  for (const name of models) {
    const path = "/v2/models/" + encodeURIComponent(name);
    const section = make("section", undefined, place);
    make("h2", name, section);
    const state = make("p", "…", section);
    const ready = await fetch(path + "/ready");
    state.textContent = ready.ok ? "ready" : "not ready";
    state.className = ready.ok ? "ready" : "down";
    const metadata = await get(path);
    if (metadata.error) { make("p", metadata.error, section); continue; }
    make("p", `versions: ${metadata.versions.join(", ")}; outputs: ` +
      metadata.outputs.map((output) => `${output.name}: ${output.datatype} [${output.shape.join(", ")}]`).join(", "), section);
    make("a", "its graph, memory and requirements", make("p", undefined, section)).href = path + "/page";
    addForm(section, path, metadata);
  }
  document.body.dataset.state = "shown";
};
show().catch((error) => { document.getElementById("models").textContent = String(error); });
</script>
</body>
</html>
)html";

}  // namespace halyard::tools::serve
