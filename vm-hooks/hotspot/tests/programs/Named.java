package programs;

/** Busy threads with names that the kernel's 15 bytes cannot hold. */
final class Named {
  private static final String[] NAMES = {
    "http-nio-18080-exec-1", "http-nio-18080-exec-2", "Müller liest Dateien", "スレッド番号一二三四五",
  };

  private static volatile long sum;

  private Named() {}

  public static void main(String[] arguments) throws Exception {
    Program program = new Program(arguments);
    for (String name : NAMES) {
      Runnable work =
          () -> {
            while (true) {
              sum = Threads.work(100_000, sum);
            }
          };
      Thread thread = new Thread(work, name);
      thread.setDaemon(true);
      thread.start();
    }
    program.warm();
    for (int i = 0; program.goesOn(i, program.number("waves", 20)); i++) {
      sum = Threads.work(100_000, sum);
    }
    program.done("{\"sum\":" + sum + "}");
  }
}
