// How JavaScript programs measure their own functions (TRUTH.md §3): by the process' CPU time around each
// range (getrusage, in microseconds; a range takes 300 µs or more with the default counts). No other
// thread has anything to do once the program is warm. What happens before `measured_from_ns`
// (CLOCK_MONOTONIC) is not in the truth: until then code is compiled.
//
//   [--cycles N=500 | --forever] [--loops COUNT,…] [--jitter PERCENT=0]
//
// --jitter: as in known_shares.c. --forever prints `ready PID` on a line by itself when the functions are
// compiled, and goes on until SIGTERM. At the end one JSON object:
//
//   {"pid":, "measured_from_ns":, "measured_to_ns":, "cycles":, "cpu_seconds":,
//     "ranges":[{…, "seconds":}]}
'use strict';

const path = require('node:path');

/** Ends the program that can't do its work. */
function usage(why) {
  process.stderr.write(`${path.basename(process.argv[1])}: ${why}\n`);
  process.exit(2);
}

/** Options of the command line: those above, and the switches named in `switches`. */
function optionsWith(switches, loops) {
  const options = { cycles: 500, forever: false, jitter: 0, loops };
  for (const name of switches) options[name] = false;
  for (let i = 2; i < process.argv.length; i++) {
    const name = process.argv[i].replace(/^--/, '');
    if (options[name] === false || options[name] === true) {
      options[name] = true;
      continue;
    }
    const value = process.argv[++i] ?? '';
    if (name === 'cycles' || name === 'jitter') options[name] = Number(value);
    else if (name === 'loops') options.loops = value.split(',').map(Number);
    else usage('unknown option; the heads of the program and of measure.js list them');
  }
  if (options.loops.length !== loops.length || !options.loops.every((count) => count > 0)) {
    usage(`--loops takes ${loops.length} positive numbers, separated by commas`);
  }
  if (!(options.cycles > 0)) usage('--cycles takes a number from 1');
  if (!(options.jitter >= 0 && options.jitter <= 50)) usage('--jitter takes 0 to 50');
  return options;
}

/** CPU time of the process, in microseconds. */
function cpu() {
  const usage = process.cpuUsage();
  return usage.user + usage.system;
}

// V8 itself says what TurboFan has compiled: another thread compiles. Until then, Maglev's code runs, which
// does some work in builtins. V8's OptimizationStatus since V8 10: bit 6; since V8 14: bit 5.
require('node:v8').setFlagsFromString('--allow-natives-syntax');
const statusOf = new Function('f', 'return %GetOptimizationStatus(f)');
const turbofan = 1 << (Number.parseInt(process.versions.v8, 10) < 14 ? 6 : 5);
const isOptimised = (one) => (statusOf(one) & turbofan) !== 0;

/**
 * Runs cycles until the end, and prints the times of the ranges. `cycle(counts, spent)` runs each range
 * so many times and adds its microseconds to `spent`; its result is used, or its chain would be nobody's.
 * Nothing counts before `isCompiled`.
 */
function measure(options, ranges, cycle, isCompiled) {
  const spent = ranges.map(() => 0);
  let random = process.pid * 2 + 1;
  let result = 0;
  let cycles = 0;
  let from = 0n;
  let stop = false;

  function once(part) {
    random = (Math.imul(random, 1103515245) + 12345) & 0x7fffffff;
    const factor = part * (1 + (random / 0x40000000 - 1) * options.jitter / 100);
    result = cycle(options.loops.map((mean) => Math.max(1, Math.round(mean * factor))), spent);
  }

  function finish() {
    const timed = ranges.map((range, i) => ({ ...range, seconds: spent[i] / 1e6 }));
    const report = { pid: process.pid, measured_from_ns: Number(from),
      measured_to_ns: Number(process.hrtime.bigint()), cycles, cpu_seconds: cpu() / 1e6, ranges: timed };
    process.stdout.write(`${JSON.stringify(report)}\n`, () => process.exit(result === 0.5 ? 1 : 0));
  }

  // A compilation in another thread ends within a turn; signals come between turns.
  function turn() {
    if (from === 0n) {
      spent.fill(0);
      from = process.hrtime.bigint();
    }
    for (let i = 0; i < 10; i++) {
      once(1);
      cycles++;
      if (!options.forever && cycles >= options.cycles) return finish();
    }
    if (stop) return finish();
    setImmediate(turn);
  }

  // Everything is compiled, and what replaces it too, before anything counts.
  let warming = 0;
  function warm() {
    if (!isCompiled()) {
      // Finished code is put in place between turns. A bound that no machine comes near.
      if (++warming > 2000) usage('V8 does not optimise the functions');
      once(1 / 20);
      setImmediate(warm);
      return;
    }
    if (options.forever) process.stdout.write(`ready ${process.pid}\n`);
    turn();
  }

  process.on('SIGTERM', () => { stop = true; });
  for (let i = 0; i < 200; i++) once(1 / 20);
  for (let i = 0; i < 10; i++) once(1);
  setImmediate(warm);
}

module.exports = { cpu, isOptimised, measure, optionsWith };
