package programs;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.IntUnaryOperator;

/**
 * Deep inlining, megamorphic calls, lambdas, method handles, locks and exceptions. {@code --rounds
 * N}
 */
final class Inlining {
  interface Shape {
    int area(int scale);
  }

  static final class Square implements Shape {
    @Override
    public int area(int scale) {
      return scale * scale;
    }
  }

  static final class Triangle implements Shape {
    @Override
    public int area(int scale) {
      return scale * scale / 2;
    }
  }

  static final class Circle implements Shape {
    @Override
    public int area(int scale) {
      return (int) (3.14159 * scale * scale);
    }
  }

  static final class Ellipse implements Shape {
    private final int[] axes = {3, 5, 7};

    @Override
    public int area(int scale) {
      return axes[scale % 3] * axes[(scale + 1) % 3];
    }
  }

  static final class Hexagon implements Shape {
    private int asked;

    @Override
    public synchronized int area(int scale) {
      asked++;
      return scale * 6 + asked % 7;
    }
  }

  private final List<Shape> shapes = new ArrayList<>();
  private final List<IntUnaryOperator> operators = new ArrayList<>();
  private final MethodHandle handle;
  private int failures;

  Inlining() throws ReflectiveOperationException {
    Collections.addAll(shapes, new Square(), new Triangle(), new Circle(), new Ellipse());
    shapes.add(new Hexagon());
    for (int i = 1; i < 6; i++) {
      int add = i;
      operators.add(x -> x + add);
    }
    operators.add(x -> x * 31);
    operators.add(Integer::reverse);
    MethodType type = MethodType.methodType(int.class, int.class);
    MethodHandle plain = MethodHandles.lookup().findStatic(Inlining.class, "depth1", type);
    handle = MethodHandles.filterReturnValue(plain, plain);
  }

  static int depth1(int x) {
    return depth2(x) + 1;
  }

  static int depth2(int x) {
    return depth3(x ^ 5) + depth3(x);
  }

  static int depth3(int x) {
    return x < 0 ? depth4(-x) : depth4(x);
  }

  static int depth4(int x) {
    return depth5(x) + depth6(x);
  }

  static int depth5(int x) {
    return depth6(x) / (x | 1);
  }

  static int depth6(int x) {
    return x % 1000 * 7;
  }

  int megamorphic(int scale) {
    int sum = 0;
    for (Shape shape : shapes) {
      sum += shape.area(scale);
    }
    return sum;
  }

  int lambdas(int x) {
    for (IntUnaryOperator operator : operators) {
      x = operator.applyAsInt(x);
    }
    return x;
  }

  int failing(int x) {
    try {
      return 100 / (x % 5);
    } catch (ArithmeticException e) {
      failures++;
      return 0;
    }
  }

  int round(int rounds) throws Throwable {
    int sum = 0;
    for (int i = 0; i < rounds; i++) {
      sum += depth1(i) + megamorphic(i % 100) + lambdas(i) + failing(i);
      sum += (int) handle.invokeExact(i);
    }
    return sum;
  }

  public static void main(String[] arguments) throws Throwable {
    Program program = new Program(arguments);
    Inlining inlining = new Inlining();
    int sum = inlining.round(20_000);
    program.warm();
    for (int i = 0; program.goesOn(i, program.number("rounds", 100)); i++) {
      sum += inlining.round(20_000);
    }
    program.done("{\"sum\":" + sum + ", \"failures\":" + inlining.failures + "}");
  }
}
