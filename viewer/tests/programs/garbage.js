// A program whose collector works: short-lived objects, objects that live for a while, and old objects that
// die. V8 itself tells each collection and its pause.
//
//   node garbage.js [--seconds CPU_SECONDS=3] [--forever]
//
// --forever prints `ready PID` and goes on until SIGTERM. At the end one JSON object is printed, with the
// pauses in CLOCK_MONOTONIC:
//
//   {"pid":, "cpu_seconds":, "functions":["allocate", "replace"],
//     "collections":[{"kind": "scavenge" or "full" or "incremental" or "weak", "begin_ns":, "end_ns":}]}
'use strict';

const { PerformanceObserver, constants, performance } = require('node:perf_hooks');

const kinds = { [constants.NODE_PERFORMANCE_GC_MINOR]: 'scavenge', [constants.NODE_PERFORMANCE_GC_MAJOR]: 'full',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental', [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weak' };
const collections = [];
// performance.now() is CLOCK_MONOTONIC since an origin of its own. A pause between the two readings makes it too
// early: the latest of many counts.
const origin = Math.max(...Array.from({ length: 100 },
  () => Number(process.hrtime.bigint()) - performance.now() * 1e6));
function note(entries) {
  for (const { startTime, duration, detail } of entries) {
    const begin = Math.round(origin + startTime * 1e6);
    collections.push({ kind: kinds[detail.kind], begin_ns: begin, end_ns: begin + Math.round(duration * 1e6) });
  }
}
const observer = new PerformanceObserver((list) => note(list.getEntries()));
observer.observe({ entryTypes: ['gc'] });

const old = [];

function allocate(count) {
  let last = null;
  for (let i = 0; i < count; i++) last = { next: i % 100 ? last : null, value: i, pair: [i, i + 1] };
  return last;
}
function replace(at) {
  old[at % 300] = Array.from({ length: 1000 }, (_, i) => ({ i, text: `${at}:${i}` }));
}

const forever = process.argv.includes('--forever');
const at = process.argv.indexOf('--seconds');
const seconds = at < 0 ? 3 : Number(process.argv[at + 1]);
let stop = false;
let rounds = 0;
process.on('SIGTERM', () => { stop = true; });

function turn() {
  for (let i = 0; i < 10; i++) {
    allocate(5000);
    replace(rounds++);
  }
  const { user, system } = process.cpuUsage();
  if (!stop && (forever || user + system < seconds * 1e6)) return setImmediate(turn);
  note(observer.takeRecords());
  process.stdout.write(`${JSON.stringify({ pid: process.pid, cpu_seconds: (user + system) / 1e6,
    functions: ['allocate', 'replace'], collections })}\n`, () => process.exit(0)); // later, if the pipe is full
}
if (forever) process.stdout.write(`ready ${process.pid}\n`);
turn();
