//! Methods of the fictitious Java program: names, callers and compilation times.

use vmscope_records::{
    BytecodePc, Chain, ChainFrame, LineEntry, Method, MethodKey, Position, TimeNs,
};

/// Per method: name, relative samples as a leaf in Java code, time of C1 and C2 code in ms (`-`:
/// never), bytes of bytecodes, first line, callers (none: a thread starts here). Methods without C2
/// code are trivial, so C1 omits profiling.
const METHODS: &str = "
com.acme.Main.main                   4     -     -    64   20
com.acme.Main.load                  20   700     -    84   35  Main.main
com.acme.Main.report                30  2400     -    70   61  Main.main
com.acme.Main.tick                  60   900  3900    42   80  Main.main
com.acme.config.Parser.parse       160   900  2400    98   14  Main.load
com.acme.config.Parser.token       260   800  1900   140   44  Parser.parse
com.acme.config.Parser.string      120  1220  2750    77   90  Parser.token Main.report
com.acme.engine.Worker.run           8  1600     -    56   18  
com.acme.engine.Worker.take         20  1100  4600    49   40  Worker.run
com.acme.engine.Worker.execute      40  1150  3300    70   58  Worker.run
com.acme.engine.Worker.done         12  1500     -    35   77  Worker.run
com.acme.orders.OrderBook.match    420  1000  2100    90   41  Worker.execute
com.acme.orders.OrderBook.add       80  1050  2700    63   60  Worker.execute
com.acme.orders.OrderBook.cancel    30  1400  5200    56   74  Worker.execute
com.acme.orders.OrderBook.best      40  1020  2300    28   92  OrderBook.match OrderBook.cancel
com.acme.orders.OrderBook.depth     18  1800     -    49  110  Limits.exposure
com.acme.orders.PriceLevel.append   35  1080  3000    35   22  OrderBook.add
com.acme.orders.PriceLevel.peek     60  1010  2200    22   36  OrderBook.match OrderBook.best
com.acme.orders.PriceLevel.remove   30  1300  4200    35   48  OrderBook.cancel OrderBook.match
com.acme.orders.PriceLevel.quantity 10  1900     -     5   60  OrderBook.depth
com.acme.orders.Order.compareTo     40  1060  2800    28   31  OrderBook.add
com.acme.orders.Order.fill          35  1030  2500    35   45  OrderBook.match
com.acme.orders.Order.isDone         8  1040     -    10   58  OrderBook.match
com.acme.risk.Limits.check          45  1200  4000    42   19  Worker.execute
com.acme.risk.Limits.exposure       60  1250  3600    63   33  Limits.check
com.acme.risk.Limits.visit          70  1350  4400    44   52  Limits.exposure Limits.visit Limits.visit
com.acme.risk.Limits.round          14  2000     -    14   70  Limits.exposure
com.acme.net.Codec.decode           45  1120  3100    70   25  Worker.take
com.acme.net.Codec.encode           50  1550  3700    70   50  Worker.done
com.acme.net.Codec.putLong          25  1560  3800    21   81  Codec.encode
com.acme.net.Codec.getLong          25  1130  3200    21   88  Codec.decode
com.acme.net.Codec.checksum        170  1140  2900    41   96  Codec.decode Codec.encode
java.util.HashMap.get               20  1160  3400    22  556  OrderBook.cancel Limits.exposure
java.util.HashMap.getNode           75  1170  3500    70  568  HashMap.get
java.util.HashMap.putVal            30  1450  4800   120  627  OrderBook.add
java.util.HashMap.resize            12  7100     -   140  679  HashMap.putVal
java.util.HashMap.hash              10  1175     -    20  338  HashMap.get HashMap.putVal
java.util.ArrayDeque.addLast        20  1085  5000    35  296  PriceLevel.append
java.util.ArrayDeque.pollFirst      18  1420  5600    35  312  PriceLevel.remove
java.util.ArrayDeque.grow            4     -     -    91  150  ArrayDeque.addLast
";

/// C2's inlining, outermost first: each method with the calling bytecode, the last with the
/// executing one.
const INLINED: &str = "
OrderBook.match@6 PriceLevel.peek@1
OrderBook.match@6 PriceLevel.peek@17
OrderBook.match@22 OrderBook.best@7 PriceLevel.peek@17
OrderBook.match@22 OrderBook.best@14
OrderBook.match@35 Order.fill@7
OrderBook.match@39 Order.isDone@1
OrderBook.add@14 Order.compareTo@7
OrderBook.add@28 PriceLevel.append@7 ArrayDeque.addLast@14
Limits.exposure@14 HashMap.get@5 HashMap.getNode@18 HashMap.hash@7
Limits.exposure@14 HashMap.get@5 HashMap.getNode@34
Limits.exposure@14 HashMap.get@12
Limits.exposure@28 Limits.round@7
Codec.decode@14 Codec.getLong@7
Codec.encode@14 Codec.putLong@7
Parser.parse@14 Parser.token@21
";

