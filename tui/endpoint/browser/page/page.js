"use strict";
const $ = id => document.getElementById(id);
const base = location.href.replace(/^http/, "ws").replace(/[?#].*$/, "").replace(/[^/]*$/, "");
let control = null, test = "", mover = null, begun = false, points = [], expected = {}, running = false, seconds = 10, retry = 1000;
let waits = false, wasLost = false, asked = "", heard = 0;  // an app waits for a device; the code or the pass that it was sent
const silence = 15000;  // longer than the endpoint waits for the connections of a test; a path that goes says nothing

function fill(select, values, chosen, text) {
  select.replaceChildren(...values.map(value => new Option(text ? text(value) : value, value, value === chosen, value === chosen)));
}
function say(text) { $("state").textContent = text; }
function number(value) {
  return value == null ? "–" : value >= 1000 ? Math.round(value).toString() : value >= 100 ? value.toFixed(1) : value.toFixed(2);
}
function connect() {
  heard = performance.now();
  test = "";
  control = new WebSocket(base + "ws");
  control.onmessage = event => { heard = performance.now(); receive(JSON.parse(event.data)); };
  control.onclose = lose;
}
function lose() {
  control.onmessage = control.onclose = null;
  control.close();
  wasLost = wasLost || running;
  end();
  $("start").disabled = true;
  $("start").textContent = "Connecting…";
  say((wasLost ? "The connection was lost during the test. " : "The endpoint does not answer. ") + "Trying again.");
  if (!test) explain();
  setTimeout(connect, retry);
  retry = Math.min(30000, retry * 2);
}
function explain() {  // no script learns why a WebSocket did not open; a plain request is refused for the same reason
  const stop = new AbortController();
  setTimeout(() => stop.abort(), 5000);
  fetch("http" + base.slice(2) + "ws", {signal: stop.signal}).then(answer => answer.text()).then(text => {
    if (!test && text.startsWith("linkgauge: ")) say("Not possible: " + text.slice(11).trim() + ". Trying again.");
  }).catch(() => {});
}
function listen() {
  if ((running || control.readyState === 0) && performance.now() - heard > silence) lose();
}
function send(message) { if (control && control.readyState === 1) control.send(JSON.stringify(message)); }
function receive(message) {
  switch (message.type) {
    case "hello": greet(message); break;
    case "ping": send({type: "pong", n: message.n}); break;
    case "open": openData(message); break;
    case "joined": joined(message); break;
    case "unjoined": unjoined(message); break;
    case "started": expected = message.expected; showExpected(); break;
    case "begin": begin(); break;
    case "interval": show(message); break;
    case "result": showResult(message); end(); break;
    case "refused": say("Not possible: " + message.text); end(); break;
  }
}
function greet(hello) {
  test = hello.test;
  retry = 1000;
  $("host").textContent = "to " + location.hostname;
  const counts = [1, 2, 4, 8].filter(count => count <= hello.sessions);
  fill($("sessions"), counts, counts.includes(+$("sessions").value) ? +$("sessions").value : Math.min(4, counts[counts.length - 1]));
  const times = [5, 10, 20, 30, 60].filter(time => time <= hello.seconds);
  fill($("seconds"), times.length ? times : [hello.seconds], times.includes(+$("seconds").value) ? +$("seconds").value : 10);
  const japanese = navigator.language.toLowerCase().startsWith("ja");
  if ($("preset").length < 3) for (const each of hello.presets) {
    const option = new Option((japanese ? each.name_ja : each.name) + " (" + each.id + ")", each.id);
    if (japanese && each.name_ja !== each.name) option.lang = "ja";  // Chinese fonts have other shapes
    $("preset").add(option);
  }
  showChosen();
  $("privacy").textContent = hello.has_tls ? "Connections use TLS." :
    "This page uses plain HTTP: others on the network can read its link and its results, and start tests with the link.";
  waits = !!hello.waits;
  $("join").hidden = !waits;
  document.body.classList.toggle("waits", waits);
  $("start").hidden = waits;
  $("start").disabled = false;
  $("start").textContent = "Start";
  if (!waits) say(wasLost ? "Ready. The last test was lost with its connection: keep this page in sight." : "Ready.");
  else if (stored()) join(stored());
  else if (location.hash.length > 1) join(location.hash.slice(1));
  else say("Type the code that linkgauge shows.");
}
function stored(pass) {  // a page that is loaded again goes on; without storage it asks for a code
  try {
    if (pass === "") sessionStorage.removeItem("pass"); else if (pass) sessionStorage.setItem("pass", pass);
    return sessionStorage.getItem("pass");
  } catch { return null; }
}
function join(code) {
  asked = code;
  send({type: "join", code: code.replace(/\s/g, "").slice(0, 64)});
}
function joined(message) {
  stored(message.pass);
  history.replaceState(null, "", location.pathname);
  $("join").hidden = true;
  say("This device takes part. The user of linkgauge starts the test: keep this page in sight.");
}
function unjoined(message) {
  const wasStored = asked === stored();
  stored("");
  $("join").hidden = false;
  if (wasStored && location.hash.length > 1) return join(location.hash.slice(1));
  history.replaceState(null, "", location.pathname);
  say(message.text);
  $("code").focus();
}
function start() {
  const direction = new FormData($("form")).get("direction");
  prepare(+$("seconds").value);
  heard = performance.now();
  send({type: "start", direction, sessions: +$("sessions").value, seconds, preset: $("preset").value});
}
function prepare(duration) {
  points = []; expected = {}; running = true; begun = wasLost = false;
  seconds = duration;
  $("result").hidden = true;
  for (const way of ["down", "up", "latency"]) put(way, null);
  for (const bar of document.querySelectorAll(".bar i")) bar.style.width = "0";
  showExpected();
  $("start").hidden = false;
  $("start").textContent = "Stop";
  $("start").className = "stop";
  say("Opening connections, and measuring the idle link.");
  draw();
}
function openData(message) {
  if (!running) prepare(message.seconds);
  const open = message.places.map(place =>
    ({...place, url: base + "data?test=" + test + "&flow=" + place.flow + "&n=" + place.n + "&g=" + place.g}));
  if (!mover) {
    mover = new Worker("mover.js");  // payload must not keep the pings waiting
    mover.onmessage = event => send({type: "unopened", ...event.data});
  }
  mover.postMessage({open});
}
function begin() {
  begun = true;
  say("Running.");
  if (mover) mover.postMessage({begin: true, probe: base + "probe?test=" + test});
}
function end() {
  if (mover) mover.terminate();
  mover = null;
  running = false;
  $("start").textContent = "Start";
  $("start").className = "";
  $("start").hidden = waits;
}
function put(way, value) { $(way).querySelector(".number").textContent = number(value); }
function show(interval) {
  points.push(interval);
  for (const way of ["down", "up"]) {
    const flow = interval[way];
    put(way, flow ? flow.mbit_s : null);
    const top = expected[way] || Math.max(1, ...points.map(point => point[way] ? point[way].mbit_s : 0));
    $(way).querySelector("i").style.width = flow ? Math.min(100, 100 * flow.mbit_s / top) + "%" : "0";
  }
  if (interval.latency_ms != null) put("latency", interval.latency_ms);
  say((interval.warmup ? "Warm-up, " : "Running, ") + Math.round(interval.elapsed_s) + (seconds ? " of " + seconds + " s." : " s."));
  draw();
}
function showChosen() {  // a narrow list cuts the end of a name, which may be all that tells two links apart
  const list = $("preset"), option = list.options[list.selectedIndex], style = getComputedStyle(list);
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = style.fontWeight + " " + style.fontSize + " " + style.fontFamily;
  $("chosen").hidden = !option || pen.measureText(option.text).width < list.clientWidth - 44;
  $("chosen").textContent = option ? option.text : "";
  $("chosen").lang = option ? option.lang : "";
}
function showExpected() {
  for (const way of ["down", "up"])
    $(way).querySelector(".expected").textContent = expected[way] ? "expected " + number(expected[way]) : "";
}
function draw() {
  const canvas = $("plot"), scale = devicePixelRatio || 1, style = getComputedStyle(document.documentElement);
  const width = canvas.clientWidth, height = canvas.clientHeight, left = 8, right = 8, low = 8, high = 18;
  canvas.width = width * scale; canvas.height = height * scale;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  const color = name => style.getPropertyValue(name);
  const rates = points.flatMap(point => ["down", "up"].map(way => point[way] ? point[way].mbit_s : 0));
  const top = 1.08 * Math.max(1, ...rates, expected.down || 0, expected.up || 0);
  const span = Math.max(seconds || 10, points.length ? points[points.length - 1].elapsed_s : 0);
  const x = time => left + (width - left - right) * time / span, y = rate => height - low - (height - low - high) * rate / top;
  pen.font = "12px system-ui, sans-serif";
  pen.fillStyle = color("--dim"); pen.strokeStyle = color("--line"); pen.lineWidth = 1;
  for (let part = 0; part <= 2; part++) {
    const rate = top / 1.08 * part / 2, at = Math.round(y(rate)) + .5;
    pen.beginPath(); pen.moveTo(left, at); pen.lineTo(width - right, at); pen.stroke();
    if (part) pen.fillText(number(rate) + (part === 2 ? " Mb/s" : ""), left + 2, at - 3);
  }
  for (const [way, dash] of [["down", []], ["up", [6, 3]]]) {
    pen.strokeStyle = color("--" + way);
    if (expected[way]) {
      pen.setLineDash([2, 4]); pen.lineWidth = 1;
      pen.beginPath(); pen.moveTo(left, y(expected[way])); pen.lineTo(width - right, y(expected[way])); pen.stroke();
    }
    pen.setLineDash(dash); pen.lineWidth = 2; pen.beginPath();
    let begun = false;
    for (const point of points) if (point[way]) {
      if (begun) pen.lineTo(x(point.elapsed_s), y(point[way].mbit_s)); else pen.moveTo(x(point.elapsed_s), y(point[way].mbit_s));
      begun = true;
    }
    pen.stroke();
  }
  pen.setLineDash([]);
  $("caption").textContent = points.length ? "Mb/s over " + Math.round(span) + " s: down solid, up dashed, expected dotted" : "";
}
function node(name, text, kind) {
  const made = document.createElement(name);
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}
function showResult(result) {
  const names = {down: "↓ down", up: "↑ up", both: "⇅ both"};
  $("verdict").textContent = result.mark;
  $("verdict").className = result.word;
  $("sentence").textContent = result.text;
  $("rates").replaceChildren(...result.rates.map(rate => {
    const row = document.createElement("tr");
    row.append(node("th", names[rate.way]), node("td", rate.text), node("td", rate.margin), node("td", rate.bytes));
    return row;
  }));
  $("facts").replaceChildren(...result.facts.flatMap(([name, text]) => [node("dt", name), node("dd", text)]),
    node("dt", "link"), node("dd", result.preset || "none"), node("dt", "saved"), node("dd", result.run_id ? "run " + result.run_id : "no: linkgauge says why on its own host"));
  $("why").replaceChildren(...result.why.map(finding => {
    const item = document.createElement("li");
    item.append(node("b", (finding.share ? finding.share + ": " : "") + finding.text), node("span", finding.evidence));
    if (finding.remedy) item.append(node("span", "Try: " + finding.remedy));
    return item;
  }));
  const notes = [...result.notices, ...result.notes];
  $("notes").replaceChildren(...notes.map(text => node("li", text)));
  $("whyname").hidden = $("ends").hidden = !result.why.length;
  $("notename").hidden = !notes.length;
  $("result").hidden = false;
  say("Finished.");
  $("result").focus({preventScroll: true});
  $("result").scrollIntoView({block: "start"});
}
$("join").addEventListener("submit", event => {
  event.preventDefault();
  join($("code").value);
});
$("form").addEventListener("submit", event => {
  event.preventDefault();
  if (running) { send({type: "stop"}); say("Stopping."); } else start();
});
document.addEventListener("visibilitychange", () => { if (document.hidden && running) send({type: "hidden"}); });
$("preset").addEventListener("change", showChosen);
addEventListener("resize", () => { draw(); showChosen(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
connect();
setInterval(listen, 1000);
draw();
