// The program of the snapshots: functions of all tiers, with names of all kinds.
'use strict';

function numeric(n) {
  let sum = 0;
  for (let i = 0; i < n; i++) sum = (sum + i * i) % 1000003;
  return sum;
}

const inner = (x) => x * 2 + 1;

function withInlined(n) {
  let sum = 0;
  for (let i = 0; i < n; i++) sum += inner(i);
  return sum;
}

class Shape {
  constructor(side) {
    this.side = side;
  }
  area() {
    return this.side * this.side;
  }
  static twice(shape) {
    return shape.area() * 2;
  }
  get ['computed' + 1]() {
    return this.side;
  }
  #hidden() {
    return -this.side;
  }
  shown() {
    return this.#hidden();
  }
}

class Circle extends Shape {
  area() {
    return 3 * this.side;
  }
}

function polymorphic(shapes) {
  let sum = 0;
  for (const shape of shapes) sum += Shape.twice(shape) + shape.computed1 + shape.shown();
  return sum;
}

function größe(текст) {
  return текст.length;
}

function expressions(texts) {
  return texts.filter((text) => /^a+(b|c)*d?$/.test(text)).length;
}

function* generator(n) {
  for (let i = 0; i < n; i++) yield i;
}

const object = {
  method(x) {
    return x + 1;
  },
  assigned: function (x) {
    return x + 2;
  },
};

const made = Array.from({ length: 40 }, (_, i) => new Function('x', `return x + ${i};`));

function recursive(n) {
  return n < 2 ? n : recursive(n - 1) + recursive(n - 2);
}

const shapes = Array.from({ length: 20 }, (_, i) => (i % 2 ? new Shape(i) : new Circle(i)));
const texts = ['aaab', 'abcbcd', 'x', 'aad'];

function round() {
  let sum = numeric(2000) + withInlined(2000) + polymorphic(shapes) + recursive(12);
  sum += größe('größe') + expressions(texts);
  for (const i of generator(20)) sum += object.method(i) + object.assigned(i);
  for (const each of made) sum += each(sum % 7);
  return sum;
}

const end = Date.now() + 1500;
while (Date.now() < end) round();
setTimeout(() => {
  require('fs').writeSync(1, 'ready\n');
  setInterval(() => {}, 1000);
}, 300);
