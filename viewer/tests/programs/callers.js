// Functions that are called in known ways: directly, through 30 recursive calls, by an array's callback, by a
// sort's comparator, by JSON's reviver, by a method, a getter, a generator, after a throw, by a timer and a promise; with
// --deoptimise by optimised code that V8 deoptimises meanwhile, too.
// V8 tells each way by the stack of an Error.
//
//   node callers.js [--seconds SECONDS=3] [--deoptimise]
//
// At the end one JSON object is printed: names of this file's functions, and by leaf its stacks, innermost first:
//
//   {"functions":[…], "chains":{leaf:["leaf;caller;…", …]}}
'use strict';

Error.stackTraceLimit = Infinity;
const chains = {};
const functions = ['spin'];
let sink = 0;

function spin() {
  let x = sink | 1;
  for (let i = 0; i < 3000; i++) x = (x * 48271) % 2147483647;
  sink = x;
}

// Names of this file's functions on the stack, without this one.
function stack() {
  const lines = new Error().stack.split('\n').slice(2).filter((line) => line.includes('callers.js'));
  // "at Immediate.ticked [as _onImmediate] (FILE", "at Walker.get place [as place] (FILE", "at generated.next (FILE"
  const name = (line) => (/at ([^[(]*\.)?(?:get )?([\w$]+)(?: \[as \w+\])? \(/.exec(line) || ['', '', ''])[2];
  return lines.map(name).filter((one) => functions.includes(one));
}

let calls = 0;
function note(leaf) {
  if (calls++ % 50 && chains[leaf]) return;
  (chains[leaf] = chains[leaf] || new Set()).add(stack().join(';'));
}

function leafPlain() { note('leafPlain'); spin(); }
function leafDeep() { note('leafDeep'); spin(); }
function leafMap() { note('leafMap'); spin(); }
function leafSort() { note('leafSort'); spin(); }
function leafJson() { note('leafJson'); spin(); }
function leafMethod() { note('leafMethod'); spin(); }
function leafGetter() { note('leafGetter'); spin(); }
function leafGenerator() { note('leafGenerator'); spin(); }
function leafCaught() { note('leafCaught'); spin(); }
function leafTimer() { note('leafTimer'); spin(); }
function leafPromise() { note('leafPromise'); spin(); }
function leafDeoptimised() { note('leafDeoptimised'); spin(); }
function leafInvalidating() { note('leafInvalidating'); spin(); }

function deep(n) { if (n) deep(n - 1); else leafDeep(); sink++; }
function mapped(x) { leafMap(); return x; }
function compared(a, b) { leafSort(); return a - b; }
function revived(key, value) { if (key === 'last') leafJson(); return value; }
class Walker {
  step() { leafMethod(); sink++; }
  get place() { leafGetter(); return sink; }
}
function* generated() { for (;;) { leafGenerator(); yield sink; } }
function thrower(n) { if (n) thrower(n - 1); else throw new RangeError('known'); sink++; }
function catcher() { try { thrower(5); } catch (error) { leafCaught(); } sink++; }

// V8 inlines `inlined` in `invalidated`. After a deoptimisation, their frame returns to an exit of the code, which makes two
// interpreted frames of it.
function inlined() { invalidate(); leafDeoptimised(); sink++; }
function invalidated() { inlined(); sink++; }
function again() { invalidated(); sink++; }
function invalidate() { v8.deoptimise(invalidated); leafInvalidating(); sink++; }
function deoptimised() {
  v8.prepare(inlined);
  v8.prepare(invalidated);
  again();
  v8.optimise(invalidated);
  again();
}

/** V8's own functions, and no inlining of those that surround the deoptimised code. */
function natives() {
  require('node:v8').setFlagsFromString('--allow-natives-syntax');
  const native = (name) => new Function('f', `%${name}(f)`);
  [invalidate, again].forEach(native('NeverOptimizeFunction'));
  return { prepare: native('PrepareFunctionForOptimization'), optimise: native('OptimizeFunctionOnNextCall'),
    deoptimise: native('DeoptimizeFunction') };
}
const v8 = process.argv.includes('--deoptimise') ? natives() : null;

const walker = new Walker();
const generator = generated();

function work() {
  for (let i = 0; i < 20; i++) {
    leafPlain();
    deep(30);
    [1, 2, 3].map(mapped);
    [3, 1, 2].sort(compared);
    JSON.parse('{"first": 1, "last": 2}', revived);
    walker.step();
    sink += walker.place;
    generator.next();
    catcher();
    if (v8) deoptimised();
  }
}

function resolved() { leafPromise(); sink++; }
function ticked() {
  leafTimer();
  work();
  Promise.resolve().then(resolved);
  if (process.cpuUsage().user < until) setImmediate(ticked);
  else finished();
}
function finished() {
  const all = Object.entries(chains).map(([leaf, told]) => [leaf, [...told]]);
  console.log(JSON.stringify({ functions, chains: Object.fromEntries(all) }));
}

functions.push(...[leafPlain, leafDeep, leafMap, leafSort, leafJson, leafMethod, leafGetter, leafGenerator, leafCaught,
  leafTimer, leafPromise, leafDeoptimised, leafInvalidating, invalidate, inlined, invalidated, again, deoptimised, deep,
  mapped, compared, revived, generated, thrower, catcher, work, resolved, ticked]
  .map((one) => one.name), 'step', 'place');
const seconds = process.argv.indexOf('--seconds');
const until = 1e6 * (seconds > 0 ? Number(process.argv[seconds + 1]) : 3);
ticked();
