package io.headgate.kernel.state;

import io.headgate.kernel.rows.Bucket;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.SparkEnv;
import org.apache.spark.io.CompressionCodec;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.state.KeyStateEncoderSpec;
import org.apache.spark.sql.execution.streaming.state.LineageItem;
import org.apache.spark.sql.execution.streaming.state.PrefixKeyScanStateEncoderSpec;
import org.apache.spark.sql.execution.streaming.state.RecordType;
import org.apache.spark.sql.execution.streaming.state.RocksDBCheckpointMetadata;
import org.apache.spark.sql.execution.streaming.state.RocksDBKeyStateEncoder;
import org.apache.spark.sql.execution.streaming.state.RocksDBSstFile;
import org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogReader;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogReaderFactory;
import org.apache.spark.sql.execution.streaming.state.UnsafeRowDataEncoder;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import scala.Tuple3;
import scala.jdk.javaapi.CollectionConverters;

/**
 * One key of an operator in the files of its state, at any version they hold. Uses internals of Spark seen in 4.3.0.
 *
 * <p>Loading a version of a store, as Spark does, copies its files and replays every change since its newest snapshot. One key
 * needs neither: the newest change of it is looked for in the changelogs, newest first, and below them the snapshot is opened
 * where it lies, or from a copy if that is an object store. State files never change and are named by ids of their own, so that
 * what was found in one is remembered as long as this object is used. For one thread; nothing is written but into the scratch
 * folder.
 */
public final class KeyLookup {
  private static final String CODEC = "lz4";
  // A virtual column family stands before each key, as a number of its own.
  private static final int FAMILY = RocksDBStateStoreProvider.VIRTUAL_COL_FAMILY_PREFIX_BYTES();
  private static final StructType BUCKET = new StructType().add("value", DataTypes.IntegerType);
  private static final StructType BINARY = new StructType().add("value", DataTypes.BinaryType);

  // Keys are entries of their bucket's map.
  private static final StructType COMPOSITE = new StructType().add("key", BUCKET).add("userKey", BINARY);

  private final Path scratch;
  private final Configuration hadoop;
  private final String variable;
  private final Integer bucket;
  private final ByteBuffer stored;
  /** What the keys of further entries begin with in the store, and their length; null if there are none. */
  private final byte[] further;
  private final int furtherLength;
  private final UnsafeProjection composite = UnsafeProjection.create(COMPOSITE);
  private final RocksDBKeyStateEncoder encoder;
  private final UnsafeRowDataEncoder rows;
  private final Map<String, Changes> changes = new HashMap<>();
  private final Map<String, Map<ByteBuffer, Optional<byte[]>>> snapshots = new HashMap<>();

  /** What one changelog says: the versions it goes on from, and what became of entries of the key. */
  private record Changes(Map<Long, String> lineage, Map<ByteBuffer, Optional<byte[]>> entries) {}

  /**
   * @param variable what the operator calls its state
   * @param form says where state has a key
   * @param scratch a folder for what is unpacked and gone again before a call returns
   */
  KeyLookup(SparkSession spark, String variable, Form form, byte[] key, String scratch) {
    RocksDB.loadLibrary();
    this.scratch = Path.of(scratch);
    this.variable = variable;
    hadoop = spark.sparkContext().hadoopConfiguration();
    bucket = form.bucket(key);
    KeyStateEncoderSpec keys = new PrefixKeyScanStateEncoderSpec(COMPOSITE, 1);
    rows = new UnsafeRowDataEncoder(keys, BINARY);
    encoder = keys.toEncoder(rows, true);
    stored = stored(form.entry(key));
    byte[] start = form.further(key);
    if (start == null) {
      further = null;
      furtherLength = 0;
    } else {
      // Whatever has the same length has the same bytes before it.
      int length = form.furtherLength(key);
      ByteBuffer any = stored(Arrays.copyOf(start, length));
      furtherLength = any.capacity();
      further = Arrays.copyOf(any.array(), furtherLength - (length + 7) / 8 * 8 + start.length);
    }
  }

  /** Returns the key of an entry in the store. */
  private ByteBuffer stored(byte[] name) {
    return ByteBuffer.wrap(encoder.encodeKey(composite.apply(row(row(bucket), row(name)))));
  }

  private static InternalRow row(Object... values) {
    return new GenericInternalRow(values);
  }

  /**
   * Returns what the key held at a version of state; null for nothing.
   *
   * @param operator the place of the operator's state: a path, or an address with a scheme
   * @param ids the unique ids of that version, by partition
   */
  public byte[] find(String operator, long version, List<String> ids) throws IOException, RocksDBException {
    return find(operator, version, ids, List.of(stored)).get(stored).orElse(null);
  }

  /** Returns the further entries of the key at a version of state. */
  Form.Entries entries(String operator, long version, List<String> ids) {
    return names -> {
      List<ByteBuffer> wanted = names.stream().map(this::stored).toList();
      try {
        Map<ByteBuffer, Optional<byte[]>> found = find(operator, version, ids, wanted);
        return wanted.stream().map(each -> found.get(each).orElse(null)).toArray(byte[][]::new);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      } catch (RocksDBException e) {
        throw new IllegalStateException(e);
      }
    };
  }

