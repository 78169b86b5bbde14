// The page: one function at a time, as a graph, tables and a chart of memory.
const data = JSON.parse(document.getElementById("data").textContent);
const { analysis, profile, timeline, diff } = data;
const byId = (id) => document.getElementById(id);
const MOST_NODES = 20000, MOST_ROWS = 3000;

const functions = [...analysis.functions, ...(analysis.initializer ? [analysis.initializer] : [])];
let current = null;  // the function
let found = [];
let foundAt = -1;

// ---- From steps to nodes

const outputs = (step) => step.uses.filter((use) => use.access !== "read");
const isParameter = (allocation) => allocation && (allocation.origin === "state" || allocation.source === "parameter" || allocation.source === "import");
const title = (step) => step.name || (step.kind === "dispatch" ? `kernel ${step.entry}` : step.kind);

// The part of a kernel's name that tells it from others: compilers begin it with the function and a number.
const label = (step) => title(step).replace(/^.*_dispatch_\d+_(?=.)/, "");
const measured = (step) => step.profile || null;
const percent = (share) => `${(100 * share).toFixed(share < 0.01 ? 2 : 1)}%`;
// Distances in ulps; "inf" if one value is not finite.
const ulpsOf = (error) => error.max_ulps === "inf" ? 2 ** 32 : error.max_ulps || 0;
const errorLevel = (error) => error.comparable === false ? Math.log1p(2 ** 32) : Math.log1p(ulpsOf(error));
const errorText = (error) => error.comparable === false ? "sizes differ" : error.max_ulps !== undefined ? `${error.max_ulps} ulps` : String(error.max_abs ?? "");

const stepNode = (step, index, of) => {
  const out = sum(outputs(step).map((use) => use.bytes));
  const held = step.uses.filter((use) => isParameter(of.allocations[use.allocation])).map((use) => use.bytes);
  const parts = [];
  if (step.error) parts.push(errorText(step.error));
  if (measured(step)) parts.push(duration(step.profile.time_ns));
  parts.push(`→ ${bytes(out)}`);
  if (held.length && isNumber(sum(held))) parts.push(`const ${bytes(sum(held))}`);
  return { kind: step.kind, step: index, title: title(step), label: label(step), subtitle: parts.join(" "), before: [], next: [] };
};

// Steps, the arguments that they read first, and the results.
const nodesOf = (of) => {
  const nodes = [];
  const numbers = new Map();
  const used = new Map();
  of.steps.slice(0, MOST_NODES).forEach((step) => step.uses.forEach((use) => {
    const allocation = of.allocations[use.allocation];
    if (allocation && (allocation.origin === "argument" || allocation.source === "argument")) used.set(use.allocation, true);
  }));
  for (const index of used.keys()) {
    numbers.set(index, nodes.length);
    const allocation = of.allocations[index];
    nodes.push({ kind: "argument", allocation: index, title: allocation.name || "argument", subtitle: bytes(allocation.bytes), before: [], next: [] });
  }
  const first = nodes.length;
  const written = new Map();
  of.steps.slice(0, MOST_NODES).forEach((step, index) => {
    const node = stepNode(step, index, of);
    for (const before of step.after) if (before < index) node.before.push(first + before);
    for (const use of step.uses) {
      if (use.access !== "write" && numbers.has(use.allocation) && !written.has(use.allocation)) node.before.push(numbers.get(use.allocation));
      if (use.access !== "read" && use.allocation !== undefined) written.set(use.allocation, first + index);
    }
    node.before = [...new Set(node.before)];
    nodes.push(node);
  });
  of.allocations.forEach((allocation, index) => {
    if (allocation.origin !== "result") return;
    nodes.push({ kind: "result", allocation: index, title: "result", subtitle: bytes(allocation.bytes), before: written.has(index) ? [written.get(index)] : [], next: [] });
  });
  nodes.forEach((node, index) => node.before.forEach((before) => nodes[before].next.push(index)));
  return nodes;
};

// ---- Times and errors of steps

// "module.f+0000001A" of "at module.f+0000001A (f.mlir:3:5)".
const placeName = (place) => (place || "").replace(/^at /, "").split(" ")[0];
// Functions without a name are "@0".
const placeOf = (step) => `${analysis.module}${step.place.startsWith("@") ? "" : "."}${step.place}`;
const grouped = (list, key) => {
  const groups = new Map();
  for (const each of list) {
    const its = key(each);
    if (!groups.has(its)) groups.set(its, []);
    groups.get(its).push(each);
  }
  return groups;
};
const emptyTime = () => ({ time_ns: 0, share: 0, calls: 0, threads: null, own: true });

