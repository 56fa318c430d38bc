import java.util.*;

/** Text: splitting, numbers, builders, maps of strings. Runs until it is killed. */
public class EvParse {
    record Row(String name, int count, double weight) {}

    static String makeLine(Random random) {
        StringBuilder line = new StringBuilder();
        line.append("item").append(random.nextInt(500)).append(',');
        line.append(random.nextInt(100_000)).append(',');
        line.append(random.nextDouble()).append(", tail ").append((char) ('a' + random.nextInt(26)));
        return line.toString();
    }

    static int number(String text, int from, int to) {
        int value = 0;
        for (int i = from; i < to; i++) {
            char c = text.charAt(i);
            if (c < '0' || c > '9') throw new IllegalArgumentException(text);
            value = value * 10 + (c - '0');
        }
        return value;
    }

    static Row parse(String line) {
        int first = line.indexOf(',');
        int second = line.indexOf(',', first + 1);
        int third = line.indexOf(',', second + 1);
        String name = line.substring(0, first).trim();
        double weight = 0;
        for (int i = second + 3; i < third && i < second + 9; i++) {
            weight = weight * 10 + Character.digit(line.charAt(i), 10);
        }
        return new Row(name, number(line, first + 1, second), weight);
    }

    static int words(String line) {
        int found = 0;
        for (String part : line.split(",")) {
            String lower = part.toLowerCase();
            if (lower.startsWith("item") || lower.contains("tail")) found += lower.hashCode() & 7;
        }
        return found;
    }

    static String render(Map<String, Integer> sums) {
        StringBuilder out = new StringBuilder();
        for (Map.Entry<String, Integer> entry : sums.entrySet()) {
            out.append(entry.getKey()).append('=').append(entry.getValue()).append(';');
        }
        return out.toString();
    }

    public static void main(String[] args) {
        Random random = new Random(7);
        List<String> lines = new ArrayList<>();
        for (int i = 0; i < 4000; i++) lines.add(makeLine(random));
        long check = 0;
        while (true) {
            Map<String, Integer> sums = new HashMap<>();
            for (String line : lines) {
                Row row = parse(line);
                sums.merge(row.name(), row.count(), Integer::sum);
                check += words(line) + (long) row.weight();
            }
            String text = render(sums);
            StringTokenizer tokens = new StringTokenizer(text, "=;");
            while (tokens.hasMoreTokens()) {
                String key = tokens.nextToken();
                check += key.length() + Integer.parseInt(tokens.nextToken());
            }
            if (check == 42) System.out.println(check);
        }
    }
}
