// A process, a worker in it, and a child process with a worker of its own: each spends
// most of its time in a function named for it.
//
//   node family.js [--rounds N=80]     of ten million turns of a loop in each of the four, some
//                                      0.8 s
//
// Prints one JSON object for each, as they end: {"role":, "pid":, "function":}.
'use strict';

const { Worker, isMainThread, workerData } = require('node:worker_threads');
const { fork } = require('node:child_process');

const at = process.argv.indexOf('--rounds');
const rounds = at < 0 ? 80 : Number(process.argv[at + 1]);

/* Written out four times: they are to be four functions with names of their own. */
function busyParent(n) { let x = 1; for (let i = 0; i < n; i++) x = (Math.imul(x, 5) + i) | 0; return x; }
function busyParentsWorker(n) { let x = 1; for (let i = 0; i < n; i++) x = (Math.imul(x, 5) + i) | 0; return x; }
function busyChild(n) { let x = 1; for (let i = 0; i < n; i++) x = (Math.imul(x, 5) + i) | 0; return x; }
function busyChildsWorker(n) { let x = 1; for (let i = 0; i < n; i++) x = (Math.imul(x, 5) + i) | 0; return x; }

function spend(busy, role) {
  for (let i = 0; i < rounds; i++) busy(1e7);
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
