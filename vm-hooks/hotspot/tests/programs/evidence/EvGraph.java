import java.math.BigInteger;
import java.util.*;

/** Graphs, bit sets, big numbers, queens, a tiny interpreter. Runs until it is killed. */
public class EvGraph {
    static final class Vertex {
        final int id;
        final List<Edge> edges = new ArrayList<>();
        long distance;
        Vertex(int id) { this.id = id; }
        void reset() { distance = Long.MAX_VALUE; }
    }
    record Edge(Vertex to, int length) {}
    record Entry(Vertex vertex, long distance) implements Comparable<Entry> {
        public int compareTo(Entry other) { return Long.compare(distance, other.distance); }
    }

    static long shortest(List<Vertex> graph, Vertex from) {
        for (Vertex vertex : graph) vertex.reset();
        PriorityQueue<Entry> queue = new PriorityQueue<>();
        from.distance = 0;
        queue.add(new Entry(from, 0));
        long sum = 0;
        while (!queue.isEmpty()) {
            Entry next = queue.poll();
            Vertex vertex = next.vertex();
            if (next.distance() > vertex.distance) continue;
            sum += vertex.distance;
            for (Edge edge : vertex.edges) {
                long distance = vertex.distance + edge.length();
                if (distance < edge.to().distance) {
                    edge.to().distance = distance;
                    queue.add(new Entry(edge.to(), distance));
                }
            }
        }
        return sum;
    }

    static int reach(List<Vertex> graph) {
        BitSet seen = new BitSet();
        ArrayDeque<Vertex> todo = new ArrayDeque<>();
        todo.push(graph.get(0));
        while (!todo.isEmpty()) {
            Vertex vertex = todo.pop();
            if (seen.get(vertex.id)) continue;
            seen.set(vertex.id);
            for (Edge edge : vertex.edges) if (!seen.get(edge.to().id)) todo.push(edge.to());
        }
        return seen.cardinality();
    }

    static int queens(int n, int row, int columns, int left, int right) {
        if (row == n) return 1;
        int found = 0;
        for (int free = ~(columns | left | right) & ((1 << n) - 1); free != 0; free &= free - 1) {
            int bit = free & -free;
            found += queens(n, row + 1, columns | bit, (left | bit) << 1, (right | bit) >> 1);
        }
        return found;
    }

    static final class Machine {
        final int[] stack = new int[64];
        int top;
        void push(int value) { stack[top++] = value; }
        int pop() { return stack[--top]; }
        int run(byte[] code, int input) {
            int pc = 0, counter = input;
            while (true) {
                switch (code[pc++]) {
                    case 0 -> push(code[pc++]);
                    case 1 -> push(pop() + pop());
                    case 2 -> push(pop() * pop());
                    case 3 -> { if (--counter > 0) pc = 0; }
                    case 4 -> push(counter ^ pop());
                    default -> { return pop(); }
                }
                if (top > 40) top = 2;
            }
        }
    }

    public static void main(String[] args) {
        Random random = new Random(5);
        List<Vertex> graph = new ArrayList<>();
        for (int i = 0; i < 1500; i++) graph.add(new Vertex(i));
        for (int i = 0; i < 9000; i++)
            graph.get(random.nextInt(1500)).edges.add(new Edge(graph.get(random.nextInt(1500)), 1 + random.nextInt(99)));
        byte[] code = {0, 3, 0, 4, 1, 0, 2, 2, 4, 3, 9};
        Machine machine = new Machine();
        long check = 0;
        for (int round = 0; ; round++) {
            check += shortest(graph, graph.get(round % 1500)) + reach(graph) + queens(8, 0, 0, 0, 0);
            machine.push(1);
            check += machine.run(code, 5000);
            BigInteger product = BigInteger.ONE;
            for (int i = 1; i < 120; i++) product = product.multiply(BigInteger.valueOf(i + round % 5));
            check += product.bitLength() + product.mod(BigInteger.valueOf(1_000_003)).intValue();
            machine.top = 0;
            if (check == 42) System.out.println(check);
        }
    }
}
