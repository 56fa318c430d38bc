// Fills several spaces and prints READY. At a line of stdin it collects, and prints the used bytes of all spaces.
'use strict';
const fs = require('fs');
const v8 = require('v8');

const kept = [new Array(300000).fill(1)];
for (let i = 0; i < 200; i++) kept.push(new Array(1000).fill(0).map((x, i) => ({ x, i })));
// V8 enlarges its cache of printed numbers once.
for (let i = 0; i < 1000; i++) kept.push(String(i + 0.5));
process.stdin.once('data', () => {
  global.gc();
  const spaces = v8.getHeapSpaceStatistics().map((space) => `${space.space_name}=${space.space_used_size}`);
  // Unlike console.log, it allocates next to nothing before the reader looks.
  fs.writeSync(1, `${spaces.join(' ')} ${kept.length}\n`);
});
fs.writeSync(1, 'READY\n');
