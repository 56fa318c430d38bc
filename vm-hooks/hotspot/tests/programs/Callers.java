package programs;

import java.io.IOException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;

/**
 * Methods {@code leaf…} that are reached in many ways. From time to time each one asks the VM for the
 * chain of its callers, and in the end prints all chains that it saw: {@code --seconds N}.
 */
public final class Callers {
  private static final Chains CHAINS = new Chains();
  private static final int[] SOURCE = new int[1 << 14];
  private static final int[] TARGET = new int[1 << 14];
  private static int[] calls = new int[32];
  static volatile int sink;

  /** Asks for the chain in each of the first calls, and in each 64th after them. */
  private static void called(int leaf) {
    int count = calls[leaf]++;
    if (count >= 64 && count % 64 != 0) {
      return;
    }
    CHAINS.add();
  }

  private static int spin(int seed) {
    int sum = seed;
    for (int i = 0; i < 3000; i++) {
      sum = sum * 31 + (i ^ sum >>> 3);
    }
    return sum;
  }

  static void leafDirect() {
    called(0);
    sink = spin(1);
  }

  static void leafDeep() {
    called(1);
    sink = spin(2);
  }

  static void leafInlined() {
    called(2);
    sink = spin(3);
  }

  static void leafThrown() {
    called(3);
    sink = spin(4);
  }

  static int leafLambda(int value) {
    called(4);
    return spin(value);
  }

  static int leafStream(int value) {
    called(5);
    return spin(value) & 7;
  }

  static int leafCompare(int left, int right) {
    called(6);
    sink = spin(left);
    return Integer.compare(left, right);
  }

  public static void leafReflected() {
    called(7);
    sink = spin(5);
  }

  static void leafInLock() {
    called(8);
    sink = spin(6);
  }

  /** In a stub of the VM, without a frame. */
  static void leafCopies() {
    called(9);
    for (int i = 0; i < 8; i++) {
      System.arraycopy(SOURCE, 0, TARGET, 0, SOURCE.length);
    }
  }

  /** In native code of the JDK, or of the VM. */
  static void leafNative() {
    called(10);
    for (int i = 0; i < 20; i++) {
      sink += Thread.currentThread().isInterrupted() ? 1 : new Object().hashCode();
      sink += Runtime.getRuntime().availableProcessors();
    }
  }

  static void leafInterface() {
    called(11);
    sink = spin(7);
  }

  /** A caller that is a loop, replaced on the stack while it runs. */
  static void leafOfLoop() {
    called(12);
    sink = spin(8);
  }

  private static int deep(int depth) {
    if (depth == 0) {
      leafDeep();
      return 0;
    }
    return deep(depth - 1) + 1;
  }

  private static void inlinedOuter() {
    inlinedInner();
  }

  private static void inlinedInner() {
    leafInlined();
  }

  private static void thrower(int depth) {
    if (depth == 0) {
      throw new IllegalStateException();
    }
    thrower(depth - 1);
  }

  private static void catcher() {
    try {
      thrower(5);
    } catch (IllegalStateException e) {
      leafThrown();
    }
  }

  private static synchronized void locked() {
    leafInLock();
  }

  private static void loops(int rounds) {
    for (int i = 0; i < rounds; i++) {
      leafOfLoop();
    }
  }

  interface Step {
    void go();
  }

  static final class First implements Step {
    @Override
    public void go() {
      leafInterface();
    }
  }

  static final class Second implements Step {
    @Override
    public void go() {
      leafInterface();
    }
  }

  static final class Third implements Step {
    @Override
    public void go() {
      leafInterface();
    }
  }

  private static void work(Method reflected, Step[] steps, IntUnaryOperator lambda)
      throws ReflectiveOperationException {
    leafDirect();
    deep(60);
    inlinedOuter();
    catcher();
    sink = lambda.applyAsInt(3);
    sink = IntStream.range(0, 3).map(i -> i + 1).filter(i -> leafStream(i) >= 0).sum();
    Integer[] numbers = {3, 1, 2};
    Arrays.sort(numbers, (left, right) -> leafCompare(left, right));
    reflected.invoke(null);
    locked();
    leafCopies();
    leafNative();
    for (Step step : steps) {
      step.go();
    }
    loops(3);
  }

  public static void main(String[] arguments) throws ReflectiveOperationException, IOException {
    Program program = new Program(arguments);
    long end = System.nanoTime() + program.number("seconds", 4) * 1_000_000_000L;
    Method reflected = Callers.class.getMethod("leafReflected");
    Step[] steps = {new First(), new Second(), new Third()};
    boolean isForever = program.has("forever");
    while (isForever ? program.goesOn(0, 1) : System.nanoTime() < end) {
      for (int i = 0; i < 20; i++) {
        work(reflected, steps, value -> leafLambda(value) + 1);
      }
    }
    CHAINS.print();
  }
}
