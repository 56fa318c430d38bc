import java.util.*;
import java.util.function.*;
import java.util.stream.*;

/** Collections, streams and calls with many receivers. Runs until it is killed. */
public class EvStreams {
    interface Shape { double area(); }
    record Square(double side) implements Shape { public double area() { return side * side; } }
    record Circle(double radius) implements Shape { public double area() { return Math.PI * radius * radius; } }
    record Box(double w, double h) implements Shape { public double area() { return w * h; } }
    record Ring(double a, double b) implements Shape { public double area() { return Math.abs(a * a - b * b); } }

    static abstract class Node {
        Node left, right;
        int key;
        abstract int weigh();
        int total() { return weigh() + (left == null ? 0 : left.total()) + (right == null ? 0 : right.total()); }
    }
    static class Light extends Node { int weigh() { return 1; } }
    static class Heavy extends Node { int weigh() { return key & 15; } }
    static class Odd extends Node { int weigh() { return (key & 1) == 0 ? 2 : 3; } }

    static Node insert(Node at, int key) {
        if (at == null) {
            Node made = key % 3 == 0 ? new Light() : key % 3 == 1 ? new Heavy() : new Odd();
            made.key = key;
            return made;
        }
        if (key < at.key) at.left = insert(at.left, key);
        else at.right = insert(at.right, key);
        return at;
    }

    static double areas(List<Shape> shapes) {
        double sum = 0;
        for (Shape shape : shapes) sum += shape.area();
        return sum;
    }

    static Map<Integer, Long> group(List<Integer> numbers) {
        return numbers.stream().filter(n -> (n & 3) != 0).map(n -> n * 31 + 7)
            .collect(Collectors.groupingBy(n -> n % 17, Collectors.counting()));
    }

    static int queue(int n) {
        PriorityQueue<Integer> queue = new PriorityQueue<>();
        for (int i = 0; i < n; i++) queue.add((i * 7919) % 10007);
        int sum = 0;
        while (!queue.isEmpty()) sum = sum * 3 + queue.poll();
        return sum;
    }

    static int links(List<Integer> numbers) {
        LinkedHashMap<Integer, Integer> map = new LinkedHashMap<>();
        TreeMap<Integer, Integer> tree = new TreeMap<>();
        ArrayDeque<Integer> deque = new ArrayDeque<>();
        for (int n : numbers) {
            map.put(n, n + 1);
            tree.put(n ^ 0x55, n);
            deque.addLast(n);
            if (deque.size() > 50) deque.pollFirst();
        }
        int sum = 0;
        for (int value : map.values()) sum += value;
        for (Map.Entry<Integer, Integer> entry : tree.entrySet()) sum ^= entry.getKey() + entry.getValue();
        Iterator<Integer> each = deque.iterator();
        while (each.hasNext()) sum += each.next();
        return sum;
    }

    public static void main(String[] args) {
        Random random = new Random(3);
        List<Integer> numbers = random.ints(3000, 0, 100_000).boxed().collect(Collectors.toList());
        List<Shape> shapes = new ArrayList<>();
        for (int i = 0; i < 3000; i++) {
            double d = random.nextDouble();
            switch (i & 3) {
                case 0 -> shapes.add(new Square(d));
                case 1 -> shapes.add(new Circle(d));
                case 2 -> shapes.add(new Box(d, 2));
                default -> shapes.add(new Ring(d, 1));
            }
        }
        Node root = null;
        for (int n : numbers) root = insert(root, n);
        double check = 0;
        while (true) {
            check += areas(shapes) + group(numbers).size() + root.total() + queue(1500) + links(numbers);
            check += IntStream.range(0, 2000).mapToObj(i -> numbers.get(i)).sorted(Comparator.reverseOrder()).limit(10).mapToInt(Integer::intValue).sum();
            Node again = null;
            for (int i = 0; i < 1000; i++) again = insert(again, numbers.get(i));
            check += again.total();
            if (check == 42) System.out.println(check);
        }
    }
}
