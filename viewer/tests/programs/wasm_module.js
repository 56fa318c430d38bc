// Makes WebAssembly modules whose functions compute in loops.
'use strict';

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
const type = (parameters, results) => [0x60, ...vector(parameters), ...vector(results)];

const [I32, GET, SET, CONST, ADD, MUL, ROTATE, LOOP, BR_IF, CALL, END] = [
  0x7f, 0x20, 0x21, 0x41, 0x6a, 0x6c, 0x77, 0x03, 0x0d, 0x10, 0x0b];
// x = rotate(x * 5 + 1, 1)
const operation = [GET, 0, CONST, 5, MUL, CONST, 1, ADD, CONST, 1, ROTATE, SET, 0];
const again = [GET, 1, CONST, 0x7f, ADD, SET, 1, GET, 1, BR_IF, 0];

function body({ operations, ticks }) {
  const begin = ticks ? [CALL, 0] : [];
  const loop = Array(operations).fill(operation).flat();
  return vector([0, ...begin, LOOP, 0x40, ...loop, ...again, END, GET, 0, END]);
}

/**
 * The functions of a new instance of a module called `name`; each takes a number to compute with, and the
 * number of turns of its loop. `functions` has for each the number of operations in a turn, and maybe its
 * `name`, the name by which it is `exported`, and whether it calls `host.tick` once (`ticks`). The import
 * has number 0.
 */
function instantiate(name, functions) {
  const numbers = functions.map((_, i) => i + 1);
  const all = functions.map((one, i) => ({ ...one, number: i + 1 }));
  const exports = all.filter((one) => one.exported);
  const named = all.filter((one) => one.name);
  const bytes = [
    0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
    ...section(1, vector([type([I32, I32], [I32]), type([], [])])),
    ...section(2, vector([[...text('host'), ...text('tick'), 0, 1]])),
    ...section(3, vector(all.map(() => [0]))),
    ...section(4, vector([[0x70, 0, ...number(all.length)]])),
    ...section(7, vector([
      ...exports.map((one) => [...text(one.exported), 0, ...number(one.number)]),
      [...text('table'), 1, 0],
    ])),
    ...section(9, vector([[0, CONST, 0, END, ...vector(numbers.map(number))]])),
    ...section(10, vector(all.map(body))),
    ...(named.length === 0 ? [] : section(0, [...text('name'),
      ...section(0, text(name)),
      ...section(1, vector(named.map((one) => [...number(one.number), ...text(one.name)])))])),
  ];
  const compiled = new WebAssembly.Module(Uint8Array.from(bytes));
  const { table } = new WebAssembly.Instance(compiled, { host: { tick() {} } }).exports;
  return numbers.map((_, i) => table.get(i));
}

module.exports = { instantiate };
