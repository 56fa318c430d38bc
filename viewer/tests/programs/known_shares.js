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
//   node known_shares.js [--baseline] [OPTIONS]
//
// The options are those of measure.js, with the counts of share_a to share_d and of the two
// lines (2000,4000,6000,8000,3000,5000); a range of its report is {"function":, "line":}.
'use strict';

const vm = require('node:vm');
const { cpu, isOptimised, measure, optionsWith } = require('./measure.js');

const functionOf = ['share_a', 'share_b', 'share_c', 'share_d', 'share_two_lines',
  'share_two_lines'];
const options = optionsWith(['baseline'], [2000, 4000, 6000, 8000, 3000, 5000]);

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

let betweenLines = 0;
const between = () => { betweenLines = cpu(); };
let x = 3;

function cycle(count, spent) {
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
  return x;
}

const ranges = functionOf.map((name, i) => ({ function: name, line: lines[i] }));
measure(options, ranges, cycle, () => options.baseline || functions.every(isOptimised));
