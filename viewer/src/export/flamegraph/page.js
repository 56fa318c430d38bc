// The flame graph's page: draws what `data` holds (flamegraph.rs). Names are drawn or set as text, never as HTML.
"use strict";

const ROW = 18;
const NARROWEST_PIXELS = 0.3;
const NARROWEST_TEXT = 24;
const MATCHED = "#ff5cd6";

const data = JSON.parse(document.getElementById("data").textContent);
const labels = data.labels.map(([name, region, inlined, color]) => ({ name, region, inlined, color, isMatch: false }));
const views = data.views.map(laidOut);
let view = views[0];
let zoomed = 0;
let searched = "";

const byId = (id) => document.getElementById(id);
const [area, canvas, space] = ["main", "canvas", "main > div"].map((what) => document.querySelector(what));
const status = document.querySelector("footer");
const paint = canvas.getContext("2d");

// Numbers of a view: depth, label, total and own samples of each frame, depth first.
function laidOut(numbers) {
  const count = numbers.length / 4;
  const column = (which) => Float64Array.from({ length: count }, (_, i) => numbers[4 * i + which]);
  const [depth, label, total, own] = [0, 1, 2, 3].map(column);
  // Samples to the left of each frame; the index after its last descendant.
  const left = new Float64Array(count);
  const end = new Float64Array(count);
  const open = [];
  let deepest = 0;
  const close = (to, at) => {
    while (open.length > to) end[open.pop().index] = at;
  };
  for (let i = 0; i < count; i++) {
    close(depth[i], i);
    const parent = open.at(-1);
    left[i] = parent ? parent.right : 0;
    if (parent) parent.right += total[i];
    open.push({ index: i, right: left[i] });
    deepest = Math.max(deepest, depth[i]);
  }
  close(0, count);
  return { count, depth, label, total, own, left, end, rows: deepest + 1 };
}

// Calls `visit` with each frame in the zoomed range, its place and width in pixels. Where it returns false, the
// frames on it are skipped.
function eachShown(visit) {
  const { left, total, end } = view;
  const width = area.clientWidth;
  const scale = width / total[zoomed];
  for (let i = 0; i < end[zoomed]; ) {
    const isOuter = i < zoomed;
    if (isOuter && end[i] <= zoomed) {
      i = end[i];
      continue;
    }
    const x = isOuter ? 0 : (left[i] - left[zoomed]) * scale;
    const goOn = visit(i, x, isOuter ? width : total[i] * scale, isOuter);
    i = goOn ? i + 1 : end[i];
  }
}

function draw() {
  const [width, height] = [area.clientWidth, area.clientHeight];
  const ratio = window.devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  space.style.height = Math.max(0, view.rows * ROW - height) + "px";
  paint.scale(ratio, ratio);
  paint.font = "12px monospace";
  const letter = paint.measureText("M").width;
  const top = area.scrollTop;
  eachShown((i, x, wide, isOuter) => {
    const y = view.depth[i] * ROW - top;
    if (wide < NARROWEST_PIXELS || y > height) return false;
    if (y > -ROW) drawFrame(labels[view.label[i]], x, y, wide, isOuter, letter);
    return true;
  });
}

function drawFrame(label, x, y, wide, isOuter, letter) {
  paint.globalAlpha = isOuter ? 0.6 : 1;
  paint.fillStyle = label.isMatch ? MATCHED : label.color;
  paint.fillRect(x, y, wide > 3 ? wide - 1 : wide, ROW - 1);
  if (wide < NARROWEST_TEXT) return;
  paint.save();
  paint.beginPath();
  paint.rect(x, y, wide - 3, ROW);
  paint.clip();
  paint.fillStyle = "#000";
  paint.fillText(shortened(nameOf(label), Math.floor((wide - 6) / letter)), x + 3, y + 13);
  paint.restore();
}

// Parts of a name in the order in which they give way to a box's width.
const LESS_NEEDED = [
  / \S*\/(?=[^/\s]+:\d+)/, // folders of the file
  /(?<=.)( \([^()]*\))+$/, // tier or part
  / \S+:\d+$/, // file
  /(?<=[\w>])\((?:[^()]|\([^()]*\))*\)( const)?$/, // arguments
  /^.*::(?=[^:<>]+::[^:<>]+$)|^(?:[a-z_]\w*\.)+(?=[A-Z])/, // namespaces, packages
  /^.*::(?=[^:<>]+$)/, // class
];

