package programs;

import java.io.InputStream;
import java.io.PrintWriter;
import java.lang.invoke.MethodHandles;
import java.lang.reflect.Array;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.Random;

/**
 * Code that comes and goes: each life is a class of its own, defined by a class loader of its own
 * (every other one hidden, on JVMs that have hidden classes), runs for some milliseconds, is
 * compiled meanwhile, and is unloaded. Each also overrides a method that others call, so that
 * their code is thrown away.
 *
 * <pre>
 * --lives N     how many
 * --rounds N    of the loop in a life
 * --log FILE    "KIND CLASS BEGIN END" a line, in System.nanoTime, which is CLOCK_MONOTONIC
 * --collect N   collects garbage, and so unloads classes, after every N lives
 * </pre>
 *
 * <p>At the end: {@code {"lives":, "kinds":[{"kind":, "seconds":}]}}, in CPU time.
 */
public final class Churn {
  private static final String[] KINDS = {"alpha", "beta", "gamma", "steady"};

  private Churn() {}

  /** What a life does; the loop is in the subclass. */
  public abstract static class Body {
    public abstract int run(int x, int n);

    /** Overridden by each life: code that relied on there being one of it is void. */
    public int adjust(int x) {
      return x + 1;
    }
  }

  /** Defines one class. */
  static final class Loader extends ClassLoader {
    Loader() {
      super(Churn.class.getClassLoader());
    }

    Class<?> define(byte[] bytes) {
      return defineClass(null, bytes, 0, bytes.length);
    }
  }

  /** Compiled as if no life overrode {@code adjust} but those that it has seen. */
  static int adjusted(Body body, int n) {
    int x = n;
    for (int i = 0; i < n; i++) {
      x = body.adjust(x);
    }
    return x;
  }

  /** The class file of a template, under a name with these digits. */
  static byte[] named(String template, int number) throws Exception {
    byte[] bytes;
    try (InputStream in = Churn.class.getResourceAsStream(template + "00000.class")) {
      bytes = in.readAllBytes();
    }
    byte[] name = (template + "00000").getBytes(StandardCharsets.US_ASCII);
    byte[] other = String.format("%s%05d", template, number).getBytes(StandardCharsets.US_ASCII);
    for (int at = 0; at + name.length <= bytes.length; at++) {
      int same = 0;
      while (same < name.length && bytes[at + same] == name[same]) {
        same++;
      }
      if (same == name.length) {
        System.arraycopy(other, 0, bytes, at, other.length);
      }
    }
    return bytes;
  }

  /** {@code Lookup.defineHiddenClass} where there is one (JDK 15 and later). */
  private static Class<?> hidden(byte[] bytes) throws ReflectiveOperationException {
    try {
      Class<?> option = Class.forName("java.lang.invoke.MethodHandles$Lookup$ClassOption");
      Object none = Array.newInstance(option, 0);
      Method define = MethodHandles.Lookup.class.getMethod("defineHiddenClass", byte[].class,
          boolean.class, none.getClass());
      Object lookup = define.invoke(MethodHandles.lookup(), bytes, true, none);
      return ((MethodHandles.Lookup) lookup).lookupClass();
    } catch (ClassNotFoundException e) {
      return new Loader().define(bytes);
    }
  }

  public static void main(String[] arguments) throws Exception {
    Program program = new Program(arguments);
    int lives = program.number("lives", 100);
    int rounds = program.number("rounds", 400_000);
    int collect = program.number("collect", 20);
    String log = program.text("log", "");
    PrintWriter writer = log.isEmpty() ? null : new PrintWriter(log, "UTF-8");
    Body steady = new Steady();
    Random random = new Random(5);
    int x = steady.run(3, rounds * 10);
    program.warm();
    int done = 0;
    while (program.goesOn(done, lives)) {
      int kind = done % KINDS.length;
      Body body = steady;
      String name = "Steady";
      if (kind < 3) {
        String template = KINDS[kind].substring(0, 1).toUpperCase() + KINDS[kind].substring(1);
        byte[] bytes = named(template, done % 100_000);
        name = String.format("%s%05d", template, done % 100_000);
        Class<?> made = done % 2 == 0 ? hidden(bytes) : new Loader().define(bytes);
        body = (Body) made.getDeclaredConstructor().newInstance();
      }
      x += adjusted(body, 1000);
      int n = (int) (rounds * (0.8 + 0.4 * random.nextDouble()));
      long begin = System.nanoTime();
      Clock.start();
      x = body.run(x, n);
      Clock.lap(kind);
      long end = System.nanoTime();
      if (writer != null) {
        writer.println(KINDS[kind] + ' ' + name + ' ' + begin + ' ' + end);
      }
      done++;
      if (done % collect == 0) {
        System.gc();
      }
    }
    if (writer != null) {
      writer.close();
    }
    StringBuilder kinds = new StringBuilder();
    for (int i = 0; i < KINDS.length; i++) {
      kinds.append(i == 0 ? "" : ", ").append("{\"kind\":\"").append(KINDS[i]);
      kinds.append("\", \"seconds\":").append(Clock.SPENT[i] / 1e9).append('}');
    }
    program.done("{\"lives\":" + done + ", \"used\":" + x + ", \"kinds\":[" + kinds + "]}");
  }
}
