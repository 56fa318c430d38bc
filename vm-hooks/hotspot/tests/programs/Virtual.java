package programs;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;

/**
 * Virtual threads that wait below many callers, and then work in methods {@code leaf…}: most of their
 * callers' frames stay in the heap. Each leaf asks the VM for its callers, and in the end the program
 * prints all chains: {@code --seconds N}. With {@code --short N}, threads wait again after some N
 * microseconds, and are called from elsewhere each time. With {@code --garbage}, all threads allocate.
 */
public final class Virtual {
  private static final Chains CHAINS = new Chains();
  private static final BlockingQueue<Integer> QUEUE = new LinkedBlockingQueue<>();
  private static final BlockingQueue<Integer> PING = new LinkedBlockingQueue<>();
  private static final BlockingQueue<Integer> PONG = new LinkedBlockingQueue<>();
  private static final int[] SOURCE = new int[1 << 14];
  private static volatile long end;
  private static boolean allocates;
  private static int micros;
  static volatile int sink;
  static volatile int[] garbage;

  /** A way to wait. */
  interface Pause {
    void go() throws Exception;
  }

  private static boolean isOver() {
    return System.nanoTime() >= end;
  }

  /** Works for so many microseconds, or to the end. */
  private static void spin(long micros) {
    long until = Math.min(end, System.nanoTime() + micros * 1000);
    int sum = sink;
    while (System.nanoTime() < until) {
      for (int i = 0; i < 3000; i++) {
        sum = sum * 31 + (i ^ sum >>> 3);
      }
      sink = sum;
      if (allocates) {
        garbage = new int[1 << 10];
      }
    }
  }

  private static final long LONG = Long.MAX_VALUE / 4000;

  static void leafSlept() {
    CHAINS.add();
    spin(LONG);
  }

  static void leafParked() {
    CHAINS.add();
    spin(LONG);
  }

  static void leafTaken() {
    CHAINS.add();
    spin(LONG);
  }

  static int leafStreamed(int value) {
    CHAINS.add();
    spin(LONG);
    return value;
  }

  static void leafReturned() {
    CHAINS.add();
    spin(LONG);
  }

  static void leafTwice() {
    CHAINS.add();
    spin(LONG);
  }

  static void leafLooped(int round) {
    if (round < 64) {
      CHAINS.add();
    }
    spin(500);
  }

  public static void leafReflected() {
    CHAINS.add();
    spin(LONG);
  }

  static void leafMixed() {
    CHAINS.add();
    spin(LONG);
  }

  /** In a stub of the VM, without a frame. */
  static void leafCopied() {
    CHAINS.add();
    int[] target = new int[SOURCE.length];
    while (!isOver()) {
      for (int i = 0; i < 100; i++) {
        System.arraycopy(SOURCE, 0, target, 0, SOURCE.length);
      }
    }
  }

  /** Never waited. */
  static void leafFresh() {
    CHAINS.add();
    spin(LONG);
  }

  private static void sleep() throws Exception {
    Thread.sleep(20);
  }

  private static void park() {
    LockSupport.parkNanos(20_000_000);
  }

  private static void take() throws Exception {
    QUEUE.take();
  }

  /** A caller with many values to keep, some of them on the stack: its frame is large. */
  private static long down(
      int depth, long a, long b, long c, long d, long e, long f, long g, Pause last)
      throws Exception {
    if (depth == 0) {
      last.go();
      return a;
    }
    long below = down(depth - 1, a + 1, b ^ a, c + b, d ^ c, e + d, f ^ e, g + f, last);
    return below + a * 3 + b * 5 + c * 7 + d * 9 + e * 11 + f * 13 + g;
  }

  private static long deep(Pause last) throws Exception {
    return down(40, sink, 2, 3, 4, 5, 6, 7, last);
  }

  /** Excluded from compilation by the test: interpreted frames between compiled frames. */
  private static long slow(int depth, Pause last) throws Exception {
    if (depth == 0) {
      return deep(last);
    }
    return between(depth, last) + depth;
  }

  private static long between(int depth, Pause last) throws Exception {
    return slow(depth - 1, last) * 3;
  }

  private static void slept() throws Exception {
    sleep();
    leafSlept();
  }

  private static void parked() {
    park();
    leafParked();
  }

  private static void taken() throws Exception {
    take();
    leafTaken();
  }

