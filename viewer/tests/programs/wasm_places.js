// Places in WebAssembly functions with known shares (TRUTH.md §3): each operation is a load whose address is the result
// of the load before, so all take the same time.
//
//   two_loops   two loops: 100 and 200 loads in a turn
//   outer       60 loads in a turn, and a call of
//   inner       20 loads; the compiler may inline it
//
//   node wasm_places.js [--liftoff]
//
// `two_loops` and `outer` run in turns of varying length, until SIGTERM. `ready PID` on a line by itself tells that they are
// compiled. --liftoff: for `node --liftoff-only`.
'use strict';

const { call, instantiate, load, times } = require('./wasm_module.js');

const [twoLoops, , outer] = instantiate('places', [
  { name: 'two_loops', exported: 'two_loops', loops: [times(100, load), times(200, load)] },
  { name: 'inner', code: times(20, load) },
  { name: 'outer', exported: 'outer', loops: [[...call(2), ...times(60, load)]] },
]);

require('node:v8').setFlagsFromString('--allow-natives-syntax');
const isLiftoff = new Function('f', 'return %IsLiftoffFunction(f)');
const waits = !process.argv.includes('--liftoff');
let isReady = false;

/** Half a turn more or less, so that no turn is in step with samples. */
function turns(count) {
  return Math.floor(count * (0.5 + Math.random()));
}

function cycle() {
  twoLoops(0, turns(2000));
  outer(0, turns(7000));
  if (!isReady && !(waits && (isLiftoff(twoLoops) || isLiftoff(outer)))) {
    isReady = true;
    process.stdout.write(`ready ${process.pid}\n`);
  }
  setImmediate(cycle);
}

cycle();
