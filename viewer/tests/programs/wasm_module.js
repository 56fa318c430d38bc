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

const [I32, GET, SET, CONST, ADD, MUL, ROTATE, LOAD, LOOP, BR_IF, CALL, END] = [
  0x7f, 0x20, 0x21, 0x41, 0x6a, 0x6c, 0x77, 0x28, 0x03, 0x0d, 0x10, 0x0b];
const times = (count, instructions) => Array(count).fill(instructions).flat();
// x = rotate(x * 5 + 1, 1)
const operation = [GET, 0, CONST, 5, MUL, CONST, 1, ADD, CONST, 1, ROTATE, SET, 0];
// x = memory[x]
const load = [GET, 0, LOAD, 2, 0, SET, 0];
/** x = function(x, 0) */
const call = (number) => [GET, 0, CONST, 0, CALL, number, SET, 0];
const again = [GET, 2, CONST, 0x7f, ADD, SET, 2, GET, 2, BR_IF, 0];

function body({ operations, ticks, code, loops }) {
  const begin = [...(ticks ? [CALL, 0] : []), ...(code ?? [])];
  const each = loops ?? (code ? [] : [times(operations, operation)]);
  const all = each.map((loop) => [GET, 1, SET, 2, LOOP, 0x40, ...loop, ...again, END]);
  return vector([1, 1, I32, ...begin, ...all.flat(), GET, 0, END]);
}

/**
 * The functions of a new instance of a module called `name`; each takes a number to compute with, and the
 * number of turns of its loops. `functions` has for each the number of operations in a turn, or the instructions of
 * its `loops`, or of its `code` before them; and maybe its `name`, the name by which it is `exported`, and whether it
 * calls `host.tick` once (`ticks`). The import has number 0.
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
    ...(functions.some((one) => one.code || one.loops) ? section(5, vector([[0, 1]])) : []),
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

module.exports = { call, instantiate, load, times };
