<?php
// Functions with known callers: php … callers.php [CPU_SECONDS=2]. They share one native frame: native callers
// alone are known. Prints {"pid":…, "chains":{"leaf":["leaf"]}}

function leaf(int $n): int {
    $s = 0;
    for ($i = 0; $i < $n; $i++) {
        $s += $i & 7;
    }
    return $s;
}

function in_a(int $n): int { return leaf($n); }
function in_b(int $n): int { return leaf($n); }
function in_c(int $n): int { return leaf($n); }
function callerA(): int { return in_a(100000); }
function callerB(): int { return in_b(200000); }
function callerC(): int { return in_c(300000); }
function middle(): int { return callerA() + callerB() + callerC(); }

function cpu(): float {
    $usage = getrusage();
    return $usage['ru_utime.tv_sec'] + $usage['ru_utime.tv_usec'] / 1e6;
}

$until = cpu() + (float) ($argv[1] ?? 2);
while (cpu() < $until) {
    middle();
}
echo json_encode(['pid' => getmypid(), 'chains' => ['leaf' => ['leaf']]]), "\n";
