package programs;

import java.util.Random;

/**
 * Ranges whose shares are known (TRUTH.md §3): each repeats one dependent operation 200 times in
 * a row, in a loop whose count sets its share; the program's own clock says what it was.
 *
 * <pre>
 * --layout methods    a range is a method
 *          ranges     a range is a line, and so a range of bytecodes, of one method
 *          inlined    a range is a method that is inlined 25 times in a row into one method
 * --operation divide  D / x: has no debug record of its own in most code
 *             field   p = p.next: a null check each
 *             array   i = a[i]: a bounds check each
 *             virtual, interface   x = r[x % 4].step(x): a call by vtable or itable (methods only);
 *                                  201 times, so that each call has all receivers
 * --loops A,B,C       the ranges' loop counts
 * --jitter PERCENT    how the cycles' lengths differ
 * --cycles N, --milliseconds N   the program measures until both are reached (CPU time)
 * </pre>
 *
 * <p>At the end one line: {@code {"pid":, "measured_from_ns":, "measured_to_ns":, "cycles":,
 * "ranges":[{"method":, "range":, "seconds":}]}}. Times are System.nanoTime, which is
 * CLOCK_MONOTONIC. The line of a range is the one with the comment {@code range: RANGE}. The
 * comment {@code N times:} is carried out before compiling: the statement after it is
 * repeated on its line.
 */
final class Shares {
  private static final int D = 2_000_000_011;

  /** A ring of them fits any cache. */
  private static final class Node {
    Node next;
  }

  private interface Stepping {
    int step(int x);
  }

  private abstract static class Stepper {
    abstract int turn(int x);
  }

  private static final class One extends Stepper implements Stepping {
    @Override
    int turn(int x) {
      return x + 1;
    }

    @Override
    public int step(int x) {
      return x + 1;
    }
  }

  private static final class Thirteen extends Stepper implements Stepping {
    @Override
    int turn(int x) {
      return x + 13;
    }

    @Override
    public int step(int x) {
      return x + 13;
    }
  }

  private static final class Five extends Stepper implements Stepping {
    @Override
    int turn(int x) {
      return x + 5;
    }

    @Override
    public int step(int x) {
      return x + 5;
    }
  }

  private static final class Nine extends Stepper implements Stepping {
    @Override
    int turn(int x) {
      return x + 9;
    }

    @Override
    public int step(int x) {
      return x + 9;
    }
  }

  /** Each receiver's step leads to the next one. */
  private static final Stepper[] TURN = {new One(), new Five(), new Nine(), new Thirteen()};
  private static final Stepping[] STEP = {new One(), new Five(), new Nine(), new Thirteen()};
  private static final int[] RING = new int[64];
  private static Node nodes;
  private static int number = 3;
  private static int index;

  private Shares() {}

  // By method.

  static int divideA(int x, int n) {
    while (n-- > 0) { /* 200 times: */ x = D / x; } // range: divideA
    return x;
  }

  static int divideB(int x, int n) {
    while (n-- > 0) { /* 200 times: */ x = D / x; } // range: divideB
    return x;
  }

  static int divideC(int x, int n) {
    while (n-- > 0) { /* 200 times: */ x = D / x; } // range: divideC
    return x;
  }

  static Node fieldA(Node p, int n) {
    while (n-- > 0) { /* 200 times: */ p = p.next; } // range: fieldA
    return p;
  }

  static Node fieldB(Node p, int n) {
    while (n-- > 0) { /* 200 times: */ p = p.next; } // range: fieldB
    return p;
  }

  static Node fieldC(Node p, int n) {
    while (n-- > 0) { /* 200 times: */ p = p.next; } // range: fieldC
    return p;
  }

  static int arrayA(int[] a, int i, int n) {
    while (n-- > 0) { /* 200 times: */ i = a[i]; } // range: arrayA
    return i;
  }

  static int arrayB(int[] a, int i, int n) {
    while (n-- > 0) { /* 200 times: */ i = a[i]; } // range: arrayB
    return i;
  }

  static int arrayC(int[] a, int i, int n) {
    while (n-- > 0) { /* 200 times: */ i = a[i]; } // range: arrayC
    return i;
  }

  static int virtualA(Stepper[] r, int x, int n) {
    while (n-- > 0) { /* 201 times: */ x = r[x & 3].turn(x); } // range: virtualA
    return x;
  }

  static int virtualB(Stepper[] r, int x, int n) {
    while (n-- > 0) { /* 201 times: */ x = r[x & 3].turn(x); } // range: virtualB
    return x;
  }

