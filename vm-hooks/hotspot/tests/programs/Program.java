package programs;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;

/**
 * What the programs have in common: their options, and how they end.
 *
 * <p>{@code --NAME VALUE} or {@code --NAME} alone, which is {@code true}. All programs take
 *
 * <ul>
 *   <li>{@code --wait}: the work done, prints {@code ready PID} and then does nothing: a process to
 *       compare with what is read of it. A line on its standard input makes it do as much again,
 *       and be ready again; the end of it ends it;
 *   <li>{@code --forever}: prints {@code ready PID} when all is compiled, and works until
 *       SIGTERM, which is then the end of its work and not of its report.
 * </ul>
 */
final class Program {
  private static volatile boolean stop;
  private final Map<String, String> options = new HashMap<>();

  Program(String[] arguments) {
    for (int i = 0; i < arguments.length; i++) {
      if (!arguments[i].startsWith("--")) {
        System.err.println("not an option: " + arguments[i]);
        System.exit(2);
      }
      boolean alone = i + 1 == arguments.length || arguments[i + 1].startsWith("--");
      options.put(arguments[i].substring(2), alone ? "true" : arguments[++i]);
    }
    if (has("forever")) {
      Thread main = Thread.currentThread();
      Runtime.getRuntime().addShutdownHook(new Thread(() -> {
        stop = true;
        try {
          main.join();
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
        }
      }, "asked to end"));
    }
  }

  boolean has(String name) {
    return options.containsKey(name);
  }

  int number(String name, int otherwise) {
    return Integer.parseInt(text(name, Integer.toString(otherwise)));
  }

  String text(String name, String otherwise) {
    return options.getOrDefault(name, otherwise);
  }

  int[] numbers(String name, int... otherwise) {
    if (!has(name)) {
      return otherwise;
    }
    String[] words = text(name, "").split(",");
    int[] numbers = new int[words.length];
    for (int i = 0; i < words.length; i++) {
      numbers[i] = Integer.parseInt(words[i]);
    }
    return numbers;
  }

  /** Whether more work is to be done after so many rounds of it. */
  boolean goesOn(int done, int rounds) throws IOException {
    if (has("forever")) {
      return !stop;
    }
    if (done > 0 && done % rounds == 0 && has("wait")) {
      ready();
      return System.in.read() >= 0;
    }
    return done < rounds || has("wait");
  }

  /** With {@code --forever}: says that from here on it only works. */
  void warm() {
    if (has("forever")) {
      ready();
    }
  }

  /** The work is done: prints what is to be said of it. */
  void done(String said) {
    System.out.println(said);
    System.out.flush();
  }

  private static void ready() {
    System.out.println("ready " + ProcessHandle.current().pid());
    System.out.flush();
  }
}
