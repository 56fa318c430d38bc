// JavaScript functions and lines with known shares (TRUTH.md §3, §4, §6): what
// known_shares.c is among native programs.
//
//   share_a, share_b, share_c, share_d   one function each
//   share_two_lines                      two ranges, two loops on two lines of it
//
// Every range repeats ONE dependent operation 200 times in a row, in a loop whose count
// comes from the command line. The functions are written out by this program, as no one
// wants to read 200 operations in a row; they are in a script of their own,
// `known_shares.generated.js`. They are too large to be inlined into each other.
//
// The operation is a multiplication and an addition. An optimised function does them by
// itself; unoptimised code calls builtins for arithmetic. With --baseline the operation is
// a comparison with null, whose result is compared next: V8's baseline compiler does that
// in the function's own code, and its optimising compiler would leave it out. So that is
// for `node --no-opt`.
//
// The truth is the process' CPU time around each range (getrusage, in microseconds; a
// range takes 300 µs or more with the default counts). No other thread has anything to do
// once the program is warm. What happens before `measured_from_ns` (CLOCK_MONOTONIC) is
// not in the truth: until then code is compiled.
//
//   node known_shares.js [--cycles N=500 | --forever] [--baseline]
//                        [--loops A,B,C,D,L1,L2=2000,4000,6000,8000,3000,5000]
//                        [--jitter PERCENT=0]
//
// --jitter: as in known_shares.c. --forever prints `ready PID` on a line by itself when
// the functions are compiled, and goes on until SIGTERM. At the end one JSON object:
//
//   {"pid":, "measured_from_ns":, "measured_to_ns":, "cycles":, "cpu_seconds":,
//     "ranges":[{"function":, "line":, "seconds":}]}
'use strict';

const vm = require('node:vm');

const functionOf = ['share_a', 'share_b', 'share_c', 'share_d', 'share_two_lines',
  'share_two_lines'];
const options = { cycles: 500, forever: false, baseline: false, jitter: 0,
  loops: [2000, 4000, 6000, 8000, 3000, 5000] };

function usage(why) {
  process.stderr.write(`known_shares.js: ${why}\n`);
  process.exit(2);
}

for (let i = 2; i < process.argv.length; i++) {
  const name = process.argv[i];
  if (name === '--forever' || name === '--baseline') {
    options[name.slice(2)] = true;
    continue;
  }
  const value = process.argv[++i] ?? '';
  if (name === '--cycles') options.cycles = Number(value);
  else if (name === '--jitter') options.jitter = Number(value);
  else if (name === '--loops') options.loops = value.split(',').map(Number);
  else usage('unknown option; the head of known_shares.js lists them');
}
if (options.loops.length !== 6 || !options.loops.every((count) => count > 0)) {
  usage('--loops takes six positive numbers, separated by commas');
}
if (!(options.cycles > 0)) usage('--cycles takes a number from 1');
if (!(options.jitter >= 0 && options.jitter <= 50)) usage('--jitter takes 0 to 50');

const operation = options.baseline ? 'y = y === null; ' : 'x = (x * 5 + 1) | 0; ';
const loop = (count) => `  do { ${operation.repeat(200)}} while (--${count});`;
// What takes the two counts has a range for each of them.
const one = (name) => [`function ${name}(x, n) {`, '  let y = x;', loop('n'), '  return y === 42 ? 0 : x;', '}'];
const text = [
  ...['share_a', 'share_b', 'share_c', 'share_d'].flatMap(one),
  'function share_two_lines(x, n, m, between) {', '  let y = x;', loop('n'), '  between();', loop('m'),
  '  return y === 42 ? 0 : x;', '}',
];
const lines = text.flatMap((line, at) => (line.startsWith('  do') ? [at + 1] : []));
const source = `${text.join('\n')}\n[share_a, share_b, share_c, share_d, share_two_lines]`;
const functions = vm.runInThisContext(source, { filename: 'known_shares.generated.js' });

/** CPU time of the process, in microseconds. */
function cpu() {
  const usage = process.cpuUsage();
  return usage.user + usage.system;
}

const spent = [0, 0, 0, 0, 0, 0];
let betweenLines = 0;
const between = () => { betweenLines = cpu(); };
let random = process.pid * 2 + 1;
let x = 3;

function scale() {
  random = (Math.imul(random, 1103515245) + 12345) & 0x7fffffff;
  return 1 + (random / 0x40000000 - 1) * options.jitter / 100;
}

function cycle(loops) {
  const factor = scale();
  const count = loops.map((mean) => Math.max(1, Math.round(mean * factor)));
  for (let i = 0; i < 4; i++) {
    const begin = cpu();
    x = functions[i](x, count[i]);
    spent[i] += cpu() - begin;
  }
  const begin = cpu();
  x = functions[4](x, count[4], count[5], between);
  const end = cpu();
  spent[4] += betweenLines - begin;
  spent[5] += end - betweenLines;
}

// Everything is compiled, and what replaces it too, before anything counts. Another thread
// optimises: V8 itself says when it has.
const { loops } = options;
require('node:v8').setFlagsFromString('--allow-natives-syntax');
const statusOf = new Function('f', 'return %GetOptimizationStatus(f)');
const OPTIMISED = 1 << 4; // V8's OptimizationStatus, since 2016
const isCompiled = () => options.baseline || functions.every((one) => statusOf(one) & OPTIMISED);
for (let i = 0; i < 200; i++) cycle(loops.map((count) => Math.ceil(count / 20)));
for (let i = 0; i < 10; i++) cycle(loops);

let cycles = 0;
let from = 0n;
let stop = false;

function finish() {
  const ranges = functionOf.map((name, i) => ({ function: name, line: lines[i],
    seconds: spent[i] / 1e6 }));
  const report = { pid: process.pid, measured_from_ns: Number(from),
    measured_to_ns: Number(process.hrtime.bigint()), cycles, cpu_seconds: cpu() / 1e6, ranges };
  process.stdout.write(`${JSON.stringify(report)}\n`);
  // The result is used, or the chain would be nobody's.
  process.exit(x === 0.5 ? 1 : 0);
}

// A compilation in another thread ends within a turn; signals come between turns.
function turn() {
  if (from === 0n) {
    spent.fill(0);
    from = process.hrtime.bigint();
  }
  for (let i = 0; i < 10; i++) {
    cycle(loops);
    cycles++;
    if (!options.forever && cycles >= options.cycles) return finish();
  }
  if (stop) return finish();
  setImmediate(turn);
}

process.on('SIGTERM', () => { stop = true; });
let warming = 0;
function warm() {
  if (!isCompiled()) {
    // Finished code is put in place between turns. A bound that no machine comes near.
    if (++warming > 2000) usage('V8 does not optimise the functions');
    cycle(loops.map((count) => Math.ceil(count / 20)));
    setImmediate(warm);
    return;
  }
  if (options.forever) process.stdout.write(`ready ${process.pid}\n`);
  turn();
}
setImmediate(warm);
