<?php
// Most of the time is spent in one function of known name: php dominant.php [CPU_SECONDS=2]

function dominant(int $n): int {
    $x = 1;
    for ($i = 0; $i < $n; $i++) {
        $x = ($x * 5 + $i) & 0xffffff;
    }
    return $x;
}

function minor(int $n): int {
    $x = 1;
    for ($i = 0; $i < $n; $i++) {
        $x = ($x * 3 + $i) & 0xffffff;
    }
    return $x;
}

function cpu(): float {
    $usage = getrusage();
    return $usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec']
        + ($usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']) / 1e6;
}

$until = cpu() + (float) ($argv[1] ?? 2);
$inDominant = 0;
$inMinor = 0;
$sum = 0;
// A turn takes some 8 ms: turns of 2 ms may be in step with the samples.
while (cpu() < $until) {
    $begin = hrtime(true);
    $sum += dominant(4500000);
    $between = hrtime(true);
    $sum += minor(500000);
    $inDominant += $between - $begin;
    $inMinor += hrtime(true) - $between;
}
echo json_encode(['pid' => getmypid(), 'dominant' => $inDominant / 1e9, 'minor' => $inMinor / 1e9,
    'odd' => $sum % 2]), "\n";
