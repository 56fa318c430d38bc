package programs;

/** A life of Churn: defined anew under other digits. */
public final class Alpha00000 extends Churn.Body {
  static int alpha(int x, int n) {
    while (n-- > 0) { /* 50 times: */ x = x * 5 ^ n; }
    return x;
  }

  @Override
  public int run(int x, int n) {
    return alpha(x, n);
  }

  @Override
  public int adjust(int x) {
    return x * 5;
  }
}
