// 4,000 functions with Sparkplug's or optimised code, each of a script of its own.
const all = [];
for (let number = 0; number < 4000; number++) {
  all.push(new Function(`return function made_${number}(x) {
    for (let i = 0; i < 40; i++) x = (Math.imul(x, ${2 * number + 5}) + i) | 0;
    return x;
  }`)());
}
let x = 1;
// A number of rounds: V8 counts calls, not time.
for (let round = 0; round < 400; round++) {
  for (const each of all) x = each(x);
}
globalThis.result = x;

// Compilations end meanwhile.
setTimeout(() => {
  process.stdout.write('\nEND\n', () => require('fs').readSync(0, Buffer.alloc(1)));
}, 300);
