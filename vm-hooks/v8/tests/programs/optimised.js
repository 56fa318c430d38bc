'use strict';
// Functions that V8 optimises and inlines into each other. Silent until the end; then come the scripts
// of its made functions, each with a zero behind.

function add(a, b) {
  return a * b +
    (a ^ b);
}

class Point {
  constructor(x, y) {
    this.x = x;
    this.y = y;
  }
  plus(other) {
    return new Point(
      add(this.x, other.x),
      add(this.y, other.y));
  }
}

function numeric(count) {
  let sum = 0;
  for (let i = 0; i < count; i++) {
    sum = (sum + add(i, sum)) | 0;
    sum ^= 17;
    if (sum < 0) {
      sum = -sum;
    }
  }
  return sum;
}

function objects(count) {
  let point = new Point(1, 2);
  for (let i = 0; i < count; i++) {
    point = point.plus(new Point(i & 7, 3));
    point.x &= 1023;
    point.y &= 1023;
  }
  return point.x;
}

function strings(list) {
  return list
    .map(word => word.length + word.charCodeAt(0))
    .filter(number => number % 2)
    .reduce((sum, number) => sum + number, 0);
}

function recursive(n) {
  return n < 2 ? n : recursive(n - 1) + recursive(n - 2);
}

const made = new Function('a', 'let s = 0;\nfor (let i = 0; i < a; i++)\n  s += i * a;\nreturn s;');
// A source of two bytes a character.
const wide = (0, eval)(`(function wide(n) {\n  let π = 3;\n  for (let i = 0; i < n; i++) {\n    π += i * π % 7;\n  }\n  return π;\n})`);

const words = 'the quick brown fox jumps over the lazy dog'.split(' ');
let result = 0;
// A number of rounds: V8 counts calls, not time.
for (let round = 0; round < 3000; round++) {
  result += numeric(1000) + objects(300) + strings(words) + recursive(12) + made(500) + wide(500);
}
globalThis.result = result;

// Compilations end meanwhile.
setTimeout(() => {
  const said = `(${made})\0(${wide})\0\nEND\n`;
  process.stdout.write(said, () => require('fs').readSync(0, Buffer.alloc(1)));
}, 300);
