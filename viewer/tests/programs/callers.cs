// Methods with known callers: mcs -out:callers.exe callers.cs && mono --jitmap callers.exe [CPU_SECONDS=2]
// Leaf is called through InA, InB and InC, which give it 1 : 2 : 3 parts of its work. Prints
//   {"pid":…, "chains":{"Leaf":["Leaf;InA;CallerA;Middle;Main", …]}}
using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;

static class Callers {
    const MethodImplOptions Apart = MethodImplOptions.NoInlining;

    [MethodImpl(Apart)]
    static int Leaf(int n) {
        int s = 0;
        for (int i = 0; i < n; i++) {
            s += i & 7;
            s ^= s << 1;
        }
        return s;
    }

    [MethodImpl(Apart)] static int InA(int n) { return Leaf(n) + 1; }
    [MethodImpl(Apart)] static int InB(int n) { return Leaf(n) + 1; }
    [MethodImpl(Apart)] static int InC(int n) { return Leaf(n) + 1; }
    [MethodImpl(Apart)] static int CallerA(int n) { return InA(n) + 1; }
    [MethodImpl(Apart)] static int CallerB(int n) { return InB(2 * n) + 1; }
    [MethodImpl(Apart)] static int CallerC(int n) { return InC(3 * n) + 1; }
    [MethodImpl(Apart)] static int Middle(int n) { return CallerA(n) + CallerB(n) + CallerC(n); }

    static void Main(string[] arguments) {
        double seconds = arguments.Length > 0 ? double.Parse(arguments[0]) : 2;
        var self = Process.GetCurrentProcess();
        while (self.TotalProcessorTime.TotalSeconds < seconds) {
            // Rounds of equal length can keep in step with the samples.
            for (int i = 0; i < 10; i++) Middle(60000 + 10007 * i);
            self.Refresh();
        }
        string chains = "";
        foreach (string one in new[] { "A", "B", "C" })
            chains += (chains == "" ? "" : ",") + "\"Leaf;In" + one + ";Caller" + one + ";Middle;Main\"";
        Console.WriteLine("{\"pid\":" + self.Id + ",\"chains\":{\"Leaf\":[" + chains + "]}}");
    }
}
