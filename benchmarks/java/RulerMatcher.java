// AWS event-ruler over the same filters and events as Branchline: one thread, from JSON bytes.
//
//   java -cp JARS RulerMatcher.java FILTERS EVENTS
//
// FILTERS has a pattern a line, EVENTS an event a line. Then each line of standard input is a command, and is
// answered by a line of JSON:
//   check     matches every event once: how many pairs match, and a checksum over them
//   pass N    matches every event N times: nanoseconds, those that the thread ran, and how many pairs match
//   heap      bytes that are in use after a collection

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import software.amazon.event.ruler.GenericMachine;

public class RulerMatcher {
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    public static void main(String[] arguments) throws Exception {
        List<byte[]> events = lines(arguments[1]);
        long before = heap();
        long started = System.nanoTime();
        GenericMachine<Integer> machine = GenericMachine.<Integer>builder().withStructuredMatching(true).build();
        int filters = 0;
        try (BufferedReader patterns = Files.newBufferedReader(Path.of(arguments[0]))) {
            for (String line = patterns.readLine(); line != null; line = patterns.readLine()) {
                machine.addRule(filters++, line);
            }
        }
        long took = System.nanoTime() - started;
        System.out.printf("{\"filters\": %d, \"events\": %d, \"build_ns\": %d, \"heap_bytes\": %d}%n",
                filters, events.size(), took, heap() - before);

        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "check" -> check(machine, events);
                case "pass" -> pass(machine, events, Integer.parseInt(words[1]));
                case "heap" -> System.out.printf("{\"heap_bytes\": %d}%n", heap());
                default -> throw new IllegalArgumentException(line);
            }
        }
    }

    static void check(GenericMachine<Integer> machine, List<byte[]> events) throws Exception {
        long pairs = 0;
        long sum = 0;
        for (int number = 0; number < events.size(); number++) {
            String event = new String(events.get(number), StandardCharsets.UTF_8);
            for (int filter : machine.rulesForJSONEvent(event)) {
                pairs++;
                sum += mixed((long) number << 32 | filter);
            }
        }
        System.out.printf("{\"matches\": %d, \"checksum\": \"%016x\"}%n", pairs, sum);
    }

    static void pass(GenericMachine<Integer> machine, List<byte[]> events, int times) throws Exception {
        long pairs = 0;
        long cpu = THREADS.getCurrentThreadCpuTime();
        long started = System.nanoTime();
        for (int time = 0; time < times; time++) {
            for (byte[] event : events) {
                pairs += machine.rulesForJSONEvent(new String(event, StandardCharsets.UTF_8)).size();
            }
        }
        long took = System.nanoTime() - started;
        cpu = THREADS.getCurrentThreadCpuTime() - cpu;
        System.out.printf("{\"ns\": %d, \"cpu_ns\": %d, \"matches\": %d}%n", took, cpu, pairs);
    }

    static List<byte[]> lines(String file) throws Exception {
        List<byte[]> found = new ArrayList<>();
        try (BufferedReader reader = Files.newBufferedReader(Path.of(file))) {
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                found.add(line.getBytes(StandardCharsets.UTF_8));
            }
        }
        return found;
    }

    static long heap() {
        System.gc();
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }

    // The finalizer of splitmix64: sums of it tell sets of pairs apart, in whatever order they come.
    static long mixed(long value) {
        value = (value ^ value >>> 30) * 0xbf58476d1ce4e5b9L;
        value = (value ^ value >>> 27) * 0x94d049bb133111ebL;
        return value ^ value >>> 31;
    }
}
