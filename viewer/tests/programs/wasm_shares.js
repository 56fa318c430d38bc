// WebAssembly functions with known shares (TRUTH.md §3, §4): what known_shares.js is among JavaScript.
//
//   share_a, share_b, share_c, share_d   exported; names by the section of names
//   wasm-function[5]                     in a table; its number is its name
//
// The module imports one function, `host.tick`, which `share_d` calls once, so functions are numbered from
// 1. Each function repeats one dependent operation 200 times in a row, in a loop whose count comes from
// the command line.
//
//   node wasm_shares.js [--liftoff] [--unnamed] [OPTIONS]
//
// --liftoff: for `node --liftoff-only`. --unnamed: the module has no section of names. The options are
// those of measure.js, with the counts of share_a to wasm-function[5]
// (2000,4000,6000,8000,3000).
'use strict';

const { cpu, measure, optionsWith } = require('./measure.js');

const options = optionsWith(['liftoff', 'unnamed'], [2000, 4000, 6000, 8000, 3000]);
const names = ['share_a', 'share_b', 'share_c', 'share_d'];

/** An unsigned number in LEB128. */
function number(value) {
  const bytes = [];
  do {
    bytes.push((value & 127) | (value > 127 ? 128 : 0));
    value >>>= 7;
  } while (value > 0);
  return bytes;
}

const vector = (items) => [...number(items.length), ...items.flat()];
const text = (word) => vector([...Buffer.from(word)]);
const section = (kind, bytes) => [kind, ...vector(bytes)];

const [I32, GET, SET, CONST, ADD, MUL, ROTATE, LOOP, BR_IF, CALL, END] = [
  0x7f, 0x20, 0x21, 0x41, 0x6a, 0x6c, 0x77, 0x03, 0x0d, 0x10, 0x0b];
// x = rotate(x * 5 + 1, 1)
const operation = [GET, 0, CONST, 5, MUL, CONST, 1, ADD, CONST, 1, ROTATE, SET, 0];
const again = [GET, 1, CONST, 0x7f, ADD, SET, 1, GET, 1, BR_IF, 0];
const body = (begin) => [0, ...begin, LOOP, 0x40, ...Array(200).fill(operation).flat(), ...again, END, GET, 0, END];

const type = (parameters, results) => [0x60, ...vector(parameters), ...vector(results)];
const bodies = [[], [], [], [CALL, 0], []].map(body);
const bytes = [
  0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
  ...section(1, vector([type([I32, I32], [I32]), type([], [])])),
  ...section(2, vector([[...text('host'), ...text('tick'), 0, 1]])),
  ...section(3, vector(bodies.map(() => [0]))),
  ...section(4, vector([[0x70, 0, 1]])),
  ...section(7, vector([
    ...names.map((_, i) => [...text(`export_${i}`), 0, i + 1]),
    [...text('table'), 1, 0],
  ])),
  ...section(9, vector([[0, CONST, 0, END, ...vector([[5]])]])),
  ...section(10, vector(bodies.map((one) => vector(one)))),
  ...(options.unnamed ? [] : section(0, [...text('name'),
    ...section(0, text('shares')),
    ...section(1, vector(names.map((name, i) => [i + 1, ...text(name)])))])),
];

let ticks = 0;
const compiled = new WebAssembly.Module(Uint8Array.from(bytes));
const instance = new WebAssembly.Instance(compiled, { host: { tick() { ticks++; } } }).exports;
const functions = [...names.map((_, i) => instance[`export_${i}`]), instance.table.get(0)];

const isLiftoff = new Function('f', 'return %IsLiftoffFunction(f)');
let x = 3;

function cycle(count, spent) {
  functions.forEach((one, i) => {
    const begin = cpu();
    x = one(x, count[i]);
    spent[i] += cpu() - begin;
  });
  return x;
}

const shown = options.unnamed ? names.map((_, i) => `export_${i}`) : names;
const ranges = [...shown, 'wasm-function[5]'].map((name) => ({ function: name, line: 0 }));
measure(options, ranges, cycle, () => options.liftoff || functions.every((one) => !isLiftoff(one)));