/// Listings and lines (`pc:line`) of methods.
const LISTINGS: [(&str, &str, &str); 5] = [
    (
        "OrderBook.match",
        "0:41 5:43 14:44 21:45 33:47 38:48 45:49 50:43 88:52",
        "0 aload_0|1 getfield com/acme/orders/OrderBook.asks:Lcom/acme/orders/PriceLevel;\
         |4 astore_2|5 aload_2|6 invokevirtual com/acme/orders/PriceLevel.peek:()Lcom/acme/orders/Order;\
         |9 astore_3|10 aload_3|11 ifnull 88|14 aload_1|15 getfield com/acme/orders/Order.quantity:J\
         |18 lconst_0|19 lcmp|20 ifle 88|21 aload_0|22 invokevirtual com/acme/orders/OrderBook.best:()J\
         |25 aload_1|26 getfield com/acme/orders/Order.limit:J|29 lcmp|30 ifgt 88|33 aload_3|34 aload_1\
         |35 invokevirtual com/acme/orders/Order.fill:(Lcom/acme/orders/Order;)V|38 aload_3\
         |39 invokevirtual com/acme/orders/Order.isDone:()Z|42 ifeq 50|45 aload_2\
         |46 invokevirtual com/acme/orders/PriceLevel.remove:()Lcom/acme/orders/Order;|49 pop\
         |50 goto 5|88 aload_1|89 areturn",
    ),
    (
        "PriceLevel.peek",
        "0:36 7:37 9:39",
        "0 aload_0|1 getfield com/acme/orders/PriceLevel.size:I|4 ifne 9|7 aconst_null|8 areturn\
         |9 aload_0|10 getfield com/acme/orders/PriceLevel.orders:[Lcom/acme/orders/Order;|13 aload_0\
         |14 getfield com/acme/orders/PriceLevel.head:I|17 aaload|18 areturn",
    ),
    (
        "Codec.checksum",
        "0:96 2:97 4:98 9:99 24:98 30:101",
        "0 iconst_m1|1 istore_2|2 iconst_0|3 istore_3|4 iload_3|5 aload_1|6 arraylength\
         |7 if_icmpge 30|10 iload_2|11 bipush 8|13 iushr|14 getstatic com/acme/net/Codec.TABLE:[I\
         |17 iload_2|18 aload_1|19 iload_3|20 baload|21 ixor|22 sipush 255|25 iand|26 iaload|27 ixor\
         |28 istore_2|29 iinc 3, 1|32 goto 4|35 iload_2|36 iconst_m1|37 ixor|38 ireturn",
    ),
    (
        "HashMap.getNode",
        "0:568 13:570 24:572 40:575 60:580",
        "0 aload_0|1 getfield java/util/HashMap.table:[Ljava/util/HashMap$Node;|4 dup|5 astore_2\
         |6 ifnull 68|9 aload_2|10 arraylength|11 dup|12 istore_3|13 ifle 68|16 aload_2|17 iload_3\
         |18 invokestatic java/util/HashMap.hash:(Ljava/lang/Object;)I|21 iand|22 aaload|23 dup\
         |24 astore 4|26 ifnull 68|29 aload 4|31 getfield java/util/HashMap$Node.hash:I\
         |34 if_icmpne 52|37 aload 4|39 areturn|52 aload 4|54 getfield java/util/HashMap$Node.next:\
         Ljava/util/HashMap$Node;|57 dup|58 astore 4|60 ifnonnull 29|68 aconst_null|69 areturn",
    ),
    (
        "Limits.visit",
        "0:52 4:53 12:55 24:56 40:58",
        "0 aload_1|1 ifnull 40|4 aload_0|5 dup|6 getfield com/acme/risk/Limits.sum:J|9 aload_1\
         |10 getfield com/acme/risk/Node.value:J|13 ladd|14 putfield com/acme/risk/Limits.sum:J\
         |17 aload_0|18 aload_1|19 getfield com/acme/risk/Node.left:Lcom/acme/risk/Node;\
         |22 invokevirtual com/acme/risk/Limits.visit:(Lcom/acme/risk/Node;)V|25 aload_0|26 aload_1\
         |27 getfield com/acme/risk/Node.right:Lcom/acme/risk/Node;\
         |30 invokevirtual com/acme/risk/Limits.visit:(Lcom/acme/risk/Node;)V|33 return|40 return",
    ),
];

