package programs;

/**
 * Loops in methods that are called once: their code is entered in the middle. {@code --rounds N}
 */
final class Osr {
  private Osr() {}

  static long single(int rounds) {
    long sum = 0;
    for (int i = 0; i < rounds; i++) {
      sum = sum * 31 + i % 7;
    }
    return sum;
  }

  static long nested(int rounds) {
    long sum = 0;
    int[] cells = new int[100];
    for (int i = 0; i < rounds / 100; i++) {
      for (int k = 0; k < cells.length; k++) {
        cells[k] += k ^ i;
        sum += cells[k];
      }
    }
    for (int cell : cells) {
      sum ^= cell;
    }
    return sum;
  }

  public static void main(String[] arguments) throws Exception {
    Program program = new Program(arguments);
    int rounds = program.number("rounds", 100_000_000);
    long sum = single(rounds) + nested(rounds);
    program.warm();
    while (program.goesOn(1, 1)) {
      sum += single(rounds / 10) + nested(rounds / 10);
    }
    program.done("{\"sum\":" + sum + "}");
  }
}
