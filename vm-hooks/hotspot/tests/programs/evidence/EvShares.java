/**
 * Three small methods that are inlined into one loop, whose shares of the time are known:
 * the program's own clock around each, told every second. Runs until it is killed.
 */
public class EvShares {
    static final class Cell {
        Cell next;
        int value;
        int weight;
    }

    static int chase(Cell cell, int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += cell.value;
            cell = cell.next;
        }
        return sum;
    }

    static int scramble(int seed, int n) {
        for (int i = 0; i < n; i++) {
            seed ^= seed << 13;
            seed ^= seed >>> 17;
            seed ^= seed << 5;
        }
        return seed;
    }

    static int lookUp(int[] table, int n) {
        int at = 0;
        for (int i = 0; i < n; i++) at = table[at];
        return at;
    }

    static final long[] nanos = new long[3];

    static int round(Cell cell, int[] table, int seed) {
        long t0 = System.nanoTime();
        int sum = chase(cell, 6000);
        long t1 = System.nanoTime();
        sum += scramble(seed, 3000);
        long t2 = System.nanoTime();
        sum += lookUp(table, 9000);
        long t3 = System.nanoTime();
        nanos[0] += t1 - t0;
        nanos[1] += t2 - t1;
        nanos[2] += t3 - t2;
        return sum;
    }

    public static void main(String[] args) {
        Cell first = new Cell(), last = first;
        for (int i = 1; i < 64; i++) {
            last.next = new Cell();
            last = last.next;
            last.value = i;
        }
        last.next = first;
        int[] table = new int[64];
        for (int i = 0; i < 64; i++) table[i] = (i * 37 + 11) & 63;
        int check = 1;
        long told = System.nanoTime();
        while (true) {
            for (int i = 0; i < 1000; i++) check += round(first, table, check | 1);
            if (System.nanoTime() - told > 1_000_000_000L) {
                told = System.nanoTime();
                double all = nanos[0] + nanos[1] + nanos[2];
                System.out.printf("chase %.1f scramble %.1f lookUp %.1f%n", 100 * nanos[0] / all, 100 * nanos[1] / all, 100 * nanos[2] / all);
                java.util.Arrays.fill(nanos, 0);
                if (check == 42) System.out.println(check);
            }
        }
    }
}
