import java.util.HashMap;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Supplier;

/** Has an instruction of each kind, runs hot, then waits for the end of its input. */
public class Listed {
    interface Shape { double area(); default long rounded() { return (long) area(); } }
    static class Square implements Shape {
        final double side;
        Square(double side) { this.side = side; }
        public double area() { return side * side; }
    }
    static class Circle implements Shape {
        final float radius;
        Circle(float radius) { this.radius = radius; }
        public double area() { return 3.14159 * radius * radius; }
    }

    int count;
    long total;
    short small;
    byte tiny;
    char letter;
    boolean flag;
    float part;
    double whole;
    Object any;
    static double rate = 3.14;
    static float none = 0.0f / 0.0f;
    static String text = "text: \"quoted\"\n\t\\ and \u00e9\u20ac \ud83d\ude00 \0";

    static int table(int x) {
        switch (x) {
            case 0: return 1;
            case 1: return 5;
            case 2: return 7;
            case 4: return 9;
            default: return -1;
        }
    }
    static int longTable(int x) {
        switch (x) {
            case -3: case 0: case 2: case 4: case 6: case 8: case 10: case 12: case 14:
            case 16: case 18: case 20: case 21: return x + 40000;
            default: return 70000;
        }
    }
    static int lookup(String s) {
        switch (s) {
            case "a": return 1;
            case "bbb": return 5;
            case "x\n\"y": return 7;
            default: return -1;
        }
    }
    static int few(int x) {
        switch (x) {
            case 1: return 3;
            case 1000: return 4;
            case -100000: return 5;
            default: return 6;
        }
    }
    int store(int by) {
        count += by;
        total = total * 31 + count;
        small += by; tiny += by; letter += by; flag = !flag; part += 0.5f; whole += 1e300;
        any = this;
        return count + small + tiny + letter + (flag ? 1 : 0) + (int) part + (any == null ? 1 : 0);
    }
    static String concat(String a, int b) { return a + ":" + b + text; }
    static char at(char[] all, int i) { char c = all[i]; int j = i; int k = j; return (char) (c + all[k] + j + k); }
    static synchronized long arrays(int i) {
        long[][] two = new long[3][4];
        Object[] objects = { new int[2], new byte[3], new boolean[1], new Map[2], new String[2][], "x" };
        two[1][2] = i;
        int[] copy = ((int[]) objects[0]).clone();
        synchronized (objects) { copy[1] += 300; copy[0]--; }
        Object z = Listed.class;
        if (z instanceof Class) i += z.hashCode() & 1;
        try { if (i < -5) throw new IllegalStateException("below"); } catch (RuntimeException e) { i = 0; }
        return two[1][2] + copy[1] + (objects[5] instanceof String ? 1 : 0) + int[].class.getModifiers();
    }
    static long wide(int i) {
        long a0=i,a1=i,a2=i,a3=i,a4=i,a5=i,a6=i,a7=i,a8=i,a9=i,b0=i,b1=i,b2=i,b3=i,b4=i,b5=i,b6=i,b7=i,b8=i,b9=i,
          c0=i,c1=i,c2=i,c3=i,c4=i,c5=i,c6=i,c7=i,c8=i,c9=i,d0=i,d1=i,d2=i,d3=i,d4=i,d5=i,d6=i,d7=i,d8=i,d9=i,
          e0=i,e1=i,e2=i,e3=i,e4=i,e5=i,e6=i,e7=i,e8=i,e9=i,f0=i,f1=i,f2=i,f3=i,f4=i,f5=i,f6=i,f7=i,f8=i,f9=i,
          g0=i,g1=i,g2=i,g3=i,g4=i,g5=i,g6=i,g7=i,g8=i,g9=i,h0=i,h1=i,h2=i,h3=i,h4=i,h5=i,h6=i,h7=i,h8=i,h9=i,
          k0=i,k1=i,k2=i,k3=i,k4=i,k5=i,k6=i,k7=i,k8=i,k9=i,l0=i,l1=i,l2=i,l3=i,l4=i,l5=i,l6=i,l7=i,l8=i,l9=i,
          m0=i,m1=i,m2=i,m3=i,m4=i,m5=i,m6=i,m7=i,m8=i,m9=i,n0=i,n1=i,n2=i,n3=i,n4=i,n5=i,n6=i,n7=i,n8=i,n9=i,
          o0=i,o1=i,o2=i,o3=i,o4=i,o5=i,o6=i,o7=i,o8=i,o9=i;
        int far = i;
        far += 3;
        far += 1000;
        i += 1000;
        return far + a0 + o9 + n8 + i;
    }
    static long work(int n) {
        Map<Integer, String> map = new HashMap<>();
        long sum = 0;
        Listed listed = new Listed();
        Shape[] shapes = { new Square(2), new Circle(3) };
        char[] letters = "letters".toCharArray();
        for (int i = 0; i < n; i++) {
            map.put(i % 100, concat("k", i));
            sum += listed.store(table(i & 7)) + longTable(i & 31) + few(i);
            sum += shapes[i & 1].rounded() + lookup(i % 3 == 0 ? "a" : "bbb") + at(letters, i % 7);
            Function<Integer, Integer> next = q -> q + 1;
            Supplier<Listed> make = Listed::new;
            sum += next.apply(i) + make.get().store(2) + arrays(i) + wide(i);
        }
        return sum;
    }
    public static void main(String[] args) throws Exception {
        long sum = 0;
        for (int i = 0; i < 100; i++) sum += work(300);
        System.out.println("ready " + sum + none);
        System.in.read();
    }
}
