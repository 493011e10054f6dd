// Faults that are exceptions, code that is compiled while it runs, threads that stop for the collector, a stack that overflows.
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.LongStream;

public class Main {
    static class Box {
        int value;
    }

    static int deep(int depth) {
        return deep(depth + 1) + 1;
    }

    public static void main(String[] arguments) throws Exception {
        Box box = arguments.length > 5 ? new Box() : null;
        int caught = 0;
        for (int i = 0; i < 20000; i++) {
            try {
                caught += box.value;
            } catch (NullPointerException error) {
                caught++;
            }
        }
        System.out.println(caught);
        Map<Integer, String> words = new TreeMap<>();
        for (int i = 0; i < 100000; i++) {
            words.put(i * 7 % 1001, "word " + i);
        }
        System.out.println(words.size());
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> LongStream.range(0, 2000000).sum());
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println(LongStream.range(0, 1000000).parallel().sum());
        try {
            deep(0);
        } catch (StackOverflowError error) {
            System.out.println("too deep");
        }
        System.gc();
        System.exit(7);
    }
}
