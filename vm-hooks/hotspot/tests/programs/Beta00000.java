package programs;

/** A life of Churn: defined anew under other digits. */
public final class Beta00000 extends Churn.Body {
  static int beta(int x, int n) {
    while (n-- > 0) { /* 50 times: */ x = x * 7 ^ n; }
    return x;
  }

  @Override
  public int run(int x, int n) {
    return beta(x, n);
  }

  @Override
  public int adjust(int x) {
    return x * 7;
  }
}
