package programs;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;

/**
 * The program's own clock: CPU time of its thread, as samples follow it, charged to ranges. (A
 * wall clock would count what other processes take.)
 */
final class Clock {
  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
  private static long last;

  /** Nanoseconds spent in each range. */
  static final long[] SPENT = new long[8];

  private Clock() {}

  /** What comes next belongs to a range. */
  static void start() {
    last = THREADS.getCurrentThreadCpuTime();
  }

  /** What was since the last call belongs to this range. */
  static void lap(int range) {
    long now = THREADS.getCurrentThreadCpuTime();
    SPENT[range] += now - last;
    last = now;
  }

  /** Nanoseconds spent in all ranges. */
  static long spent() {
    return Arrays.stream(SPENT).sum();
  }

  static void clear() {
    Arrays.fill(SPENT, 0);
  }
}
