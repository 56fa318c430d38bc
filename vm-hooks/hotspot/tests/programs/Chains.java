package programs;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** Callers of methods {@code leaf…}, as the VM tells them. */
final class Chains {
  private static final StackWalker WALKER =
      StackWalker.getInstance(StackWalker.Option.SHOW_HIDDEN_FRAMES);
  private final Map<String, Set<String>> byLeaf = Collections.synchronizedMap(new TreeMap<>());

  /** Adds the chain of the innermost leaf on this thread's stack. */
  void add() {
    List<String> frames =
        WALKER.walk(
            all ->
                all.dropWhile(frame -> !frame.getMethodName().startsWith("leaf"))
                    .map(frame -> frame.getClassName() + "." + frame.getMethodName())
                    .collect(Collectors.toList()));
    byLeaf
        .computeIfAbsent(
            frames.get(0), name -> Collections.synchronizedSet(new LinkedHashSet<>()))
        .add(String.join(";", frames));
  }

  /** Prints all chains by their leaves. */
  void print() {
    List<String> leaves = new ArrayList<>();
    byLeaf.forEach(
        (leaf, chains) -> leaves.add("\"" + leaf + "\":[\"" + String.join("\",\"", chains) + "\"]"));
    System.out.println("{\"chains\":{" + String.join(",", leaves) + "}}");
  }
}