// What ran at one place, or operations of one name, belongs to the steps there, in the order of the program. The graph
// may have fewer steps than ran, if the analysis did not follow a loop to its end: then its last step has the others.
const assign = (steps, ran) => ran.forEach((each, index) => {
  const step = steps[Math.min(index, steps.length - 1)];
  const time = step.profile ??= emptyTime();
  time.time_ns += each.time_ns;
  time.share += each.share;
  ++time.calls;
  if (each.threads) time.threads = Math.max(time.threads || 0, each.threads);
});

const joinTimes = (of) => {
  for (const step of of.steps) step.profile = null;
  if (!profile || profile.function !== of.name) return;
  const rows = new Map();
  for (const row of profile.rows) if (row.kind === "kernel" || row.kind === "transfer") rows.set(row.name, row);
  const places = grouped(profile.steps.filter((each) => each.place), (each) => each.place);
  for (const [place, steps] of grouped(of.steps, placeOf)) assign(steps, places.get(place) || []);
  // Operations of queues have no place.
  const names = grouped(profile.steps.filter((each) => !each.place), (each) => each.name);
  for (const [name, steps] of grouped(of.steps.filter((step) => !step.profile), title)) assign(steps, names.get(name) || []);
  for (const step of of.steps) {
    const row = rows.get(title(step));
    // Devices that do not report steps.
    if (!step.profile && row && !profile.steps.length) step.profile = { time_ns: row.time_ns / Math.max(1, row.calls), share: row.share / Math.max(1, row.calls), calls: row.calls, own: false };
    if (step.profile) step.profile.row = row || null;
  }
};

const joinErrors = (of) => {
  for (const step of of.steps) step.error = null;
  if (!diff || (diff.function && diff.function !== of.name)) return;
  const key = (name, occurrence) => `${name} ${occurrence || 0}`;
  const errors = new Map();
  for (const error of diff.steps || []) errors.set(key(placeName(error.place) || error.name || error.operation, error.occurrence), error);
  const seen = new Map();
  for (const step of of.steps) for (const name of [placeOf(step), title(step)]) {
    const occurrence = seen.get(name) || 0;
    seen.set(name, occurrence + 1);
    step.error ??= errors.get(key(name, occurrence)) || null;
  }
};

// ---- Colours

const mixed = (share, colour) => `color-mix(in srgb, ${colour("hot")} ${Math.round(100 * Math.min(1, Math.max(0, share)))}%, ${colour("cold")})`;
let greatest = { time: 0, bytes: 0, error: 0 };
const fills = {
  kind: (node, colour) => colour({ dispatch: "dispatch", argument: "argument", result: "result", parameters: "parameters" }[node.kind] || "transfer"),
  time: (node, colour) => { const step = current.steps[node.step]; return mixed(step && step.profile ? step.profile.time_ns / greatest.time : 0, colour); },
  bytes: (node, colour) => { const step = current.steps[node.step]; const size = step ? sum(step.uses.map((use) => use.bytes)) : 0; return mixed(isNumber(size) ? size / greatest.bytes : 0, colour); },
  error: (node, colour) => { const step = current.steps[node.step]; return mixed(step && step.error ? errorLevel(step.error) / greatest.error : 0, colour); },
};

const graph = new Graph(byId("graph"), {
  fill: (node, colour) => (fills[byId("colour").value] || fills.kind)(node, colour),
  choose: (index) => showNode(index),
});

// ---- Panels

const link = (parent, index) => {
  const button = make("button", `${index}: ${title(current.steps[index])}`, parent);
  button.addEventListener("click", () => chooseStep(index));
};

const allocationText = (index) => {
  const allocation = current.allocations[index];
  if (!allocation) return "unknown memory";
  const name = allocation.name || (allocation.constant !== undefined ? `rodata[${allocation.constant}]` : `${allocation.origin} ${index}`);
  return `${name}${allocation.in_place ? ", in place" : ""}`;
};

