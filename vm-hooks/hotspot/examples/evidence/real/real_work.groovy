class P { int a; String s; int twice() { a * 2 } }
def fib(n) { n < 2 ? n : fib(n - 1) + fib(n - 2) }
while (true) {
  def l = (1..3000).collect { new P(a: it % 97, s: "x" + (it % 31)) }
  def m = l.groupBy { it.s }.collectEntries { k, v -> [k, v.sum { it.twice() }] }
  def t = l.findAll { it.a > 40 }.sort { x, y -> x.a <=> y.a ?: x.s <=> y.s }
  def b = new StringBuilder(); m.each { k, v -> b << k << "=" << v << ";" }
  b.toString().split(";").collect { it.tokenize("=") }.size()
  fib(17)
}