  static int virtualC(Stepper[] r, int x, int n) {
    while (n-- > 0) { /* 201 times: */ x = r[x & 3].turn(x); } // range: virtualC
    return x;
  }

  static int interfaceA(Stepping[] r, int x, int n) {
    while (n-- > 0) { /* 201 times: */ x = r[x & 3].step(x); } // range: interfaceA
    return x;
  }

  static int interfaceB(Stepping[] r, int x, int n) {
    while (n-- > 0) { /* 201 times: */ x = r[x & 3].step(x); } // range: interfaceB
    return x;
  }

  static int interfaceC(Stepping[] r, int x, int n) {
    while (n-- > 0) { /* 201 times: */ x = r[x & 3].step(x); } // range: interfaceC
    return x;
  }

  // By range of one method.

  static int divide(int x, int a, int b, int c) {
    Clock.start();
    while (a-- > 0) { /* 200 times: */ x = D / x; } // range: divide1
    Clock.lap(0);
    while (b-- > 0) { /* 200 times: */ x = D / x; } // range: divide2
    Clock.lap(1);
    while (c-- > 0) { /* 200 times: */ x = D / x; } // range: divide3
    Clock.lap(2);
    return x;
  }

  static Node field(Node p, int a, int b, int c) {
    Clock.start();
    while (a-- > 0) { /* 200 times: */ p = p.next; } // range: field1
    Clock.lap(0);
    while (b-- > 0) { /* 200 times: */ p = p.next; } // range: field2
    Clock.lap(1);
    while (c-- > 0) { /* 200 times: */ p = p.next; } // range: field3
    Clock.lap(2);
    return p;
  }

  static int array(int[] r, int i, int a, int b, int c) {
    Clock.start();
    while (a-- > 0) { /* 200 times: */ i = r[i]; } // range: array1
    Clock.lap(0);
    while (b-- > 0) { /* 200 times: */ i = r[i]; } // range: array2
    Clock.lap(1);
    while (c-- > 0) { /* 200 times: */ i = r[i]; } // range: array3
    Clock.lap(2);
    return i;
  }

  // By inlined method: none is longer than what every compiler inlines (35 bytecodes).

  static int divideInA(int x) {
    return D / (D / (D / (D / (D / (D / (D / (D / x))))))); // range: divideInA
  }

  static int divideInB(int x) {
    return D / (D / (D / (D / (D / (D / (D / (D / x))))))); // range: divideInB
  }

  static int divideInC(int x) {
    return D / (D / (D / (D / (D / (D / (D / (D / x))))))); // range: divideInC
  }

  static int divideInlined(int x, int a, int b, int c) {
    Clock.start();
    while (a-- > 0) { /* 25 times: */ x = divideInA(x); }
    Clock.lap(0);
    while (b-- > 0) { /* 25 times: */ x = divideInB(x); }
    Clock.lap(1);
    while (c-- > 0) { /* 25 times: */ x = divideInC(x); }
    Clock.lap(2);
    return x;
  }

  static Node fieldInA(Node p) {
    return p.next.next.next.next.next.next.next.next; // range: fieldInA
  }

  static Node fieldInB(Node p) {
    return p.next.next.next.next.next.next.next.next; // range: fieldInB
  }

  static Node fieldInC(Node p) {
    return p.next.next.next.next.next.next.next.next; // range: fieldInC
  }

  static Node fieldInlined(Node p, int a, int b, int c) {
    Clock.start();
    while (a-- > 0) { /* 25 times: */ p = fieldInA(p); }
    Clock.lap(0);
    while (b-- > 0) { /* 25 times: */ p = fieldInB(p); }
    Clock.lap(1);
    while (c-- > 0) { /* 25 times: */ p = fieldInC(p); }
    Clock.lap(2);
    return p;
  }

  static int arrayInA(int[] r, int i) {
    return r[r[r[r[r[r[r[r[i]]]]]]]]; // range: arrayInA
  }

  static int arrayInB(int[] r, int i) {
    return r[r[r[r[r[r[r[r[i]]]]]]]]; // range: arrayInB
  }

  static int arrayInC(int[] r, int i) {
    return r[r[r[r[r[r[r[r[i]]]]]]]]; // range: arrayInC
  }

  static int arrayInlined(int[] r, int i, int a, int b, int c) {
    Clock.start();
    while (a-- > 0) { /* 25 times: */ i = arrayInA(r, i); }
    Clock.lap(0);
    while (b-- > 0) { /* 25 times: */ i = arrayInB(r, i); }
    Clock.lap(1);
    while (c-- > 0) { /* 25 times: */ i = arrayInC(r, i); }
    Clock.lap(2);
    return i;
  }