const showNode = (index) => {
  const place = byId("details");
  place.textContent = "";
  const node = graph.nodes[index];
  if (!node) { make("p", "No step is selected. Click a step, or press j.", place, "soft"); return; }
  make("h2", node.title, place);
  if (node.step === undefined) {
    const allocation = current.allocations[node.allocation];
    table(place, null, [["kind", node.kind], ["bytes", bytes(allocation.bytes)], ["from", allocation.source],
      ...(allocation.made_at ? [["made at", allocation.made_at.place]] : [])]);
    drawChart();
    return;
  }
  const step = current.steps[node.step];
  const rows = [["step", String(node.step)], ["kind", step.kind]];
  if (step.workgroups && step.workgroups.length) rows.push(["workgroups", step.workgroups.join(" × ")]);
  if (step.push_constants && step.push_constants.length) rows.push(["constants", step.push_constants.join(", ")]);
  if (step.executable !== undefined) rows.push(["executable", `rodata[${step.executable}], kernel ${step.entry}`]);
  rows.push(["recorded at", step.place]);
  if (step.source) rows.push(["source", step.source]);
  rows.push(["device, submission", `${step.device}, ${step.submission}`]);
  rows.push(["memory while it runs", bytes(step.live_bytes)]);
  if (step.profile) {
    const { row, time_ns, share, calls, threads, own } = step.profile;
    rows.push(["time", `${duration(time_ns)}, ${percent(share)} of the call` + (own ? "" : `, the average of ${calls} calls of this kernel`)]);
    if (own) rows.push(["calls", String(calls)]);
    if (threads) rows.push(["threads", String(threads)]);
    if (row && row.calls !== 1) rows.push(["all calls of the kernel", `${row.calls}, ${duration(row.time_ns)}, ${percent(row.share)}`]);
    if (row && row.gflops) rows.push(["rate of the kernel", `${row.gflops.toFixed(1)} GFLOP/s` + (row.gbs ? `, ${row.gbs.toFixed(1)} GB/s` : "")]);
    if (row && row.interpreted_because) rows.push(["interpreted", row.interpreted_because]);
    if (row && row.source) rows.push(["kernel's source", row.source]);
  }
  if (step.error) {
    if (step.error.comparable === false) rows.push(["error", "the runs write different numbers of bytes"]);
    else if (step.error.beyond !== undefined) rows.push(["error", step.error.beyond ? "beyond tolerance" : "within tolerance"]);
    for (const [name, label] of [["max_abs", "largest absolute error"], ["max_rel", "largest relative error"], ["max_ulps", "largest distance in ulps"], ["elements", "elements that differ"]])
      if (step.error[name] !== undefined && step.error[name] !== null) rows.push([label, String(step.error[name])]);
  }
  table(place, null, rows);
  make("h2", "Tensors", place);
  table(place, ["access", "memory", "offset", "bytes"], step.uses.map((use) => [use.access + (use.assumed ? " (assumed)" : ""),
    allocationText(use.allocation), { text: String(use.offset), number: true }, { text: bytes(use.bytes), number: true }]));
  for (const [label, list] of [["After", node.before], ["Before", node.next]]) {
    const steps = list.map((other) => graph.nodes[other].step).filter((other) => other !== undefined);
    if (!steps.length) continue;
    make("h2", label, place);
    const line = make("p", undefined, place);
    for (const other of steps.slice(0, 50)) link(line, other);
  }
  for (const row of document.querySelectorAll("#steps tr[aria-selected]")) row.removeAttribute("aria-selected");
  const row = document.querySelector(`#steps tr[data-step="${node.step}"]`);
  if (row) row.setAttribute("aria-selected", "true");
  drawChart();
};

const nodeOfStep = (step) => graph.nodes.findIndex((node) => node.step === step);
const chooseStep = (step) => { graph.choose(nodeOfStep(step)); openTab("details"); };

const alive = (parent, rows) => table(parent, ["bytes", "origin", "made by"], rows.slice(0, MOST_ROWS));

