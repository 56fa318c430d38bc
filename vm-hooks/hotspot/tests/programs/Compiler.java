package programs;

import java.net.URI;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;

/**
 * javac over and over, on a class made up here: a large program with thousands of methods, {@code
 * --rounds N}. Ends with status 3 where the JVM has no javac.
 */
final class Compiler {
  private Compiler() {}

  private static final class Source extends SimpleJavaFileObject {
    private final String text;

    Source(String name, String text) {
      super(URI.create("string:///" + name + ".java"), Kind.SOURCE);
      this.text = text;
    }

    @Override
    public CharSequence getCharContent(boolean ignoreEncodingErrors) {
      return text;
    }
  }

  private static String source(String name) {
    StringBuilder text = new StringBuilder("import java.util.*;\nclass " + name + " {\n");
    for (int i = 0; i < 60; i++) {
      text.append("  static int m").append(i).append("(List<String> x, int y) {\n");
      text.append("    int z = y;\n    for (String s : x) { z += s.length() * ").append(i);
      text.append("; if (z > 5) { z = z / 3 + Math.max(y, z); } else z++; }\n");
      text.append("    Map<String, Integer> m = new HashMap<>();\n");
      text.append("    x.forEach(s -> m.merge(s, 1, Integer::sum));\n");
      text.append("    switch (z % 4) { case 0: return z; case 1: return m.size(); default: }\n");
      text.append("    return x.stream().mapToInt(s -> s.length()).sum() + \"a\".length();\n  }\n");
    }
    return text.append("}\n").toString();
  }

  public static void main(String[] arguments) throws Exception {
    Program program = new Program(arguments);
    JavaCompiler javac = ToolProvider.getSystemJavaCompiler();
    if (javac == null) {
      System.err.println("this JVM has no javac");
      System.exit(3);
    }
    List<JavaFileObject> sources = new ArrayList<>();
    sources.add(new Source("Made", source("Made")));
    int compiled = 0;
    for (int i = 0; program.goesOn(i, program.number("rounds", 20)); i++) {
      // Analysed and checked, not written.
      List<String> options = Collections.singletonList("-proc:none");
      JavaCompiler.CompilationTask task = javac.getTask(null, null, null, options, null, sources);
      ((com.sun.source.util.JavacTask) task).analyze();
      compiled++;
      if (i == 3) {
        program.warm();
      }
    }
    program.done("{\"compiled\":" + compiled + "}");
  }
}
