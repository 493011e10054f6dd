// Exceptions, garbage, threads.
import core.thread;
import std.algorithm, std.array, std.conv, std.stdio;

int main()
{
    int[] numbers;
    foreach (i; 0 .. 1000)
        numbers ~= i * 7 % 13;
    writeln(numbers.sort.uniq.array);
    try
        writeln(to!int("abc"));
    catch (Exception error)
        writeln("caught ", error.msg);
    try
        writeln(numbers[numbers.length]);
    catch (Error error)
        writeln("out of range");
    int[4] sums;
    auto threads = new Thread[4];
    foreach (i; 0 .. 4)
        threads[i] = (int i) { return new Thread({
            foreach (k; 0 .. 10000)
                sums[i] += [k, k].sum % 7;
        }); }(i);
    threads.each!(t => t.start());
    threads.each!(t => t.join());
    writeln(sums);
    return 2;
}
