// Fills the heap with young and old objects, in the main thread and then in a worker, so that V8 collects in all
// ways. Prints END, and waits for the end of stdin.
'use strict';
const { Worker, isMainThread, parentPort } = require('worker_threads');

let old = [];
let sink = 0;

function young() {
  for (let i = 0; i < 2000; i++) sink += { i, text: 'x' + i, numbers: [i, i + 1] }.numbers.length;
}
function keep() {
  old.push(new Array(1000).fill(sink).map((x, i) => ({ x, i })));
  if (old.length > 200) old = old.slice(150);
}
// Pauses between the rounds let V8 run its tasks.
function fill(rounds, then) {
  for (let i = 0; i < 20; i++) { young(); keep(); }
  if (rounds > 1) setTimeout(fill, 1, rounds - 1, then);
  else then();
}

if (isMainThread) {
  fill(100, () => {
    const worker = new Worker(__filename);
    worker.on('message', () => { console.log('END'); });
    process.stdin.on('end', () => process.exit()).resume();
  });
} else {
  parentPort.on('message', () => {});
  fill(50, () => parentPort.postMessage('done'));
}
