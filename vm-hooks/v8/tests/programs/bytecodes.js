'use strict';
// Functions whose bytecodes together have most of V8's instructions. Silent until the end.

const many = (count, item, separator) => Array.from({ length: count }, (_, i) => item(i)).join(separator);

// Registers, constants and jumps beyond one byte.
const wide = new Function('x', `
  ${many(300, i => `let v${i} = x + ${i * 1000};`, '\n')}
  if (x > 1) { ${many(300, i => `v${i} += v${(i + 7) % 300}.p${i};`, '\n')} }
  for (const k in x) { ${many(40, i => `v${i} = k;`, '\n')} }
  while (v1 < 5) { v1 += 1; ${many(60, i => `v${i} ^= v2;`, '\n')} if (v3 && !v4) continue; }
  return [${many(300, i => `v${i}`, ',')}];`);
wide(1);
wide(0.5);

class Base {
  #hidden = 1;
  static count = 0n;
  constructor(...rest) { this.rest = rest; Base.count++; }
  get hidden() { return this.#hidden; }
  set hidden(value) { this.#hidden = value; }
  ['computed' + 1]() { return super.toString; }
}
class Derived extends Base {
  constructor(a, b = a, ...more) {
    const late = () => super(a, ...more);
    late();
    super.hidden = b;
    this.hidden += 3;
  }
}

function* generator(n) {
  try {
    const got = yield n;
    yield* [got, ...arguments];
    if (n) return 5;
  } finally {
    n = delete arguments[0];
  }
}

async function waits(list) {
  for await (const one of list) {
    if (one === undefined || one === null) continue;
    await one?.then?.(x => x ?? list);
  }
}

async function* both() { yield await 1; }

function operators(a, b, o) {
  let r = a + b - 1 * a / 2 % 3 ** b;
  r |= (a & b) ^ ~a << 3 >> 1 >>> 2;
  r = -r + +a + a++ + --b;
  if (a == b || a === b || a != null && a < b || a <= b || a > b || a >= b) r = typeof o;
  if (typeof a == 'string' || a instanceof Base || 'x' in o || !a) r = void 0;
  r = { a, [b]: 1, ...o, __proto__: null, get z() { return r; } };
  const { a: c, ...others } = r;
  const [d, , e = 3, ...f] = [1, 2, , 4];
  o.list[a] ??= `text ${a} "${b}"\n`;
  o.list[b] ||= /re\/g/gi.test(`${c}`);
  delete o.x;
  (function named() { o.y &&= named; })();
  return [r, others, d, e, f, String.raw`\u00zz${a}`, new.target, new Map([[1, 2]])];
}

function selects(x) {
  switch (x) {
    case 1: return 'one';
    case 2: case 3: x += 2; break;
    case 4: return 4.25;
    case 5: return -7;
    case 6: return 1e300;
    case 7: return 123456789;
    case 8: debugger; return null;
    case 'text': return x;
    default: throw new RangeError('x');
  }
  outer: for (let i = 0; i < 3; i++) {
    for (const j of [1, 2]) { if (j > i) continue outer; if (i == 2) break outer; }
  }
  do { x--; } while (x > 0);
  return x;
}

const sloppy = new Function('o', 'x', `
  with (o) { found = x; x = found + typeof missing; }
  eval('var made = x'); made = arguments.length; delete made;
  return made1 = this;`);

function closes() {
  const all = [];
  for (let i = 0; i < 2; i++) all.push(() => i++);
  { using: all.forEach(f => f()); }
  return all;
}

new Derived(1, 2, 3).computed1();
const steps = generator(1);
steps.next(); steps.next(2); steps.return();
waits([Promise.resolve(1), null]);
both().next();
operators.call(null, 1, 2, { list: [], x: 1 });
for (const x of [1, 2, 3, 4, 5, 6, 7, 8, 'text', 9]) { try { selects(x); } catch (error) { error.message; } }
sloppy({ found: 1 }, 2);
closes();
JSON.stringify({ a: [1, { b: 2 }] });
new URL('http://a/b?c=d').search;

setImmediate(() => {
  // The process stays as it is until its standard input ends. A full pipe takes the line later.
  process.stdout.write('\nEND\n', () => require('fs').readSync(0, Buffer.alloc(1)));
});
