// Workers that live for a moment, one after the other, as test runners start them: each runs a function of its own,
// named KIND_NUMBER, whose code is like that of all others. The next worker's code takes the addresses of the last one's.
//
//   node short_workers.js [--workers N=15] [--ms LIFE=200] --log FILE
//
// --log writes what ran when, a line `KIND CODE BEGIN END` for each worker, in nanoseconds of CLOCK_MONOTONIC. At the end
// one JSON object: {"pid":, "workers":}
'use strict';

const fs = require('node:fs');
const { Worker, isMainThread, parentPort, workerData } = require('node:worker_threads');

const KINDS = ['alpha', 'beta', 'gamma'];

/** Runs a function of that name for some milliseconds. */
function live({ name, ms }) {
  const body = 'let s = 0; for (let i = 0; i < 3000; i++) { s = (s * 31 + i * x) | 0; } return s;';
  const work = new Function(`return function ${name}(x) { ${body} }`)();
  const begin = process.hrtime.bigint();
  const end = Date.now() + ms;
  let sum = 0;
  while (Date.now() < end) {
    for (let i = 0; i < 50; i++) sum = (sum + work(i)) | 0;
  }
  parentPort.postMessage(`${name.split('_')[0]} ${name} ${begin} ${process.hrtime.bigint()}\n`);
}

function main() {
  const options = { workers: 15, ms: 200, log: '' };
  for (let i = 2; i < process.argv.length; i += 2) {
    const name = process.argv[i].slice(2);
    options[name] = name === 'log' ? process.argv[i + 1] : Number(process.argv[i + 1]);
  }
  const log = fs.openSync(options.log, 'w');
  let done = 0;
  const next = () => {
    if (done === options.workers) {
      console.log(JSON.stringify({ pid: process.pid, workers: done }));
      return;
    }
    const name = `${KINDS[done % KINDS.length]}_${done}`;
    done += 1;
    const worker = new Worker(__filename, { workerData: { name, ms: options.ms } });
    worker.on('message', (line) => fs.writeSync(log, line));
    worker.on('exit', next);
  };
  next();
}

if (isMainThread) main();
else live(workerData);
