package programs;

/** Of Churn: what stays. */
public final class Steady extends Churn.Body {
  static int steady(int x, int n) {
    while (n-- > 0) { /* 50 times: */ x = x * 11 ^ n; }
    return x;
  }

  @Override
  public int run(int x, int n) {
    return steady(x, n);
  }
}
