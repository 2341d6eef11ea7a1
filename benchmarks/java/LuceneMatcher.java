// Lucene's monitor over the same filters and events as Branchline: one thread, from JSON bytes.
//
//   java -cp JARS LuceneMatcher.java FILTERS EVENTS
//
// FILTERS has a filter a line, as a list of constraints: {"path": ..., "op": "equal" | "prefix" | "suffix" |
// "contains", "text": ...} or {"path": ..., "op": "range", "low": ..., "high": ...}, both ends included or absent.
// EVENTS has an event a line. Each line of standard input is a command, answered as RulerMatcher does.
//
// An event becomes a document with a term for each text and a point for each number. The monitor's presearcher
// files each query under its rarest-looking terms; what has only ranges it must try for every document.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.lucene.analysis.core.KeywordAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.DoublePoint;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.Term;
import org.apache.lucene.monitor.Monitor;
import org.apache.lucene.monitor.MonitorQuery;
import org.apache.lucene.monitor.MultiMatchingQueries;
import org.apache.lucene.monitor.MultipassTermFilteredPresearcher;
import org.apache.lucene.monitor.QueryMatch;
import org.apache.lucene.monitor.RegexpQueryHandler;
import org.apache.lucene.monitor.TermFilteredPresearcher;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.PrefixQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.RegexpQuery;
import org.apache.lucene.search.TermQuery;

public class LuceneMatcher {
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static final ObjectMapper JSON = new ObjectMapper();
    static final int BATCH = 100;
    static final int REGISTERED = 5_000;
    static final int PASSES = 2;

    public static void main(String[] arguments) throws Exception {
        List<byte[]> events = lines(arguments[1]);
        long before = heap();
        long started = System.nanoTime();
        Monitor monitor = new Monitor(new KeywordAnalyzer(), new MultipassTermFilteredPresearcher(PASSES, 0f,
                TermFilteredPresearcher.DEFAULT_WEIGHTOR, List.of(new RegexpQueryHandler()), Collections.emptySet()));
        int filters = 0;
        try (BufferedReader lines = Files.newBufferedReader(Path.of(arguments[0]))) {
            List<MonitorQuery> queries = new ArrayList<>();
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                queries.add(new MonitorQuery(Integer.toString(filters++), query(JSON.readTree(line))));
                if (queries.size() == REGISTERED) {
                    monitor.register(queries);
                    queries.clear();
                }
            }
            monitor.register(queries);
        }
        long took = System.nanoTime() - started;
        System.out.printf("{\"filters\": %d, \"events\": %d, \"build_ns\": %d, \"heap_bytes\": %d}%n",
                filters, events.size(), took, heap() - before);

        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "check" -> run(monitor, events, 1, true);
                case "pass" -> run(monitor, events, Integer.parseInt(words[1]), false);
                case "heap" -> System.out.printf("{\"heap_bytes\": %d}%n", heap());
                default -> throw new IllegalArgumentException(line);
            }
        }
        monitor.close();
    }

    static void run(Monitor monitor, List<byte[]> events, int times, boolean checked) throws IOException {
        long pairs = 0;
        long sum = 0;
        long cpu = THREADS.getCurrentThreadCpuTime();
        long started = System.nanoTime();
        for (int time = 0; time < times; time++) {
            for (int first = 0; first < events.size(); first += BATCH) {
                Document[] batch = new Document[Math.min(BATCH, events.size() - first)];
                for (int place = 0; place < batch.length; place++) {
                    batch[place] = document(JSON.readTree(events.get(first + place)));
                }
                MultiMatchingQueries<QueryMatch> found = monitor.match(batch, QueryMatch.SIMPLE_MATCHER);
                for (int place = 0; place < batch.length; place++) {
                    pairs += found.getMatchCount(place);
                    if (checked) {
                        for (QueryMatch match : found.getMatches(place)) {
                            sum += mixed((long) (first + place) << 32 | Integer.parseInt(match.getQueryId()));
                        }
                    }
                }
            }
        }
        long took = System.nanoTime() - started;
        if (checked) {
            System.out.printf("{\"matches\": %d, \"checksum\": \"%016x\"}%n", pairs, sum);
        } else {
            cpu = THREADS.getCurrentThreadCpuTime() - cpu;
            System.out.printf("{\"ns\": %d, \"cpu_ns\": %d, \"matches\": %d}%n", took, cpu, pairs);
        }
    }

    static Query query(JsonNode constraints) {
        if (constraints.size() == 1) {
            return constraint(constraints.get(0));
        }
        BooleanQuery.Builder all = new BooleanQuery.Builder();
        for (JsonNode each : constraints) {
            all.add(constraint(each), BooleanClause.Occur.FILTER);
        }
        return all.build();
    }

    static Query constraint(JsonNode node) {
        String path = node.get("path").asText();
        String text = node.path("text").asText();
        return switch (node.get("op").asText()) {
            case "equal" -> new TermQuery(new Term(path, text));
            case "prefix" -> new PrefixQuery(new Term(path, text));
            case "suffix" -> new RegexpQuery(new Term(path, ".*" + text));
            case "contains" -> new RegexpQuery(new Term(path, ".*" + text + ".*"));
            case "range" -> DoublePoint.newRangeQuery(path,
                    node.path("low").asDouble(Double.NEGATIVE_INFINITY),
                    node.path("high").asDouble(Double.POSITIVE_INFINITY));
            default -> throw new IllegalArgumentException(node.toString());
        };
    }

    static Document document(JsonNode event) {
        Document made = new Document();
        add(made, "", event);
        return made;
    }

    // As deep as the events of the benchmark, which are made for it.
    static void add(Document made, String path, JsonNode value) {
        if (value.isObject()) {
            for (Map.Entry<String, JsonNode> member : value.properties()) {
                add(made, path.isEmpty() ? member.getKey() : path + "." + member.getKey(), member.getValue());
            }
        } else if (value.isArray()) {
            for (JsonNode element : value) {
                add(made, path, element);
            }
        } else if (value.isNumber()) {
            made.add(new DoublePoint(path, value.asDouble()));
        } else if (value.isTextual()) {
            made.add(new StringField(path, value.asText(), Field.Store.NO));
        }
    }

    static List<byte[]> lines(String file) throws IOException {
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