/// A method of the program.
#[derive(Clone, Debug)]
pub struct Java {
    /// `OrderBook.match`.
    pub short: String,
    pub class: String,
    pub name: String,
    pub weight: u64,
    pub c1_ms: Option<u64>,
    pub c2_ms: Option<u64>,
    pub bytes: u32,
    pub line: u32,
    /// Indices of methods.
    pub callers: Vec<usize>,
    /// Instructions with their bytecodes; may be empty.
    pub listing: Vec<(BytecodePc, String)>,
    pub lines: Vec<LineEntry>,
    /// Chains that C2 inlines, innermost first.
    pub inlined: Vec<Chain>,
    /// Whether the main thread executes the method.
    pub on_main: bool,
}

/// The program.
pub fn program() -> Vec<Java> {
    let rows: Vec<Vec<&str>> = (METHODS.trim().lines())
        .map(|row| row.split_whitespace().collect())
        .collect();
    let mut program: Vec<Java> = rows.iter().map(|row| method(row)).collect();
    let index = |program: &[Java], short: &str| {
        let found = program.iter().position(|method| method.short == short);
        found.unwrap_or_else(|| panic!("no method {short}"))
    };
    for (at, row) in rows.iter().enumerate() {
        program[at].callers = row[6..].iter().map(|name| index(&program, name)).collect();
    }
    for row in INLINED.trim().lines() {
        let mut chain: Chain = Vec::new();
        for step in row.split_whitespace() {
            let (short, pc) = step.split_once('@').unwrap();
            let method = key_of(index(&program, short));
            let position = Position::Bytecode(BytecodePc(pc.parse().unwrap()));
            chain.insert(0, ChainFrame { method, position });
        }
        let outermost = row.split_once('@').unwrap().0;
        let outermost = index(&program, outermost);
        program[outermost].inlined.push(chain);
    }
    program
}

fn method(row: &[&str]) -> Java {
    let (class, name) = row[0].rsplit_once('.').unwrap();
    let file = class.rsplit('.').next().unwrap();
    let short = format!("{file}.{name}");
    let number = |at: usize| row[at].parse::<u64>().ok();
    let line = u32::try_from(number(5).unwrap()).unwrap();
    let bytes = u32::try_from(number(4).unwrap()).unwrap();
    let listed = LISTINGS.iter().find(|(of, _, _)| *of == short);
    let entry = |from, line| LineEntry {
        from: BytecodePc(from),
        line,
    };
    let lines = match listed {
        Some((_, lines, _)) => (lines.split_whitespace())
            .map(|pair| {
                let (pc, line) = pair.split_once(':').unwrap();
                entry(pc.parse().unwrap(), line.parse().unwrap())
            })
            .collect(),
        None => (0..=bytes / 14).map(|n| entry(n * 14, line + n)).collect(),
    };
    let listing = listed.map_or("", |(_, _, listing)| listing);
    let instruction = |text: &str| {
        let (pc, text) = text.split_once(' ').unwrap();
        (BytecodePc(pc.parse().unwrap()), text.to_owned())
    };
    Java {
        on_main: matches!(file, "Main" | "Parser"),
        short,
        class: class.to_owned(),
        name: name.to_owned(),
        weight: number(1).unwrap(),
        c1_ms: number(2),
        c2_ms: number(3),
        bytes,
        line,
        callers: Vec::new(),
        listing: listing.split_terminator('|').map(instruction).collect(),
        lines,
        inlined: Vec::new(),
    }
}

/// The key of a method index.
pub fn key_of(index: usize) -> MethodKey {
    MethodKey(index as u64 + 1)
}

impl Java {
    /// Bytecodes that delimit its code pieces.
    pub fn pcs(&self) -> Vec<BytecodePc> {
        if self.listing.is_empty() {
            (0..self.bytes).step_by(7).map(BytecodePc).collect()
        } else {
            self.listing.iter().map(|(pc, _)| *pc).collect()
        }
    }

    /// The form of constituents' names.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.class, self.name)
    }

    pub fn record(&self, index: usize, time: TimeNs) -> Method {
        let file = self.class.rsplit('.').next().unwrap();
        Method {
            key: key_of(index),
            time,
            class: self.class.clone(),
            name: self.name.clone(),
            file: format!("{file}.java"),
            line: self.line,
            lines: self.lines.clone(),
            bytecodes: Vec::new(),
            listing: self.listing.clone(),
        }
    }
}
