package programs;

/**
 * Loops that call nothing, in methods that do: a call that nothing has executed, a call before the loop. One
 * loop calls.
 */
final class Unreached {
  private Unreached() {}

  static long never(int rounds) {
    long sum = 1;
    for (int i = 0; i < rounds; i++) {
      sum = sum * 31 + i % 7;
      if (i < 0) {
        throw new IllegalStateException("never " + i);
      }
    }
    return sum;
  }

  static long before(int rounds) {
    long sum = Long.parseLong("1");
    for (int i = 0; i < rounds; i++) {
      sum = sum * 31 + i % 7;
    }
    return sum;
  }

  static long often(int rounds) {
    long sum = 1;
    for (int i = 0; i < rounds; i++) {
      sum = step(sum, i);
    }
    return sum;
  }

  private static long step(long sum, int i) {
    return sum * 31 + i % 7;
  }

  public static void main(String[] arguments) throws Exception {
    Program program = new Program(arguments);
    int rounds = program.number("rounds", 400_000_000);
    long sum = never(rounds) + before(rounds) + often(rounds);
    program.warm();
    program.done("{\"sum\":" + sum + "}");
  }
}