const showMemory = () => {
  const place = byId("memory");
  place.textContent = "";
  if (current.trouble) make("p", `Not complete: ${current.trouble}`, place, "note");
  for (const note of current.notes) make("p", note, place, "note");
  current.peaks.forEach((peak) => {
    make("h2", `Peak: ${bytes(peak.bytes)}`, place);
    table(place, null, ["arguments", "results", "transients", "state"].filter((part) => peak[part] !== 0)
      .map((part) => [part, { text: bytes(peak[part]), number: true }]));
    const rows = peak.alive.map((index) => [index, current.allocations[index]]).filter(([, allocation]) => !allocation.in_place)
      .sort(([, a], [, b]) => (isNumber(b.bytes) ? b.bytes : Infinity) - (isNumber(a.bytes) ? a.bytes : Infinity));
    if (!rows.length) return;
    make("h2", "Alive at the peak", place);
    alive(place, rows.map(([index, allocation]) => [{ text: bytes(allocation.bytes), number: true }, allocation.origin,
      (allocation.source === "argument" ? allocationText(index) : `${allocation.source} ${allocation.name || ""}`) +
        (allocation.made_at ? ` at ${allocation.made_at.place}` + (allocation.made_at.source ? ` (${allocation.made_at.source.split("\n")[0]})` : "") : "")]));
  });
  for (const [symbol, origin] of Object.entries(current.unknowns)) make("p", `${symbol} is ${origin}`, place, "soft");
  for (const device of (timeline && timeline.devices) || []) {
    make("h2", `Measured on ${device.device}: peak ${bytes(device.peak_bytes)}`, place);
    alive(place, device.alive.map((each) => [{ text: bytes(each.bytes), number: true }, each.count > 1 ? `${each.count} allocations` : "", each.made_by]));
  }
};

const showSteps = () => {
  const place = byId("steps");
  place.textContent = "";
  const times = current.steps.some((step) => step.profile);
  const calls = current.steps.some((step) => step.profile && step.profile.own && step.profile.calls !== 1);
  const errors = current.steps.some((step) => step.error);
  const number = (text) => ({ text, number: true });
  const titles = ["", "step", ...(calls ? ["calls"] : []), ...(times ? ["time", "share"] : []), ...(errors ? ["error"] : []), "writes"];
  if (diff && diff.a !== undefined && errors) {
    const line = make("p", `${diff.a} compared with ${diff.b}: ${diff.outcome}. `, place);
    const first = current.steps.findIndex((step) => step.error && (step.error.beyond || step.error.comparable === false));
    if (first >= 0) { make("span", "The first step beyond tolerance is ", line); link(line, first); }
  }
  const made = table(place, titles, current.steps.slice(0, MOST_ROWS).map((step, index) =>
    [String(index), label(step), ...(calls ? [number(step.profile ? String(step.profile.calls) : "")] : []),
      ...(times ? [number(step.profile ? duration(step.profile.time_ns) : ""), number(step.profile ? percent(step.profile.share) : "")] : []),
      ...(errors ? [number(step.error ? errorText(step.error) : "")] : []), number(bytes(sum(outputs(step).map((use) => use.bytes))))]));
  [...made.rows].slice(1).forEach((row, index) => {
    row.dataset.step = index;
    row.addEventListener("click", () => graph.choose(nodeOfStep(index)));
  });
  if (current.steps.length > MOST_ROWS) make("p", `and ${current.steps.length - MOST_ROWS} more`, place, "soft");
};

const showProfile = () => {
  const place = byId("profile");
  place.textContent = "";
  if (!profile) { make("p", "No times: this page was written without a run. vm-run --profile=FILE.html adds them.", place, "soft"); return; }
  make("p", `${profile.function}: ${duration(profile.total_ns)}` + (profile.calls > 1 ? `, the average of ${profile.calls} calls` : ""), place);
  table(place, ["", "calls", "time", "share"], profile.rows.map((row) => [row.name, { text: row.calls === undefined ? "" : String(row.calls), number: true },
    { text: duration(row.time_ns), number: true }, { text: percent(row.share), number: true }]));
};

const showModule = () => {
  const place = byId("module");
  const needs = [["file", `${data.file}, ${bytes(analysis.file_bytes)}`], ["hal", analysis.hal || "not used"], ["devices", String(analysis.devices)]];
  if (analysis.device_ids.length) needs.push(["device", analysis.device_ids.join(", ")]);
  if (analysis.formats.length) needs.push(["executable formats", analysis.formats.join(", ")]);
  needs.push(["state", bytes(analysis.state.bytes)]);
  needs.push(["used in place", bytes(analysis.state.in_place_bytes)]);
  make("h2", "Requirements", place);
  table(place, null, needs);
  for (const warning of analysis.warnings) make("p", warning, place, "note");
  make("h2", "Functions", place);
  const list = make("p", undefined, place);
  functions.forEach((each, index) => {
    const button = make("button", each.name, list);
    button.title = each.declaration;
    button.addEventListener("click", () => { byId("function").value = index; showFunction(index); });
  });
  make("h2", `Executables (${analysis.executables.length})`, place);
  table(place, ["constant", "format", "bytes"], analysis.executables.map((each) => [`rodata[${each.constant}]`, each.format || each.kind, { text: bytes(each.bytes), number: true }]));
  make("h2", `Parameters (${analysis.parameters.length})`, place);
  table(place, ["scope", "key", "bytes"], analysis.parameters.slice(0, MOST_ROWS).map((each) => [each.scope, each.key, { text: bytes(each.bytes ?? 0), number: true }]));
  make("h2", `Constants (${analysis.constants.length})`, place);
  table(place, ["constant", "use", "bytes"], analysis.constants.slice(0, MOST_ROWS).map((each, index) => [`rodata[${index}]`, each.use, { text: bytes(each.bytes), number: true }]));
};

