package programs;

import java.util.Random;

/**
 * Garbage for any collector. {@code --megabytes N} are allocated, of which {@code --live MB} are
 * alive at a time; each object lives until another takes its place.
 */
final class Allocation {
  private static final int SIZE = 200;

  private Allocation() {}

  static final class Record {
    final byte[] bytes;
    final Record before;

    Record(int size, Record before) {
      this.bytes = new byte[size];
      this.before = before;
    }
  }

  static int fill(Record[] live, Random random, int objects) {
    int sum = 0;
    for (int i = 0; i < objects; i++) {
      int at = random.nextInt(live.length);
      Record old = live[random.nextInt(live.length)];
      // No chain grows: what an object refers to refers to nothing.
      Record before = old == null || old.before != null ? null : old;
      live[at] = new Record(SIZE, before);
      sum += live[at].bytes.length;
    }
    return sum;
  }

  public static void main(String[] arguments) throws Exception {
    Program program = new Program(arguments);
    Record[] live = new Record[program.number("live", 20) * (1 << 20) / (SIZE + 40) / 2];
    Random random = new Random(1);
    long bytes = fill(live, random, live.length);
    program.warm();
    for (int i = 0; program.goesOn(i, program.number("megabytes", 1000)); i++) {
      bytes += fill(live, random, (1 << 20) / (SIZE + 40));
    }
    program.done("{\"bytes\":" + bytes + "}");
  }
}
