import java.util.ArrayList;
import java.util.List;

/**
 * Allocates so that each collector has work: most objects die young, some are kept for a
 * while, some are dropped from the old generation. Now and then it asks for a full
 * collection. It says "ready" when it runs; each line that it reads is answered: "go" makes it
 * allocate (then "going"), "stop" makes it allocate no more (then "stopped"), "full" calls
 * System.gc() (then "done"), and the end of its input ends it.
 *
 * Arguments: MB that are kept, threads that allocate.
 */
public final class GcPressure {
    private static volatile boolean stop;
    private static volatile Object sink;

    public static void main(String[] args) throws Exception {
        int keptMb = args.length > 0 ? Integer.parseInt(args[0]) : 24;
        int count = args.length > 1 ? Integer.parseInt(args[1]) : 1;
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            int share = Math.max(1, keptMb / count);
            Thread thread = new Thread(() -> allocate(share), "allocator-" + number);
            thread.setDaemon(true);
            threads.add(thread);
        }
        System.out.println("ready");
        var lines = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (line.equals("go")) {
                threads.forEach(Thread::start);
                System.out.println("going");
            } else if (line.equals("full")) {
                System.gc();
                System.out.println("done");
            } else if (line.equals("stop")) {
                stop = true;
                for (Thread thread : threads) {
                    thread.join();
                }
                System.out.println("stopped");
            }
        }
    }

    private static void allocate(int keptMb) {
        // A ring of 1 KB objects: each lives for as long as it takes to go round.
        byte[][] ring = new byte[keptMb * 1024][];
        int at = 0;
        while (!stop) {
            for (int dead = 0; dead < 16; dead++) {
                sink = new long[24];
            }
            ring[at] = new byte[1024 - 16];
            at = at + 1 == ring.length ? 0 : at + 1;
        }
    }
}