function shortened(name, most) {
  const isPattern = name.startsWith("/");
  for (const part of isPattern ? [] : LESS_NEEDED) {
    if (name.length <= most) return name;
    name = name.replace(part, (all) => (all.endsWith("/") ? " " : ""));
  }
  return name.length <= most ? name : name.slice(0, Math.max(1, most - 1)) + "…";
}

const nameOf = (label) => (label.inlined ? label.name + " (inlined)" : label.name);
const counted = (samples) => samples.toLocaleString("en-US") + (samples === 1 ? " sample" : " samples");
const share = (samples, whole) => ((100 * samples) / whole).toFixed(2) + "%";

function frameAt(event) {
  const box = canvas.getBoundingClientRect();
  const [atX, atY] = [event.clientX - box.left, event.clientY - box.top + area.scrollTop];
  const row = Math.floor(atY / ROW);
  let found = -1;
  eachShown((i, x, wide) => {
    const isHere = found < 0 && atX >= x && atX < x + wide;
    if (isHere && view.depth[i] === row) found = i;
    return isHere && view.depth[i] < row;
  });
  return found;
}

function tell(i) {
  if (i < 0) {
    status.textContent = "\u00a0";
    return;
  }
  const label = labels[view.label[i]];
  const [total, own] = [view.total[i], view.own[i]];
  const parts = [counted(total), share(total, view.total[0]) + " of all"];
  if (zoomed > 0) parts.push(share(total, view.total[zoomed]) + " of the zoomed frame");
  parts.push(`self ${own.toLocaleString("en-US")} (${share(own, view.total[0])})`);
  if (label.region !== null) parts.push(data.regions[label.region][0]);
  status.textContent = `${nameOf(label)}: ${parts.join(", ")}`;
}

function zoom(i) {
  zoomed = i;
  byId("reset").disabled = i === 0;
  tellMatched();
  draw();
}

function invert() {
  const isInverted = view === views[0];
  view = views[isInverted ? 1 : 0];
  byId("invert").setAttribute("aria-pressed", isInverted);
  area.scrollTop = 0;
  tell(-1);
  zoom(0);
}

function search(text) {
  searched = text.toLowerCase();
  for (const label of labels) label.isMatch = searched !== "" && nameOf(label).toLowerCase().includes(searched);
  tellMatched();
  draw();
}

// Samples of the zoomed frame with a match on their stack, and those with a match innermost.
function tellMatched() {
  let [any, own, outer] = [0, 0, -1];
  for (let i = zoomed; i < view.end[zoomed]; i++) {
    if (!labels[view.label[i]].isMatch) continue;
    own += view.own[i];
    if (i >= outer) {
      any += view.total[i];
      outer = view.end[i];
    }
  }
  const whole = view.total[zoomed];
  const of = zoomed > 0 ? "of the zoomed frame" : "of all";
  byId("matched").textContent =
    searched === "" ? "" : `Matched: ${share(any, whole)} ${of} (${counted(any)}), self ${share(own, whole)}`;
}

function begin() {
  document.title = data.title;
  document.querySelector("h1").textContent = data.title;
  byId("about").textContent = data.about.join("; ");
  for (const [index, [name, color, samples]] of data.regions.entries()) {
    if (!labels.some((label) => label.region === index)) continue;
    const [entry, patch] = [document.createElement("span"), document.createElement("i")];
    patch.style.background = color;
    entry.append(patch, `${name} ${share(samples, view.total[0])}`);
    byId("legend").append(entry);
  }
  byId("legend").append("inlined functions are paler");
  byId("invert").addEventListener("click", invert);
  byId("reset").addEventListener("click", () => zoom(0));
  byId("search").addEventListener("input", (event) => search(event.target.value));
  canvas.addEventListener("mousemove", (event) => tell(frameAt(event)));
  canvas.addEventListener("mouseleave", () => tell(-1));
  canvas.addEventListener("click", (event) => {
    const found = frameAt(event);
    if (found >= 0) zoom(found);
  });
  area.addEventListener("scroll", draw);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") zoom(0);
    if (event.key === "f" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      byId("search").select();
    }
  });
  new ResizeObserver(draw).observe(area);
}

begin();
