package programs;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Many threads, some for long and some for milliseconds. {@code --threads N --waves N --rounds N}
 */
final class Threads {
  private static final AtomicLong SUM = new AtomicLong();

  private Threads() {}

  static long work(int rounds, long x) {
    for (int i = 0; i < rounds; i++) {
      x = x * 6364136223846793005L + 1442695040888963407L;
      x ^= x >>> 17;
    }
    return x;
  }

  static void wave(int threads, int rounds) throws InterruptedException {
    Thread[] all = new Thread[threads];
    for (int i = 0; i < threads; i++) {
      int seed = i;
      all[i] = new Thread(() -> SUM.addAndGet(work(rounds, seed)), "worker " + i);
      all[i].start();
    }
    for (Thread thread : all) {
      thread.join();
    }
  }

  public static void main(String[] arguments) throws Exception {
    Program program = new Program(arguments);
    int threads = program.number("threads", 50);
    int rounds = program.number("rounds", 100_000);
    wave(threads, rounds);
    program.warm();
    for (int i = 0; program.goesOn(i, program.number("waves", 20)); i++) {
      wave(threads, rounds);
    }
    program.done("{\"sum\":" + SUM.get() + "}");
  }
}
