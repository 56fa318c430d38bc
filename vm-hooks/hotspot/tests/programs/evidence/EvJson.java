import java.util.*;
import java.util.regex.*;

/** A small JSON reader and writer, regular expressions, sorting. Runs until it is killed. */
public class EvJson {
    static final class Reader {
        private final String text;
        private int at;

        Reader(String text) { this.text = text; }

        private char peek() { return at < text.length() ? text.charAt(at) : 0; }

        private void blanks() { while (Character.isWhitespace(peek())) at++; }

        Object value() {
            blanks();
            char c = peek();
            if (c == '{') return object();
            if (c == '[') return array();
            if (c == '"') return string();
            return number();
        }

        private Map<String, Object> object() {
            Map<String, Object> map = new HashMap<>();
            at++;
            blanks();
            while (peek() != '}') {
                String key = string();
                blanks();
                at++;
                map.put(key, value());
                blanks();
                if (peek() == ',') at++;
                blanks();
            }
            at++;
            return map;
        }

        private List<Object> array() {
            List<Object> list = new ArrayList<>();
            at++;
            blanks();
            while (peek() != ']') {
                list.add(value());
                blanks();
                if (peek() == ',') at++;
                blanks();
            }
            at++;
            return list;
        }

        private String string() {
            StringBuilder out = new StringBuilder();
            at++;
            for (char c = peek(); c != '"'; c = peek()) {
                if (c == '\\') { at++; c = peek(); }
                out.append(c);
                at++;
            }
            at++;
            return out.toString();
        }

        private Long number() {
            boolean minus = peek() == '-';
            if (minus) at++;
            long value = 0;
            while (Character.isDigit(peek())) value = value * 10 + (text.charAt(at++) - '0');
            return minus ? -value : value;
        }
    }

    static void write(Object value, StringBuilder out) {
        if (value instanceof Map<?, ?> map) {
            out.append('{');
            boolean first = true;
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                if (!first) out.append(',');
                first = false;
                write(entry.getKey(), out);
                out.append(':');
                write(entry.getValue(), out);
            }
            out.append('}');
        } else if (value instanceof List<?> list) {
            out.append('[');
            for (int i = 0; i < list.size(); i++) {
                if (i > 0) out.append(", ");
                write(list.get(i), out);
            }
            out.append(']');
        } else if (value instanceof String string) {
            out.append('"').append(string).append('"');
        } else {
            out.append(value);
        }
    }

    public static void main(String[] args) {
        List<Object> rows = new ArrayList<>();
        Random random = new Random(11);
        for (int i = 0; i < 300; i++) {
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("id", (long) i);
            row.put("name", "n" + random.nextInt(1000) + "@mail" + (i % 7) + ".org");
            row.put("values", List.of((long) random.nextInt(50), (long) -random.nextInt(9999), "x y z"));
            rows.add(row);
        }
        StringBuilder first = new StringBuilder();
        write(rows, first);
        String text = first.toString();
        Pattern mail = Pattern.compile("([a-z]+)(\\d+)@([a-z0-9]+)\\.(org|com)");
        long check = 0;
        while (true) {
            Object read = new Reader(text).value();
            StringBuilder out = new StringBuilder();
            write(read, out);
            check += out.length();
            Matcher matcher = mail.matcher(text);
            while (matcher.find()) check += matcher.group(2).length() + matcher.start(3);
            List<String> names = new ArrayList<>();
            for (Object row : (List<?>) read) names.add((String) ((Map<?, ?>) row).get("name"));
            names.sort(Comparator.comparing((String s) -> s.length()).thenComparing(Comparator.naturalOrder()));
            check += names.get(0).length();
            if (check == 42) System.out.println(check);
        }
    }
}