  /** Once through all ranges. */
  private static void cycle(String what, int a, int b, int c) {
    switch (what) {
      case "divide methods":
        Clock.start();
        number = divideA(number, a);
        Clock.lap(0);
        number = divideB(number, b);
        Clock.lap(1);
        number = divideC(number, c);
        Clock.lap(2);
        break;
      case "field methods":
        Clock.start();
        nodes = fieldA(nodes, a);
        Clock.lap(0);
        nodes = fieldB(nodes, b);
        Clock.lap(1);
        nodes = fieldC(nodes, c);
        Clock.lap(2);
        break;
      case "array methods":
        Clock.start();
        index = arrayA(RING, index, a);
        Clock.lap(0);
        index = arrayB(RING, index, b);
        Clock.lap(1);
        index = arrayC(RING, index, c);
        Clock.lap(2);
        break;
      case "virtual methods":
        Clock.start();
        index = virtualA(TURN, index, a);
        Clock.lap(0);
        index = virtualB(TURN, index, b);
        Clock.lap(1);
        index = virtualC(TURN, index, c);
        Clock.lap(2);
        break;
      case "interface methods":
        Clock.start();
        index = interfaceA(STEP, index, a);
        Clock.lap(0);
        index = interfaceB(STEP, index, b);
        Clock.lap(1);
        index = interfaceC(STEP, index, c);
        Clock.lap(2);
        break;
      case "divide ranges":
        number = divide(number, a, b, c);
        break;
      case "field ranges":
        nodes = field(nodes, a, b, c);
        break;
      case "array ranges":
        index = array(RING, index, a, b, c);
        break;
      case "divide inlined":
        number = divideInlined(number, a, b, c);
        break;
      case "field inlined":
        nodes = fieldInlined(nodes, a, b, c);
        break;
      case "array inlined":
        index = arrayInlined(RING, index, a, b, c);
        break;
      default:
        throw new IllegalArgumentException(what);
    }
  }

  private static String ranges(String operation, String layout) {
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < 3; i++) {
      char letter = "ABC".charAt(i);
      String range = operation + (layout.equals("ranges") ? i + 1 : "");
      range += layout.equals("methods") ? letter : layout.equals("inlined") ? "In" + letter : "";
      String method = layout.equals("ranges") ? operation : range;
      text.append(i == 0 ? "" : ", ").append("{\"method\":\"programs.Shares.").append(method);
      text.append("\", \"range\":\"").append(range).append("\", \"seconds\":");
      text.append(Clock.SPENT[i] / 1e9).append('}');
    }
    return text.toString();
  }

  public static void main(String[] arguments) throws Exception {
    Program program = new Program(arguments);
    String operation = program.text("operation", "divide");
    String layout = program.text("layout", "methods");
    String what = operation + ' ' + layout;
    int[] loops = program.numbers("loops", 150, 450, 900);
    int jitter = program.number("jitter", 20);
    int cycles = program.number("cycles", 1000);
    long least = program.number("milliseconds", 0) * 1_000_000L;
    Node last = new Node();
    nodes = last;
    for (int i = 0; i < RING.length; i++) {
      RING[i] = (i * 5 + 1) % RING.length;
      Node node = new Node();
      node.next = nodes;
      nodes = node;
    }
    last.next = nodes;
    // All is compiled, and what replaces it too, before anything counts.
    for (int i = 0; i < program.number("warm", 400); i++) {
      cycle(what, loops[0] / 4, loops[1] / 4, loops[2] / 4);
    }
    // A compilation in another thread ends within that.
    for (int i = 0; i < 20; i++) {
      Thread.sleep(10);
      cycle(what, loops[0], loops[1], loops[2]);
    }
    program.warm();
    Clock.clear();
    Random random = new Random(System.nanoTime());
    long from = System.nanoTime();
    int done = 0;
    while (program.goesOn(done, cycles) || Clock.spent() < least) {
      double scale = 1 + (2 * random.nextDouble() - 1) * jitter / 100;
      cycle(what, (int) (loops[0] * scale), (int) (loops[1] * scale), (int) (loops[2] * scale));
      done++;
    }
    long to = System.nanoTime();
    program.done("{\"pid\":" + ProcessHandle.current().pid() + ", \"measured_from_ns\":" + from
        + ", \"measured_to_ns\":" + to + ", \"cycles\":" + done + ", \"ranges\":["
        + ranges(operation, layout) + "], \"used\":" + (number + index + (nodes == last ? 1 : 0))
        + "}");
  }
}
