/** Loops over arrays of numbers. Runs until it is killed. */
public class EvNumeric {
    static double[][] multiply(double[][] a, double[][] b) {
        int n = a.length;
        double[][] c = new double[n][n];
        for (int i = 0; i < n; i++)
            for (int k = 0; k < n; k++) {
                double f = a[i][k];
                for (int j = 0; j < n; j++) c[i][j] += f * b[k][j];
            }
        return c;
    }

    static int sieve(boolean[] composite) {
        java.util.Arrays.fill(composite, false);
        int primes = 0;
        for (int i = 2; i < composite.length; i++) {
            if (composite[i]) continue;
            primes++;
            for (int j = i + i; j < composite.length; j += i) composite[j] = true;
        }
        return primes;
    }

    static final int[] TABLE = new int[256];
    static {
        for (int i = 0; i < 256; i++) {
            int c = i;
            for (int k = 0; k < 8; k++) c = (c & 1) != 0 ? 0xEDB88320 ^ (c >>> 1) : c >>> 1;
            TABLE[i] = c;
        }
    }

    static int step(int crc, byte b) { return TABLE[(crc ^ b) & 0xff] ^ (crc >>> 8); }

    static int crc(byte[] bytes) {
        int crc = -1;
        for (byte b : bytes) crc = step(crc, b);
        return ~crc;
    }

    static int mandel(double cx, double cy) {
        double x = 0, y = 0;
        int n = 0;
        while (n < 100 && x * x + y * y < 4) {
            double t = x * x - y * y + cx;
            y = 2 * x * y + cy;
            x = t;
            n++;
        }
        return n;
    }

    static void sort(int[] a, int lo, int hi) {
        if (lo >= hi) return;
        int pivot = a[(lo + hi) >>> 1], i = lo, j = hi;
        while (i <= j) {
            while (a[i] < pivot) i++;
            while (a[j] > pivot) j--;
            if (i <= j) swap(a, i++, j--);
        }
        sort(a, lo, j);
        sort(a, i, hi);
    }

    static void swap(int[] a, int i, int j) { int t = a[i]; a[i] = a[j]; a[j] = t; }

    static long modulo(long seed, int n) {
        long sum = 0;
        for (int i = 1; i <= n; i++) {
            seed = seed * 6364136223846793005L + 1442695040888963407L;
            sum += (seed >>> 33) % i;
        }
        return sum;
    }

    static int lcs(String a, String b, int[] row) {
        java.util.Arrays.fill(row, 0);
        for (int i = 0; i < a.length(); i++) {
            int diagonal = 0;
            for (int j = 0; j < b.length(); j++) {
                int up = row[j + 1];
                row[j + 1] = a.charAt(i) == b.charAt(j) ? diagonal + 1 : Math.max(up, row[j]);
                diagonal = up;
            }
        }
        return row[b.length()];
    }

    public static void main(String[] args) {
        double[][] a = new double[60][60], b = new double[60][60];
        byte[] bytes = new byte[40_000];
        boolean[] composite = new boolean[60_000];
        int[] numbers = new int[5_000];
        StringBuilder x = new StringBuilder(), y = new StringBuilder();
        for (int i = 0; i < 250; i++) { x.append((char) ('a' + i * 7 % 13)); y.append((char) ('a' + i * 5 % 11)); }
        String first = x.toString(), second = y.toString();
        long check = 0;
        for (int round = 0; ; round++) {
            for (int i = 0; i < 60; i++) for (int j = 0; j < 60; j++) { a[i][j] = i * j + round; b[i][j] = i - j; }
            check += (long) multiply(a, b)[3][5] + sieve(composite);
            for (int i = 0; i < bytes.length; i++) bytes[i] = (byte) (i * 31 + round);
            check += crc(bytes);
            for (int i = 0; i < 60; i++) check += mandel(-1.5 + i / 30.0, i / 60.0);
            for (int i = 0; i < numbers.length; i++) numbers[i] = (i * 7919 + round) % 10007;
            sort(numbers, 0, numbers.length - 1);
            check += modulo(check, 20_000) + lcs(first, second, new int[300]);
            if (check == 42) System.out.println(check);
        }
    }
}
