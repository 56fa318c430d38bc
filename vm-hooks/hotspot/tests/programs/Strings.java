package programs;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;

/** Builds text, parses it, sorts and counts its words: what most programs do. {@code --rounds N} */
final class Strings {
  private final Random random = new Random(7);

  String record(int fields) {
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < fields; i++) {
      text.append("key").append(random.nextInt(50)).append('=');
      text.append(Integer.toString(random.nextInt(), 1 + random.nextInt(35) + 1)).append(';');
    }
    return text.toString();
  }

  Map<String, Integer> parse(String text) {
    Map<String, Integer> counts = new HashMap<>();
    int at = 0;
    while (at < text.length()) {
      int equals = text.indexOf('=', at);
      int end = text.indexOf(';', equals);
      String key = text.substring(at, equals).toUpperCase(Locale.ROOT);
      counts.merge(key, digits(text, equals + 1, end), Integer::sum);
      at = end + 1;
    }
    return counts;
  }

  static int digits(String text, int from, int to) {
    int sum = 0;
    for (int i = from; i < to; i++) {
      char c = text.charAt(i);
      if (Character.isDigit(c)) {
        sum += Character.digit(c, 10);
      } else if (Character.isLetter(c)) {
        sum += 10;
      }
    }
    return sum;
  }

  int round() {
    List<String> keys = new ArrayList<>();
    for (int i = 0; i < 50; i++) {
      keys.addAll(parse(record(40)).keySet());
    }
    keys.sort((a, b) -> a.length() == b.length() ? a.compareTo(b) : a.length() - b.length());
    return String.join(",", keys).hashCode();
  }

  public static void main(String[] arguments) throws Exception {
    Program program = new Program(arguments);
    Strings strings = new Strings();
    int sum = 0;
    for (int i = 0; i < 200; i++) {
      sum += strings.round();
    }
    program.warm();
    for (int i = 0; program.goesOn(i, program.number("rounds", 1000)); i++) {
      sum += strings.round();
    }
    program.done("{\"sum\":" + sum + "}");
  }
}
