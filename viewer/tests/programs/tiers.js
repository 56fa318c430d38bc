// JavaScript functions of different kinds, with known shares:
//
//   numeric             a loop of integers
//   outer, inner        the second is inlined into the first
//   shapes, step        a call site of three shapes, whose methods are inlined
//   fib, fibs           recursion, and the loop that begins it
//   too_big             too many bytecodes for the optimising compilers, so Sparkplug's code; in a script
//                       of its own, `too_big.generated.js`
//
// The functions' own code does nearly all of the work: builtins have a small part in it. With --text, a
// function of strings and regular expressions (`text`) works too. It is not among the ranges: its time
// is that of regular expressions, builtins and the runtime.
//
//   node tiers.js [--text] [--unoptimised] [OPTIONS]
//
// The options are those of measure.js, with the counts of the five ranges. --unoptimised is for
// `node --no-opt` and the like: nothing is awaited. A range of the report is
// {"functions":[…], "line": (of the first function), "optimised":}.
'use strict';

const vm = require('node:vm');
const { cpu, isOptimised, measure, optionsWith } = require('./measure.js');

const options = optionsWith(['text', 'unoptimised'], [800000, 250000, 400000, 40, 6]);

function numeric(x, n) {
  let y = x;
  for (let i = 0; i < n; i++) y = (Math.imul(y, 48271) + i) | 0;
  return y;
}

function inner(y, i) {
  y = (Math.imul(y, 5) + i) | 0;
  y = (Math.imul(y, 7) ^ i) | 0;
  y = (Math.imul(y, 11) + i) | 0;
  return (Math.imul(y, 13) ^ i) | 0;
}
function outer(x, n) {
  let y = x;
  for (let i = 0; i < n; i++) y = inner(y, i);
  return y;
}

class Adds { step(y) { return (Math.imul(y, 5) + 1) | 0; } }
class Flips { step(y) { return (Math.imul(y, 7) ^ 1) | 0; } }
class Halves { step(y) { return (Math.imul(y, 11) >> 1) | 0; } }
const kinds = [new Adds(), new Flips(), new Halves()];
function shapes(x, n) {
  let y = x;
  for (let i = 0; i < n; i++) y = kinds[i % 3].step(y);
  return y;
}

function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
function fibs(x, n) {
  let y = x;
  for (let i = 0; i < n; i++) y = (y + fib(18)) | 0;
  return y;
}

// V8 optimises no more than 60 KiB of bytecodes, of which an operation takes two or more.
const tooBigText = ['function too_big(x, n) {', '  let y = x;', `  do { ${'y = y === null; '.repeat(40000)}} while (--n);`,
  '  return y === 42 ? 0 : x;', '}', 'too_big'];
const tooBig = vm.runInThisContext(tooBigText.join('\n'), { filename: 'too_big.generated.js' });

const words = 'the quick brown fox jumps over the lazy dog, 12:34:56, and away it goes; '.repeat(20);
function text(x, n) {
  let found = 0;
  for (let i = 0; i < n; i++) {
    found += words.match(/([a-z]+) (\w+), (\d+):(\d+):(\d+)/g).length;
    found += `${x}:${i}`.padStart(20, '-').toUpperCase().split('-').length;
  }
  return found;
}

let x = 3;
// `cycle` calls so many functions at one place that no compiler inlines them.
const works = [
  { functions: [numeric], run: numeric },
  { functions: [outer, inner], run: outer },
  { functions: [shapes, ...kinds.map((kind) => kind.step)], run: shapes },
  { functions: [fib, fibs], run: fibs },
  { functions: [tooBig], run: tooBig, optimised: false },
];

function cycle(counts, spent) {
  works.forEach(({ run }, i) => {
    const begin = cpu();
    x = run(x, counts[i]) | 0;
    spent[i] += cpu() - begin;
  });
  return options.text ? x + text(x, 20) : x;
}

const source = require('node:fs').readFileSync(__filename, 'utf8').split('\n');
const ranges = works.map(({ functions, optimised = !options.unoptimised }) => {
  const names = [...new Set(functions.map((one) => one.name))];
  const line = source.findIndex((text) => text.startsWith(`function ${names[0]}(`)) + 1;
  return { functions: names, line: line || 1, optimised };
});
const awaited = works.filter(({ optimised }) => optimised !== false).map(({ functions }) => functions[0]);
measure(options, ranges, cycle, () => options.unoptimised || awaited.every(isOptimised));
