import java.net.URI;
import java.util.*;
import javax.tools.*;

/** The Java compiler, over and over, in memory. Runs until it is killed. */
public class EvJavac {
    static class Source extends SimpleJavaFileObject {
        private final String text;

        Source(String name, String text) {
            super(URI.create("string:///" + name + ".java"), Kind.SOURCE);
            this.text = text;
        }

        @Override
        public CharSequence getCharContent(boolean ignored) {
            return text;
        }
    }

    static String program(int number) {
        StringBuilder text = new StringBuilder("import java.util.*;\npublic class P" + number + " {\n");
        for (int i = 0; i < 60; i++) {
            text.append("  static <T extends Comparable<T>> T f" + i + "(List<T> all, int n) {\n")
                .append("    Map<String, List<T>> map = new TreeMap<>();\n")
                .append("    for (T one : all) map.computeIfAbsent(one + \"x\" + n, k -> new ArrayList<>()).add(one);\n")
                .append("    return map.values().stream().flatMap(l -> l.stream()).max(Comparator.naturalOrder()).orElse(null);\n")
                .append("  }\n  int g" + i + "(int a, long b) { switch (a) { case 1: return (int) b; case " + (i + 2)
                    + ": return a * " + i + "; default: return a > b ? g" + i + "(a - 1, b) : 0; } }\n");
        }
        return text.append("}\n").toString();
    }

    public static void main(String[] args) throws Exception {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        for (int number = 0; ; number++) {
            List<Source> sources = List.of(new Source("P" + number, program(number)));
            compiler.getTask(null, null, null, List.of("-proc:none", "-d", System.getProperty("java.io.tmpdir") + "/evjavac-out", "-implicit:none", "-XDshould-stop.ifNoError=FLOW"), null, sources).call();
        }
    }
}
