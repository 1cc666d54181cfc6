// SPDX-License-Identifier: MIT
//
// Java guest: hot loops for both compilers, null pointer exceptions (SIGSEGV inside HotSpot), stack
// overflow, garbage collection under threads, reflection, and an uncaught exception at the end.
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;

public class Work {
    static class Node {
        Node next;
        int value;

        Node(Node next, int value) {
            this.next = next;
            this.value = value;
        }
    }

    interface Shape {
        double area();
    }

    static long hot(int rounds) {
        long sum = 0;
        for (int i = 0; i < rounds; i++)
            sum = sum * 31 + (i ^ (i >>> 3));
        return sum;
    }

    static int valueOf(Node node) {
        return node.value;
    }

    static int nullPointers(int rounds) {
        int caught = 0;
        for (int i = 0; i < rounds; i++) {
            try {
                caught += valueOf(i % 100 == 99 ? null : new Node(null, 0));
            } catch (NullPointerException error) {
                caught++;
            }
        }
        return caught;
    }

    static int overflow(int depth) {
        return overflow(depth + 1) + 1;
    }

    static long collect(int seed) {
        List<byte[]> kept = new ArrayList<>();
        long sum = 0;
        for (int i = 0; i < 20000; i++) {
            byte[] block = new byte[(i * 37 + seed) % 2000];
            sum += block.length;
            if (i % 50 == 0)
                kept.add(block);
        }
        return sum + kept.size();
    }

    static void shapes() {
        Shape[] shapes = new Shape[3];
        shapes[0] = () -> 1.5;
        shapes[1] = () -> 2.25;
        shapes[2] = new Shape() {
            public double area() {
                return 4;
            }
        };
        double total = 0;
        for (int i = 0; i < 300000; i++)
            total += shapes[i % 3].area();
        System.out.println("shapes " + total);
    }

    static void threads() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        AtomicLong counter = new AtomicLong();
        List<Future<Long>> answers = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            final int seed = i;
            Callable<Long> task = () -> {
                for (int n = 0; n < 10000; n++)
                    counter.incrementAndGet();
                return collect(seed);
            };
            answers.add(pool.submit(task));
        }
        for (Future<Long> answer : answers)
            System.out.println("task " + answer.get());
        pool.shutdown();
        System.out.println("counter " + counter.get());
    }

    static synchronized void strings() {
        TreeMap<String, Integer> counts = new TreeMap<>();
        for (int i = 0; i < 50000; i++)
            counts.merge("key" + i % 17, 1, Integer::sum);
        System.out.println("strings " + counts);
    }

    public static void main(String[] arguments) throws Exception {
        System.out.println("hot " + hot(20000000));
        System.out.println("nulls " + nullPointers(200000));
        try {
            overflow(0);
        } catch (StackOverflowError error) {
            System.out.println("stack overflow");
        }
        try {
            System.out.println(1 / Integer.parseInt("0"));
        } catch (ArithmeticException error) {
            System.out.println(error.getMessage());
        }
        shapes();
        strings();
        threads();
        System.gc();
        System.out.println(Work.class.getDeclaredMethod("hot", int.class).invoke(null, 10));
        throw new IllegalStateException("the end");
    }
}
