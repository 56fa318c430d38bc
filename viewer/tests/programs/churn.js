// Functions that are made, compiled, run and dropped all the time, of four kinds: what jit_churn.c is among
// native programs. `new Function` makes each from source of its own, named KIND_NUMBER; the last kind,
// `steady`, has one function from beginning to end. V8's collector frees dropped functions' code and moves
// the rest.
//
//   node churn.js [--lives N=600 | --forever] [--ms MEAN=4] [--kept N=50] [--collect N=40] [--wasm N | --regexp 1] [--log FILE]
//
// Each life is a run of one function for some milliseconds of wall-clock time, four in five of a new
// function, one in five of a function made before (one of the last --kept) or of `steady`. Old space's
// garbage brings mark-compact collections; --collect asks for a full one after every N lives too.
// --wasm makes functions of WebAssembly, N in each module; --regexp makes regular expressions, which have the name in
// them. --forever prints `ready PID` and goes on until SIGTERM. --log writes what ran when, a line
// `KIND CODE BEGIN END` for each life, in nanoseconds of CLOCK_MONOTONIC. At the end one JSON object:
//
//   {"pid":, "made":, "collections":, "kinds":[{"kind":, "seconds": (of the process' CPU time)}]}
'use strict';

const fs = require('node:fs');
const vm = require('node:vm');
const { instantiate } = require('./wasm_module.js');

const KINDS = ['alpha', 'beta', 'gamma', 'steady'];
const options = { lives: 600, ms: 4, kept: 50, collect: 40, wasm: 0, regexp: 0, log: '' };
const words = process.argv.slice(2);
const forever = words[0] === '--forever';
let stop = false;
if (forever) {
  words.shift();
  process.on('SIGTERM', () => { stop = true; });
  process.stdout.write(`ready ${process.pid}\n`);
}
for (let i = 0; i < words.length; i += 2) {
  const name = words[i].slice(2);
  const value = words[i + 1];
  if (!(name in options) || value === undefined) {
    process.stderr.write('churn.js: unknown option; its head lists them\n');
    process.exit(2);
  }
  options[name] = name === 'log' ? value : Number(value);
}

require('node:v8').setFlagsFromString('--expose-gc');
const collect = vm.runInNewContext('gc');
let collections = 0;
const { PerformanceObserver, constants } = require('node:perf_hooks');
new PerformanceObserver((list) => {
  const full = constants.NODE_PERFORMANCE_GC_MAJOR;
  collections += list.getEntries().filter((entry) => entry.detail.kind === full).length;
}).observe({ entryTypes: ['gc'] });

let random = process.pid * 2 + 1;
function next(below) {
  random = (Math.imul(random, 1103515245) + 12345) & 0x7fffffff;
  return Math.floor(random / 0x80000000 * below);
}

// Returns after some 20 us of its own code: a loop of operations that depend on each other.
function make(name, number) {
  if (options.wasm) {
    const run = ofModule(number);
    return (x) => run(x, 1000);
  }
  if (options.regexp) {
    const pattern = new RegExp(`^(?:x+x+)+${name}$`);
    return (x) => x + pattern.test('xxxxxxxxxxxxxxxx');
  }
  const operation = `y = (Math.imul(y, ${2 * number + 5}) + i) | 0;`;
  const text = `return function ${name}(x) {
    let y = x;
    for (let i = 0; i < 4000; i++) { ${operation.repeat(4)} }
    return y;
  }`;
  return new Function(text)();
}

let functions = [];
/** The function of this number, the next of the last module, or the first of a new module. */
function ofModule(number) {
  if (functions.length === 0) {
    const numbers = Array.from({ length: options.wasm }, (_, i) => number + i);
    const all = numbers.map((i) => ({ name: nameOf(i), operations: 10 + i % 7 }));
    functions = instantiate(nameOf(number), all);
  }
  return functions.shift();
}

/** CPU time of the process, in microseconds. */
function cpu() {
  const usage = process.cpuUsage();
  return usage.user + usage.system;
}

const kindOf = (number) => (number === 0 ? 3 : [0, 1, 1, 2, 2, 2][number % 6]);
const nameOf = (number) => `${KINDS[kindOf(number)]}_${number}`;
const steady = { kind: 3, name: 'steady_0', run: make('steady_0', 0) };
const kept = [];
const garbage = [];
const lives = [];
const seconds = KINDS.map(() => 0);
let made = 1;
let x = 3;

function choose() {
  if (next(4) === 0) return steady;
  if (kept.length > 0 && next(5) === 0) return kept[next(kept.length)];
  const name = nameOf(made);
  const one = { kind: kindOf(made), name, run: make(name, made++) };
  kept.push(one);
  if (kept.length > options.kept) kept.shift();
  return one;
}

function live() {
  const one = choose();
  const lasts = BigInt(Math.round(options.ms * 1e6 * (0.5 + next(1000) / 1000)));
  const began = cpu();
  const begin = process.hrtime.bigint();
  let end = begin;
  while (end - begin < lasts) {
    x = one.run(x);
    end = process.hrtime.bigint();
  }
  seconds[one.kind] += (cpu() - began) / 1e6;
  lives.push(`${KINDS[one.kind]} ${one.name} ${begin} ${end}`);
  garbage[next(200)] = Array.from({ length: 2000 }, (_, i) => ({ i }));
  if (lives.length % options.collect === 0) collect();
}

function turn() {
  live();
  if (!stop && (forever || lives.length < options.lives)) return setImmediate(turn);
  if (options.log) fs.writeFileSync(options.log, `${lives.join('\n')}\n`);
  const kinds = KINDS.map((kind, i) => ({ kind, seconds: seconds[i] }));
  process.stdout.write(`${JSON.stringify({ pid: process.pid, made, collections, kinds, x })}\n`, () => process.exit(0));
}
turn();
