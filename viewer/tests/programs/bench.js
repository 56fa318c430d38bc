// What most JavaScript programs are made of, in one: a recursive function, a sieve, a call
// site that sees many shapes, a loop that allocates, a regular expression, and a hot loop
// whose lines can be told apart. Each phase runs for a while, round after round.
//
//   node bench.js [--seconds CPU_SECONDS=3] [--forever]
//
// --forever prints `ready PID` after the first round and goes on until SIGTERM. At the end
// one JSON object is printed:
//
//   {"pid":, "rounds":, "cpu_seconds":, "lines":{"first":, "second":, "third":},
//     "phases":{"fib":, "sieve":, "sumAreas":, "allocate":, "match":, "threeLines":}}
//
// `phases` are CPU seconds of the process during each; `lines` are the source lines of
// threeLines' three loops, whose counts are as 1 : 2 : 3.
'use strict';

function fib(n) {
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

function sieve(size) {
  const composite = new Uint8Array(size + 1);
  let primes = 0;
  for (let i = 2; i <= size; i++) {
    if (composite[i]) continue;
    primes++;
    for (let j = i * i; j <= size; j += i) composite[j] = 1;
  }
  return primes;
}

class Square {
  constructor(side) { this.side = side; }
  area() { return this.side * this.side; }
}
class Circle {
  constructor(radius) { this.radius = radius; }
  area() { return 3.14159 * this.radius * this.radius; }
}
class Triangle {
  constructor(base, height) { this.base = base; this.height = height; }
  area() { return this.base * this.height / 2; }
}
class Ring {
  constructor(outer, inner) { this.inner = inner; this.outer = outer; }
  area() { return 3.14159 * (this.outer * this.outer - this.inner * this.inner); }
}
class Nothing {
  area() { return 0; }
}

const shapes = Array.from({ length: 1000 }, (_, i) => [
  new Square(i), new Circle(i), new Triangle(i, 2), new Ring(i, i / 2), new Nothing(),
][i % 5]);

function sumAreas(times) {
  let sum = 0;
  for (let i = 0; i < times; i++) {
    for (const shape of shapes) sum += shape.area();
  }
  return sum;
}

// A part of what is allocated stays for a while, so that the collector has something to do.
const kept = new Array(20000);

function allocate(count) {
  let last = null;
  for (let i = 0; i < count; i++) {
    last = { next: i % 50 ? last : null, value: i, name: [i, i + 1] };
    if (i % 7 === 0) kept[i % kept.length] = last;
  }
  return last.value;
}

const text = 'the quick brown fox jumps over the lazy dog, 12:34:56, and away it goes; '.repeat(50);

function match(times) {
  let found = 0;
  for (let i = 0; i < times; i++) {
    found += text.match(/([a-z]+) (\w+), (\d+):(\d+):(\d+)/g).length;
  }
  return found;
}

function threeLines(n) {
  let x = 1;
  for (let i = 0; i < n; i++) x = (Math.imul(x, 5) + i) | 0; // first
  for (let i = 0; i < 2 * n; i++) x = (Math.imul(x, 5) + i) | 0; // second
  for (let i = 0; i < 3 * n; i++) x = (Math.imul(x, 5) + i) | 0; // third
  return x;
}

function cpu() {
  const usage = process.cpuUsage();
  return (usage.user + usage.system) / 1e6;
}

const phases = { fib: 0, sieve: 0, sumAreas: 0, allocate: 0, match: 0, threeLines: 0 };
const work = { fib: [fib, 25], sieve: [sieve, 400000], sumAreas: [sumAreas, 300],
  allocate: [allocate, 60000], match: [match, 150], threeLines: [threeLines, 500000] };
let rounds = 0;
let checksum = 0;

function round() {
  for (const name of Object.keys(phases)) {
    const [phase, amount] = work[name];
    const begin = cpu();
    checksum += phase(amount);
    phases[name] += cpu() - begin;
  }
  rounds++;
}

const forever = process.argv.includes('--forever');
const at = process.argv.indexOf('--seconds');
const seconds = at < 0 ? 3 : Number(process.argv[at + 1]);
let stop = false;

function turn() {
  round();
  if (rounds === 1 && forever) process.stdout.write(`ready ${process.pid}\n`);
  if (stop || (!forever && cpu() >= seconds)) {
    const own = threeLines.toString().split('\n');
    const source = require('node:fs').readFileSync(__filename, 'utf8').split('\n');
    const line = (mark) => source.indexOf(own.find((text) => text.endsWith(`// ${mark}`))) + 1;
    const lines = { first: line('first'), second: line('second'), third: line('third') };
    const report = { pid: process.pid, rounds, cpu_seconds: cpu(), lines, phases, checksum: Number.isNaN(checksum) };
    process.stdout.write(`${JSON.stringify(report)}\n`, () => process.exit(0));
    return;
  }
  setImmediate(turn);
}

process.on('SIGTERM', () => { stop = true; });
turn();
