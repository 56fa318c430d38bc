package programs;

/**
 * A callee of compiled code that the JVM deoptimises meanwhile: the callee loads a second subclass, of which the compiler
 * knew one. The caller's frame stays until the callee returns. {@code --seconds N}
 */
final class Deoptimised {
  private static final Chains CHAINS = new Chains();
  private static volatile long sink;

  private Deoptimised() {}

  abstract static class Step {
    abstract int of(int x);
  }

  static final class First extends Step {
    @Override
    int of(int x) {
      return x * 31 + 7;
    }
  }

  static final class Second extends Step {
    @Override
    int of(int x) {
      return x * 17 + 3;
    }
  }

  static void leafLoads(int seconds) {
    if (seconds > 0) {
      sink += new Second().of(1);
      CHAINS.add();
      long end = System.nanoTime() + seconds * 1_000_000_000L;
      while (System.nanoTime() < end) {
        sink += work(1000);
      }
    }
  }

  static long work(int rounds) {
    long sum = 1;
    for (int i = 0; i < rounds; i++) {
      sum = sum * 48271 + i;
    }
    return sum;
  }

  static int inlined(Step step, int x, int seconds) {
    int result = step.of(x);
    leafLoads(seconds);
    return result;
  }

  static int outer(Step step, int x, int seconds) {
    return inlined(step, x, seconds) + 1;
  }

  public static void main(String[] arguments) throws Exception {
    Program program = new Program(arguments);
    Step step = new First();
    // The second half executes what the first half made the compiler compile.
    for (int half = 0; half < 2; half++) {
      for (int i = 0; i < 300_000; i++) {
        sink += outer(step, i, 0);
      }
      Thread.sleep(500);
    }
    sink += outer(step, 1, program.number("seconds", 3));
    CHAINS.print();
  }
}