// ---- The chart of memory: over time if it was measured, else over the steps

const levels = () => {
  const device = timeline && timeline.function === current.name && timeline.devices.find((each) => each.points.length > 1);
  if (device) return { points: device.points, unit: "time", what: `memory of ${device.device} over ${duration(device.points.at(-1)[0])}` };
  const sizes = current.steps.map((step) => step.live_bytes);
  if (!sizes.length || !sizes.every(isNumber)) return null;
  return { points: sizes.map((size, index) => [index, size]), unit: "step", what: "memory over the steps" };
};

const drawChart = () => {
  const canvas = byId("chart");
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue("--" + name).trim();
  const shown = levels();
  byId("level").textContent = shown ? "" : current.steps.length ? "The sizes depend on the inputs: vm-dump --input gives them." : "";
  if (!shown) return;
  const { points } = shown;
  const last = points.at(-1)[0] || 1;
  const most = points.reduce((top, [, size]) => Math.max(top, size), 1);
  const x = (at) => at / last * width, y = (size) => height - size / most * (height - 6);
  pen.beginPath();
  pen.moveTo(0, height);
  let before = points[0][1];
  for (const [at, size] of points) { pen.lineTo(x(at), y(before)); pen.lineTo(x(at), y(size)); before = size; }
  pen.lineTo(width, y(before));
  pen.lineTo(width, height);
  pen.fillStyle = colour("area");
  pen.fill();
  let text = `${shown.what}: at most ${bytes(most)}`;
  const node = graph.nodes[graph.chosen];
  if (node && node.step !== undefined && shown.unit === "step") {
    pen.fillStyle = colour("chosen");
    pen.fillRect(x(node.step) - 1, 0, 2, height);
    text += `; ${bytes(current.steps[node.step].live_bytes)} at step ${node.step}`;
  }
  byId("level").textContent = text;
};

byId("chart").addEventListener("click", (event) => {
  const shown = levels();
  if (shown && shown.unit === "step") chooseStep(Math.min(current.steps.length - 1, Math.round(event.offsetX / byId("chart").clientWidth * (current.steps.length - 1))));
});

// ---- Search, tabs, keys

const search = (text) => {
  const wanted = text.trim().toLowerCase();
  found = [];
  foundAt = -1;
  if (wanted) graph.nodes.forEach((node, index) => {
    const step = current.steps[node.step];
    const words = [node.title, node.kind, step ? step.place : "", step && step.source || ""].join("\n").toLowerCase();
    if (words.includes(wanted)) found.push(index);
  });
  graph.matches = new Set(found);
  byId("matches").textContent = wanted ? `${found.length} found` : "";
  graph.draw();
};
const nextMatch = (by) => {
  if (!found.length) return;
  foundAt = (foundAt + by + found.length) % found.length;
  graph.choose(found[foundAt]);
  openTab("details");
  byId("matches").textContent = `${foundAt + 1} of ${found.length}`;
};

const openTab = (name) => {
  for (const button of document.querySelectorAll("aside nav button")) {
    button.setAttribute("aria-current", String(button.dataset.tab === name));
    byId(button.dataset.tab).hidden = button.dataset.tab !== name;
  }
};

const THEMES = ["", "light", "dark"];
const nextTheme = () => {
  const root = document.documentElement;
  const now = THEMES[(THEMES.indexOf(root.dataset.theme || "") + 1) % THEMES.length];
  if (now) root.dataset.theme = now; else delete root.dataset.theme;
  graph.draw();
  drawChart();
};

const moveAlong = (direction) => {
  const node = graph.nodes[graph.chosen];
  if (!node) return graph.choose(0);
  if (direction === "up" || direction === "down") {
    const list = direction === "up" ? node.before : node.next;
    if (list.length) graph.choose(list[0]);
    return;
  }
  const row = graph.rows[node.row];
  const next = row[row.indexOf(graph.chosen) + (direction === "left" ? -1 : 1)];
  if (next !== undefined) graph.choose(next);
};
const moveInOrder = (by) => {
  const node = graph.nodes[graph.chosen];
  const at = node && node.step !== undefined ? node.step + by : 0;
  if (at >= 0 && at < current.steps.length) graph.choose(nodeOfStep(at));
};
const toPeak = () => {
  const peak = current.peaks[0];
  if (peak && current.steps.length) chooseStep(Math.min(peak.step, current.steps.length - 1));
};

