package programs;

/** A life of Churn: defined anew under other digits. */
public final class Gamma00000 extends Churn.Body {
  static int gamma(int x, int n) {
    while (n-- > 0) { /* 50 times: */ x = x * 9 ^ n; }
    return x;
  }

  @Override
  public int run(int x, int n) {
    return gamma(x, n);
  }

  @Override
  public int adjust(int x) {
    return x * 9;
  }
}
