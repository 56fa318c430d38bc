import com.google.javascript.jscomp.*;
import com.google.javascript.jscomp.Compiler;
import java.io.*;
import java.nio.file.*;
import java.util.logging.Level;

/** Compiles a script with the Closure compiler, again and again. Runs until it is killed. */
public class RealClosure {
    public static void main(String[] arguments) throws Exception {
        String script = new String(Files.readAllBytes(Paths.get(arguments[0])), "UTF-8");
        for (;;) {
            Compiler.setLoggingLevel(Level.OFF);
            Compiler compiler = new Compiler(new PrintStream(new ByteArrayOutputStream()));
            CompilerOptions options = new CompilerOptions();
            CompilationLevel.SIMPLE_OPTIMIZATIONS.setOptionsForCompilationLevel(options);
            compiler.disableThreads();
            SourceFile none = SourceFile.fromCode("none.js", "");
            compiler.compile(none, SourceFile.fromCode("script.js", script), options);
            compiler.toSource();
        }
    }
}
