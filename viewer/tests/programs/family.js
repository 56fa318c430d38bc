// A process, a worker in it, and a child process with a worker of its own: each spends
// most of its time in a function named for it.
//
//   node family.js [--seconds CPU_SECONDS=1]     of each of the four
//
// Prints one JSON object for each, as they end: {"role":, "pid":, "function":}.
'use strict';

const { Worker, isMainThread, workerData } = require('node:worker_threads');
const { fork } = require('node:child_process');

const at = process.argv.indexOf('--seconds');
const seconds = at < 0 ? 1 : Number(process.argv[at + 1]);

/* Written out four times: they are to be four functions with names of their own. */
function busyParent(n) { let x = 1; for (let i = 0; i < n; i++) x = (Math.imul(x, 5) + i) | 0; return x; }
function busyParentsWorker(n) { let x = 1; for (let i = 0; i < n; i++) x = (Math.imul(x, 5) + i) | 0; return x; }
function busyChild(n) { let x = 1; for (let i = 0; i < n; i++) x = (Math.imul(x, 5) + i) | 0; return x; }
function busyChildsWorker(n) { let x = 1; for (let i = 0; i < n; i++) x = (Math.imul(x, 5) + i) | 0; return x; }

/** About so many seconds of one thread, by a count taken at the start. */
function spend(busy, role) {
  busy(1e5);
  const begin = process.hrtime.bigint();
  busy(1e7);
  const each = Number(process.hrtime.bigint() - begin);
  for (let left = seconds * 1e9; left > 0; left -= each) busy(1e7);
  process.stdout.write(`${JSON.stringify({ role, pid: process.pid, function: busy.name })}\n`);
}

if (!isMainThread) {
  spend(workerData === 'parent' ? busyParentsWorker : busyChildsWorker, `${workerData}'s worker`);
} else if (process.send) {
  // A worker starts once this thread has let it: its own work comes after.
  new Worker(__filename, { workerData: 'child', argv: process.argv.slice(2) })
    .once('online', () => spend(busyChild, 'child'));
} else {
  fork(__filename, process.argv.slice(2));
  new Worker(__filename, { workerData: 'parent', argv: process.argv.slice(2) })
    .once('online', () => spend(busyParent, 'parent'));
}
