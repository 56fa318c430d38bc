package programs;

/** Tiny benchmarks: recursion and a sieve. {@code --rounds N --fib N --sieve N} */
final class Tiny {
  private Tiny() {}

  static int fib(int n) {
    return n < 2 ? 1 : fib(n - 1) + fib(n - 2) + 1;
  }

  static int sieve(int size) {
    boolean[] crossed = new boolean[size + 1];
    int primes = 0;
    for (int i = 2; i <= size; i++) {
      if (!crossed[i]) {
        primes++;
        for (int k = i + i; k <= size; k += i) {
          crossed[k] = true;
        }
      }
    }
    return primes;
  }

  public static void main(String[] arguments) throws Exception {
    Program program = new Program(arguments);
    int n = program.number("fib", 27);
    int size = program.number("sieve", 200_000);
    int calls = fib(n);
    int primes = sieve(size);
    program.warm();
    for (int i = 0; program.goesOn(i, program.number("rounds", 50)); i++) {
      calls += fib(n);
      primes += sieve(size);
    }
    program.done("{\"calls\":" + calls + ", \"primes\":" + primes + "}");
  }
}