  private static void copied() throws Exception {
    sleep();
    leafCopied();
  }

  private static void streamed() {
    IntUnaryOperator waits =
        value -> {
          park();
          return leafStreamed(value);
        };
    sink = IntStream.range(0, 3).map(waits).filter(value -> value >= 0).sum();
  }

  private static long returned(int depth) throws Exception {
    if (depth == 0) {
      sleep();
      return 1;
    }
    long below = returned(depth - 1);
    if (depth == 20) {
      leafReturned();
    }
    return below + depth;
  }

  private static void twice() throws Exception {
    sleep();
    deep(Virtual::again);
  }

  private static void again() throws Exception {
    park();
    deep(
        () -> {
          sleep();
          leafTwice();
        });
  }

  private static void looped() throws Exception {
    sleep();
    for (int round = 0; !isOver(); round++) {
      leafLooped(round);
    }
  }

  private static void reflected() throws Exception {
    sleep();
    Virtual.class.getMethod("leafReflected").invoke(null);
  }

  private static void mixed() throws Exception {
    slow(
        10,
        () -> {
          park();
          leafMixed();
        });
  }

  static void leafShort(int way) {
    if (asked[way]++ < 64) {
      CHAINS.add();
    }
    spin(micros + micros / 2 * way);
  }

  private static final int[] asked = new int[3];

  /** Waits, and works, for one of many callers. */
  private static void helper(int way) throws Exception {
    switch (way) {
      case 0:
        Thread.yield();
        break;
      case 1:
        PING.put(way);
        PONG.take();
        break;
      default:
        Thread.sleep(1);
    }
    leafShort(way);
  }

  private static void first(int way) throws Exception {
    helper(way);
  }

  private static void second(int way) throws Exception {
    helper(way);
  }

  private static void third(int way) throws Exception {
    second(way);
  }

  private static void shortly(int way) throws Exception {
    while (!isOver()) {
      deep(() -> first(way));
      deep(() -> second(way));
      deep(() -> third(way));
    }
  }

  private static void answer() throws Exception {
    while (!isOver()) {
      Integer asked = PING.poll(10, TimeUnit.MILLISECONDS);
      if (asked != null) {
        spin(300);
        PONG.put(asked);
      }
    }
    // Its last requests, one for each caller.
    for (int last = 0; last < 3; last++) {
      PONG.put(last);
    }
  }

  private static Thread start(Method starter, Pause work) throws Exception {
    Runnable run =
        () -> {
          try {
            work.go();
          } catch (Exception e) {
            throw new IllegalStateException(e);
          }
        };
    return (Thread) starter.invoke(null, run);
  }

  public static void main(String[] arguments) throws Exception {
    Program program = new Program(arguments);
    Method starter = Thread.class.getMethod("startVirtualThread", Runnable.class);
    allocates = program.has("garbage");
    micros = program.number("short", 0);
    long seconds = program.number("seconds", 4);
    end = Long.MAX_VALUE;
    // All on the way to a leaf gets compiled.
    for (int i = 0; i < 4000; i++) {
      deep(() -> sink++);
      slow(10, () -> sink++);
    }
    end = System.nanoTime() + seconds * 1_000_000_000L;
    List<Pause> works = new ArrayList<>();
    if (micros > 0) {
      works.add(() -> shortly(0));
      works.add(() -> shortly(0));
      works.add(() -> shortly(1));
      works.add(Virtual::answer);
      works.add(() -> shortly(2));
    } else {
      works.add(() -> deep(Virtual::slept));
      works.add(() -> deep(Virtual::parked));
      works.add(() -> deep(Virtual::taken));
      works.add(() -> deep(Virtual::copied));
      works.add(() -> deep(Virtual::streamed));
      works.add(() -> returned(60));
      works.add(Virtual::twice);
      works.add(() -> deep(Virtual::looped));
      works.add(() -> deep(Virtual::reflected));
      works.add(Virtual::mixed);
      works.add(() -> deep(Virtual::leafFresh));
    }
    List<Thread> threads = new ArrayList<>();
    for (Pause work : works) {
      threads.add(start(starter, work));
    }
    Thread.sleep(100);
    QUEUE.put(1);
    for (Thread thread : threads) {
      thread.join();
    }
    CHAINS.print();
  }
}