  private Map<ByteBuffer, Optional<byte[]>> find(
      String operator, long version, List<String> ids, List<ByteBuffer> wanted) throws IOException, RocksDBException {
    var found = new HashMap<ByteBuffer, Optional<byte[]>>();
    int partition = Bucket.partition(bucket, ids.size());
    StateFolder store = new StateFolder(operator + "/" + partition, hadoop);
    Map<Long, String> lineage = new HashMap<>();
    lineage.put(version, ids.get(partition));
    for (long at = version; at > 0; at--) {
      if (!lineage.containsKey(at) && at < version) {
        // A changelog names every version since the newest snapshot of its time.
        lineage.putAll(changes(store, at + 1, lineage.get(at + 1)).lineage);
        if (!lineage.containsKey(at)) throw new IOException("the lineage of " + store + " lacks version " + at);
      }
      String name = at + "_" + lineage.get(at);
      List<ByteBuffer> left = wanted.stream().filter(each -> !found.containsKey(each)).toList();
      if (left.isEmpty()) return found;
      if (snapshots.containsKey(name) || store.has(name + ".zip")) {
        Map<ByteBuffer, Optional<byte[]>> known = snapshots.computeIfAbsent(name, n -> new HashMap<>());
        List<ByteBuffer> unknown = left.stream().filter(each -> !known.containsKey(each)).toList();
        if (!unknown.isEmpty()) known.putAll(snapshot(store, name, unknown));
        for (ByteBuffer each : left) found.put(each, known.get(each));
        return found;
      }
      Map<ByteBuffer, Optional<byte[]>> changed = changes(store, at, lineage.get(at)).entries;
      for (ByteBuffer each : left) if (changed.containsKey(each)) found.put(each, changed.get(each));
    }
    for (ByteBuffer each : wanted) found.putIfAbsent(each, Optional.empty());
    return found;
  }

  private Changes changes(StateFolder store, long version, String id) throws IOException {
    String name = version + "_" + id;
    Changes known = changes.get(name);
    if (known != null) return known;
    org.apache.hadoop.fs.Path path = store.path(name + ".changelog");
    if (!store.has(name + ".changelog")) throw new NoSuchFileException(path.toUri().getPath());
    StateStoreChangelogReader reader = new StateStoreChangelogReaderFactory(
        CheckpointFileManager.create(path, hadoop), path,
        CompressionCodec.createCodec(SparkEnv.get().conf(), CODEC)).constructChangelogReader();
    try {
      Map<Long, String> lineage = new HashMap<>();
      for (LineageItem each : reader.lineage()) lineage.put(each.version(), each.checkpointUniqueId());
      var entries = new HashMap<ByteBuffer, Optional<byte[]>>();
      while (reader.hasNext()) {
        Tuple3<?, byte[], byte[]> record = reader.next();
        if (!isMine(record._2())) continue;
        var value = record._1().equals(RecordType.PUT_RECORD()) ? Optional.of(content(record._3())) : Optional.<byte[]>empty();
        entries.put(ByteBuffer.wrap(Arrays.copyOfRange(record._2(), FAMILY, record._2().length)), value);
      }
      Changes found = new Changes(lineage, entries);
      changes.put(name, found);
      return found;
    } finally {
      reader.closeIfNeeded();
    }
  }

  /**
   * Tells whether a key of the store is one of this key's entries.
   *
   * <p>Which state it is of is not compared: a changelog has numbers for that, whose meaning only snapshots know. The one
   * operator with several maps is a process function. Its records and pages begin with 0 and 1; a time in its other maps
   * begins with 0x7f or 0x80, in all years that a time can be of. Spark's own keys of timers are shorter or of another form.
   */
  private boolean isMine(byte[] key) {
    if (is(key, stored.array(), stored.capacity())) return true;
    return further != null && is(key, further, furtherLength);
  }

  private static boolean is(byte[] key, byte[] start, int length) {
    return key.length == FAMILY + length && Arrays.equals(key, FAMILY, FAMILY + start.length, start, 0, start.length);
  }

  private byte[] content(byte[] value) {
    return rows.decodeValue(value).getBinary(0);
  }

  private Map<ByteBuffer, Optional<byte[]>> snapshot(StateFolder store, String name, List<ByteBuffer> wanted)
      throws IOException, RocksDBException {
    var found = new HashMap<ByteBuffer, Optional<byte[]>>();
    Path folder = Files.createTempDirectory(Files.createDirectories(scratch), "snapshot-");
    try {
      unzip(store, name + ".zip", folder);
      var metadata = RocksDBCheckpointMetadata.readFromFile(new File(folder.toFile(), "metadata"));
      for (RocksDBSstFile each : CollectionConverters.asJava(metadata.sstFiles())) store.bring("SSTs/" + each.dfsFileName(), folder.resolve(each.localFileName()));
      Object family = CollectionConverters.asJava(metadata.columnFamilyMapping().get()).get(variable);
      for (ByteBuffer each : wanted) found.put(each, Optional.empty());
      if (family == null) return found;
      try (var options = new Options(); RocksDB db = RocksDB.openReadOnly(options, folder.toString())) {
        for (ByteBuffer each : wanted) {
          byte[] value = db.get(RocksDBStateStoreProvider.encodeStateRowWithPrefix(each.array(), (Short) family));
          if (value != null) found.put(each, Optional.of(content(value)));
        }
      }
      return found;
    } finally {
      remove(folder);
    }
  }

  private static void unzip(StateFolder store, String file, Path into) throws IOException {
    try (InputStream in = store.open(file); var zip = new ZipInputStream(in)) {
      for (ZipEntry entry = zip.getNextEntry(); entry != null; entry = zip.getNextEntry()) {
        Path target = into.resolve(entry.getName()).normalize();
        if (!target.startsWith(into)) throw new IOException(entry.getName() + " does not lie in " + store + "/" + file);
        if (entry.isDirectory()) continue;
        Files.createDirectories(target.getParent());
        Files.copy(zip, target);
      }
    }
  }

  private static void remove(Path folder) throws IOException {
    List<Path> all = new ArrayList<>();
    try (Stream<Path> found = Files.walk(folder)) {
      found.sorted(Comparator.reverseOrder()).forEach(all::add);
    }
    for (Path each : all) Files.deleteIfExists(each);
  }
}
