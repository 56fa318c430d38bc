// Most of the time is spent in one method of known name:
// mcs -out:dominant.exe dominant.cs && mono --jitmap dominant.exe [CPU_SECONDS=2]
using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;

static class Program {
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Dominant(int n) {
        int x = 1;
        for (int i = 0; i < n; i++) x = unchecked(x * 5 + i);
        return x;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Minor(int n) {
        int x = 1;
        for (int i = 0; i < n; i++) x = unchecked(x * 3 + i);
        return x;
    }

    static void Main(string[] arguments) {
        double seconds = arguments.Length > 0 ? double.Parse(arguments[0]) : 2;
        var self = Process.GetCurrentProcess();
        Stopwatch dominant = new Stopwatch(), minor = new Stopwatch();
        int sum = 0;
        while (self.TotalProcessorTime.TotalSeconds < seconds) {
            self.Refresh();
            dominant.Start();
            sum += Dominant(9000000);
            dominant.Stop();
            minor.Start();
            sum += Minor(1000000);
            minor.Stop();
        }
        Console.WriteLine("{{\"pid\":{0},\"dominant\":{1},\"minor\":{2},\"odd\":{3}}}",
            self.Id, dominant.Elapsed.TotalSeconds,
            minor.Elapsed.TotalSeconds, sum & 1);
    }
}