const KEYS = {
  "/": () => byId("search").focus(), "?": () => byId("keys").showModal(), "+": () => graph.zoom(1.25), "=": () => graph.zoom(1.25),
  "-": () => graph.zoom(0.8), "0": () => graph.fit(), t: nextTheme, p: toPeak, j: () => moveInOrder(1), k: () => moveInOrder(-1),
  ArrowUp: () => moveAlong("up"), ArrowDown: () => moveAlong("down"), ArrowLeft: () => moveAlong("left"), ArrowRight: () => moveAlong("right"),
};
document.addEventListener("keydown", (event) => {
  if (event.target === byId("search")) {
    if (event.key === "Enter") nextMatch(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") byId("graph").focus();
    return;
  }
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.tagName === "SELECT" || byId("keys").open) return;
  const action = KEYS[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});

// ---- Begin

const showFunction = (index) => {
  current = functions[index];
  joinTimes(current);
  joinErrors(current);
  greatest = { time: 1, bytes: 1, error: 1 };
  for (const step of current.steps) {
    if (step.profile) greatest.time = Math.max(greatest.time, step.profile.time_ns);
    const size = sum(step.uses.map((use) => use.bytes));
    if (isNumber(size)) greatest.bytes = Math.max(greatest.bytes, size);
    if (step.error) greatest.error = Math.max(greatest.error, errorLevel(step.error));
  }
  const colours = [["kind", "by kind"], ["bytes", "by bytes"]];
  if (current.steps.some((step) => step.profile)) colours.unshift(["time", "by time"]);
  if (current.steps.some((step) => step.error)) colours.unshift(["error", "by error"]);
  byId("colour").textContent = "";
  for (const [value, label] of colours) make("option", label, byId("colour")).value = value;
  const nodes = nodesOf(current);
  byId("empty").hidden = nodes.length !== 0;
  byId("empty").textContent = "This function gives no work to a device.";
  graph.show(nodes);
  search(byId("search").value);
  showMemory();
  showSteps();
  showNode(-1);
  if (current.steps.length > MOST_NODES) byId("matches").textContent = `the first ${MOST_NODES} of ${current.steps.length} steps`;
  document.body.dataset.state = "shown";
};

// "module" is the name that compilers give.
const name = analysis.module === "module" ? data.file : analysis.module;
byId("title").textContent = name;
document.title = `${name} - Halyard`;
byId("facts").textContent = (name === data.file ? "" : `${data.file}, `) + bytes(analysis.file_bytes);
functions.forEach((each, index) => { make("option", `${each.name} (${each.steps.length} steps)`, byId("function")).value = index; });
byId("function").addEventListener("change", (event) => showFunction(Number(event.target.value)));
byId("colour").addEventListener("change", () => graph.draw());
byId("search").addEventListener("input", (event) => search(event.target.value));
byId("fit").addEventListener("click", () => graph.fit());
byId("in").addEventListener("click", () => graph.zoom(1.25));
byId("out").addEventListener("click", () => graph.zoom(0.8));
byId("theme").addEventListener("click", nextTheme);
byId("help").addEventListener("click", () => byId("keys").showModal());
for (const button of document.querySelectorAll("aside nav button")) button.addEventListener("click", () => openTab(button.dataset.tab));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { graph.draw(); drawChart(); });
new ResizeObserver(() => current && drawChart()).observe(byId("chart"));
showModule();
showProfile();
openTab(profile ? "profile" : "memory");
if (functions.length) {
  // The function of the profile, else the one with most steps.
  let chosen = functions.findIndex((each) => profile && each.name === profile.function);
  if (chosen < 0) chosen = analysis.functions.reduce((best, each, index) => each.steps.length > functions[best].steps.length ? index : best, 0);
  byId("function").value = chosen;
  showFunction(chosen);
} else {
  current = { name: "", steps: [], allocations: [], peaks: [], notes: [], unknowns: {}, trouble: "" };
  byId("empty").hidden = false;
  byId("empty").textContent = "The module has no functions.";
  document.body.dataset.state = "shown";
}
