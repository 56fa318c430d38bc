package programs;

import java.util.ArrayList;
import java.util.List;

/**
 * A large program that starts: one loader defines class after class, and each runs for some
 * microseconds, mostly in the interpreter.
 *
 * <pre>
 * --classes N   at most; at --forever, they run again and again afterwards
 * </pre>
 */
public final class Many {
  private Many() {}

  public static void main(String[] arguments) throws Exception {
    Program program = new Program(arguments);
    int most = program.number("classes", 60_000);
    Churn.Loader loader = new Churn.Loader();
    List<Churn.Body> bodies = new ArrayList<>();
    program.warm();
    int x = 3;
    for (int done = 0; program.goesOn(done, 2 * most); done++) {
      if (done < most) {
        Class<?> made = loader.define(Churn.named("Gamma", done % 100_000));
        bodies.add((Churn.Body) made.getDeclaredConstructor().newInstance());
      }
      x = bodies.get(done % bodies.size()).run(x, 500);
    }
    program.done("{\"classes\":" + bodies.size() + ", \"used\":" + x + "}");
  }
}
