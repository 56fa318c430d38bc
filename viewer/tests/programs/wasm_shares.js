// WebAssembly functions with known shares (TRUTH.md §3, §4): what known_shares.c is among native programs.
//
//   share_a, share_b, share_c, share_d   named by the section of names; share_d calls an import once
//   wasm-function[5]                     without a name
//
// Each function repeats one dependent operation 200 times in a row, in a loop whose count comes from the
// command line.
//
//   node wasm_shares.js [--liftoff] [--unnamed] [OPTIONS]
//
// --liftoff: for `node --liftoff-only`. --unnamed: without a section of names; four functions have names by
// which they are exported, `export_0` to `export_3`. The options are those of measure.js, with the counts
// of the five functions (2000,4000,6000,8000,3000).
'use strict';

const { cpu, measure, optionsWith } = require('./measure.js');
const { instantiate } = require('./wasm_module.js');

const options = optionsWith(['liftoff', 'unnamed'], [2000, 4000, 6000, 8000, 3000]);
const names = ['share_a', 'share_b', 'share_c', 'share_d'];
const exported = names.map((_, i) => `export_${i}`);
const functions = instantiate('shares', [...names, ''].map((name, i) => ({
  name: options.unnamed ? '' : name, exported: exported[i], operations: 200, ticks: i === 3,
})));

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

const shown = [...(options.unnamed ? exported : names), 'wasm-function[5]'];
const ranges = shown.map((name) => ({ function: name, line: 0 }));
measure(options, ranges, cycle, () => options.liftoff || functions.every((one) => !isLiftoff(one)));
