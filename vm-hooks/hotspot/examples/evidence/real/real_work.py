import re, random
class Node(object):
    def __init__(self, key, left=None, right=None):
        self.key, self.left, self.right = key, left, right
def insert(n, key):
    if n is None: return Node(key)
    if key < n.key: n.left = insert(n.left, key)
    else: n.right = insert(n.right, key)
    return n
def walk(n):
    return 0 if n is None else 1 + walk(n.left) + walk(n.right)
words = ["w%d" % (i * 7919 % 1000) for i in range(3000)]
while True:
    d = {}
    for w in words: d[w] = d.get(w, 0) + len(w)
    s = ",".join("%s=%d" % kv for kv in sorted(d.items()))
    re.findall(r"w(\d+)=(\d+)", s)
    t = None
    for i in range(2000): t = insert(t, random.random())
    walk(t)
    sum([x * x % 7 for x in range(5000)])
