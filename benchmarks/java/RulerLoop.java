// What a team would write by hand: a Kafka consumer loop around event-ruler.
//
//   java -cp JARS RulerLoop.java BOOTSTRAP INPUT OUT FILTERS SUBSCRIBERS MODE THREADS
//
// FILTERS has a pattern a line; that of line i is of subscriber i modulo SUBSCRIBERS, whose topic is OUT and its
// number. Each thread has a consumer with its share of INPUT's partitions and a producer. After every poll what
// matched is flushed and offsets are committed: in MODE exactly-once both in a transaction. A subscriber gets an
// event once, however many of its filters match.
//
// Each line of standard input is a command, answered by a line of JSON:
//   work N W O,O,...  handle N events from these offsets on, one for each partition; of the first W no time is taken
//   follow O,O,...    handle whatever comes from these offsets on, until the next line, `stop`

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import software.amazon.event.ruler.GenericMachine;

public class RulerLoop {
    static final String POLLED = "5000";
    static final Duration POLL = Duration.ofMillis(100);

    final String bootstrap;
    final String input;
    final String[] out;
    final boolean transactional;
    final GenericMachine<Integer> machine = GenericMachine.<Integer>builder().withStructuredMatching(true).build();
    final AtomicLong handled = new AtomicLong();
    final AtomicLong delivered = new AtomicLong();
    final AtomicLong warm = new AtomicLong();
    volatile long wanted;
    volatile long unmeasured;
    volatile long begun;
    volatile boolean stopped;
    volatile Throwable failed;

    RulerLoop(String bootstrap, String input, String out, int subscribers, boolean transactional) {
        this.bootstrap = bootstrap;
        this.input = input;
        this.transactional = transactional;
        this.out = new String[subscribers];
        for (int number = 0; number < subscribers; number++) {
            this.out[number] = out + number;
        }
    }

    public static void main(String[] arguments) throws Exception {
        RulerLoop loop = new RulerLoop(arguments[0], arguments[1], arguments[2], Integer.parseInt(arguments[4]),
                arguments[5].equals("exactly-once"));
        int filters = 0;
        try (BufferedReader patterns = Files.newBufferedReader(Path.of(arguments[3]))) {
            for (String line = patterns.readLine(); line != null; line = patterns.readLine()) {
                loop.machine.addRule(filters++, line);
            }
        }
        List<Worker> workers = new ArrayList<>();
        for (int number = 0; number < Integer.parseInt(arguments[6]); number++) {
            workers.add(loop.new Worker(number));
        }
        System.out.printf("{\"filters\": %d}%n", filters);

        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("work")) {
                loop.run(workers, Long.parseLong(words[1]), Long.parseLong(words[2]), words[3], null);
            } else {
                loop.run(workers, Long.MAX_VALUE, 0, words[1], commands);
            }
        }
        workers.forEach(Worker::close);
    }

    void run(List<Worker> workers, long wanted, long unmeasured, String offsets, BufferedReader commands)
            throws Exception {
        handled.set(0);
        delivered.set(0);
        this.wanted = wanted;
        this.unmeasured = unmeasured;
        begun = System.nanoTime();
        warm.set(0);
        stopped = false;
        failed = null;
        List<Thread> threads = new ArrayList<>();
        for (Worker worker : workers) {
            worker.place(offsets.split(","), workers.size());
            threads.add(new Thread(worker));
        }
        threads.forEach(Thread::start);
        if (commands != null) {
            commands.readLine();
            stopped = true;
        }
        for (Thread thread : threads) {
            thread.join();
        }
        if (failed != null) {
            failed.printStackTrace();
            System.exit(1);
        }
        System.out.printf("{\"events\": %d, \"timed\": %d, \"ns\": %d, \"delivered\": %d}%n",
                handled.get(), handled.get() - warm.get(), System.nanoTime() - begun, delivered.get());
    }

    class Worker implements Runnable {
        final int number;
        final KafkaConsumer<byte[], byte[]> consumer;
        final KafkaProducer<byte[], byte[]> producer;

        Worker(int number) {
            this.number = number;
            Properties reading = new Properties();
            reading.put("bootstrap.servers", bootstrap);
            reading.put("group.id", "ruler-loop");
            reading.put("enable.auto.commit", "false");
            reading.put("isolation.level", "read_committed");
            reading.put("max.poll.records", POLLED);
            reading.put("max.partition.fetch.bytes", Integer.toString(4 << 20));
            consumer = new KafkaConsumer<>(reading, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            Properties writing = new Properties();
            writing.put("bootstrap.servers", bootstrap);
            writing.put("acks", "all");
            // Each poll ends with a flush, so that nothing waits for longer than its own poll.
            writing.put("linger.ms", "20");
            writing.put("batch.size", Integer.toString(64 << 10));
            writing.put("buffer.memory", Integer.toString(128 << 20));
            if (transactional) {
                writing.put("transactional.id", input + "-ruler-loop-" + number);
            }
            producer = new KafkaProducer<>(writing, new ByteArraySerializer(), new ByteArraySerializer());
            if (transactional) {
                producer.initTransactions();
            }
            for (String topic : out) {
                producer.partitionsFor(topic);
            }
        }

        void place(String[] offsets, int workers) {
            List<TopicPartition> mine = new ArrayList<>();
            for (int partition = number; partition < offsets.length; partition += workers) {
                mine.add(new TopicPartition(input, partition));
            }
            consumer.assign(mine);
            for (TopicPartition each : mine) {
                consumer.seek(each, Long.parseLong(offsets[each.partition()]));
            }
        }

        @Override
        public void run() {
            try {
                while (!stopped && handled.get() < wanted) {
                    ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
                    if (!records.isEmpty()) {
                        handle(records);
                    }
                }
            } catch (Throwable error) {
                failed = error;
                stopped = true;
            }
        }

        void handle(ConsumerRecords<byte[], byte[]> records) throws Exception {
            if (transactional) {
                producer.beginTransaction();
            }
            Set<Integer> subscribers = new HashSet<>();
            long sent = 0;
            for (ConsumerRecord<byte[], byte[]> record : records) {
                subscribers.clear();
                for (int filter : machine.rulesForJSONEvent(new String(record.value(), StandardCharsets.UTF_8))) {
                    subscribers.add(filter % out.length);
                }
                for (int subscriber : subscribers) {
                    producer.send(new ProducerRecord<>(out[subscriber], null, null, record.key(), record.value(),
                            record.headers()));
                    sent++;
                }
            }
            if (transactional) {
                Map<TopicPartition, OffsetAndMetadata> places = new HashMap<>();
                for (TopicPartition each : records.partitions()) {
                    places.put(each, new OffsetAndMetadata(consumer.position(each)));
                }
                producer.sendOffsetsToTransaction(places, consumer.groupMetadata());
                producer.commitTransaction();
            } else {
                producer.flush();
                consumer.commitSync();
            }
            delivered.addAndGet(sent);
            long now = handled.addAndGet(records.count());
            if (now >= unmeasured && warm.compareAndSet(0, now)) {
                begun = System.nanoTime();
            }
        }

        void close() {
            consumer.close();
            producer.close();
        }
    }
}
