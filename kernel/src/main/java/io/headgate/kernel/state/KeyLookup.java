package io.headgate.kernel.state;

import io.headgate.kernel.rows.Bucket;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.SparkEnv;
import org.apache.spark.io.CompressionCodec;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.state.KeyStateEncoderSpec;
import org.apache.spark.sql.execution.streaming.state.LineageItem;
import org.apache.spark.sql.execution.streaming.state.PrefixKeyScanStateEncoderSpec;
import org.apache.spark.sql.execution.streaming.state.RecordType;
import org.apache.spark.sql.execution.streaming.state.RocksDBCheckpointMetadata;
import org.apache.spark.sql.execution.streaming.state.RocksDBImmutableFile;
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
 * where it lies. State files never change and are named by ids of their own, so that what was found in one is remembered as
 * long as this object is used. For one thread; nothing is written but into the scratch folder.
 */
public final class KeyLookup {
  private static final String CODEC = "lz4";
  // A virtual column family stands before each key, as a number of its own.
  private static final int FAMILY = RocksDBStateStoreProvider.VIRTUAL_COL_FAMILY_PREFIX_BYTES();
  private static final StructType BUCKET = new StructType().add("value", DataTypes.IntegerType);
  private static final StructType BINARY = new StructType().add("value", DataTypes.BinaryType);

  private final Path scratch;
  private final Configuration hadoop;
  private final String variable;
  private final Integer bucket;
  private final byte[] stored;
  private final UnsafeRowDataEncoder rows;
  private final Map<String, Changes> changes = new HashMap<>();
  private final Map<String, byte[]> snapshots = new HashMap<>();

  /** What one changelog says: the versions it goes on from, and of the key, if it is in there, what became of it. */
  private record Changes(Map<Long, String> lineage, boolean touched, byte[] value) {}

  /**
   * @param variable what the operator calls its state
   * @param scratch a folder for what is unpacked and gone again before a call returns
   */
  public KeyLookup(SparkSession spark, String variable, byte[] key, String scratch) {
    RocksDB.loadLibrary();
    this.scratch = Path.of(scratch);
    this.variable = variable;
    hadoop = spark.sparkContext().hadoopConfiguration();
    bucket = Bucket.of(key);
    // Keys are entries of their bucket's map.
    StructType composite = new StructType().add("key", BUCKET).add("userKey", BINARY);
    KeyStateEncoderSpec form = new PrefixKeyScanStateEncoderSpec(composite, 1);
    rows = new UnsafeRowDataEncoder(form, BINARY);
    InternalRow row = row(row(bucket), row(key));
    stored = form.toEncoder(rows, true).encodeKey(UnsafeProjection.create(composite).apply(row));
  }

  private static InternalRow row(Object... values) {
    return new GenericInternalRow(values);
  }

  /**
   * Returns what the key held at a version of state; null for nothing.
   *
   * @param operator the folder of the operator's state
   * @param ids the unique ids of that version, by partition
   */
  public byte[] find(String operator, long version, List<String> ids) throws IOException, RocksDBException {
    int partition = partition(ids.size());
    Path store = Path.of(operator, Integer.toString(partition));
    Map<Long, String> lineage = new HashMap<>();
    lineage.put(version, ids.get(partition));
    for (long at = version; at > 0; at--) {
      if (!lineage.containsKey(at) && at < version) {
        // A changelog names every version since the newest snapshot of its time.
        lineage.putAll(changes(store, at + 1, lineage.get(at + 1)).lineage);
        if (!lineage.containsKey(at)) throw new IOException("the lineage of " + store + " lacks version " + at);
      }
      String name = at + "_" + lineage.get(at);
      if (snapshots.containsKey(name)) return snapshots.get(name);
      if (Files.isRegularFile(store.resolve(name + ".zip"))) {
        byte[] value = snapshot(store, name);
        snapshots.put(name, value);
        return value;
      }
      Changes found = changes(store, at, lineage.get(at));
      if (found.touched) return found.value;
    }
    return null;
  }

  /** Returns the partition of the key's bucket: Spark spreads rows by the same expression. */
  private int partition(int partitions) {
    List<Expression> keys = List.of(Literal.create(bucket, DataTypes.IntegerType));
    return (int) new HashPartitioning(CollectionConverters.asScala(keys).toSeq(), partitions).partitionIdExpression()
        .eval(null);
  }

  private Changes changes(Path store, long version, String id) throws IOException {
    String name = version + "_" + id;
    Changes known = changes.get(name);
    if (known != null) return known;
    Path file = store.resolve(name + ".changelog");
    if (!Files.isRegularFile(file)) throw new NoSuchFileException(file.toString());
    var path = new org.apache.hadoop.fs.Path(file.toUri());
    StateStoreChangelogReader reader = new StateStoreChangelogReaderFactory(
        CheckpointFileManager.create(path, hadoop), path,
        CompressionCodec.createCodec(SparkEnv.get().conf(), CODEC)).constructChangelogReader();
    try {
      Map<Long, String> lineage = new HashMap<>();
      for (LineageItem each : reader.lineage()) lineage.put(each.version(), each.checkpointUniqueId());
      boolean touched = false;
      byte[] value = null;
      while (reader.hasNext()) {
        Tuple3<?, byte[], byte[]> record = reader.next();
        if (!isMine(record._2())) continue;
        touched = true;
        value = record._1().equals(RecordType.PUT_RECORD()) ? record._3() : null;
      }
      Changes found = new Changes(lineage, touched, value == null ? null : content(value));
      changes.put(name, found);
      return found;
    } finally {
      reader.closeIfNeeded();
    }
  }

  /** Tells whether a key of the store is this one; no other state of our operators has keys of that form. */
  private boolean isMine(byte[] key) {
    return key.length == FAMILY + stored.length && Arrays.equals(key, FAMILY, key.length, stored, 0, stored.length);
  }

  private byte[] content(byte[] value) {
    return rows.decodeValue(value).getBinary(0);
  }

  private byte[] snapshot(Path store, String name) throws IOException, RocksDBException {
    Path folder = Files.createTempDirectory(Files.createDirectories(scratch), "snapshot-");
    try {
      unzip(store.resolve(name + ".zip"), folder);
      var metadata = RocksDBCheckpointMetadata.readFromFile(new File(folder.toFile(), "metadata"));
      for (RocksDBSstFile each : CollectionConverters.asJava(metadata.sstFiles())) link(each, store, folder);
      Object family = CollectionConverters.asJava(metadata.columnFamilyMapping().get()).get(variable);
      if (family == null) return null;
      byte[] key = RocksDBStateStoreProvider.encodeStateRowWithPrefix(stored, (Short) family);
      try (var options = new Options(); RocksDB db = RocksDB.openReadOnly(options, folder.toString())) {
        byte[] value = db.get(key);
        return value == null ? null : content(value);
      }
    } finally {
      remove(folder);
    }
  }

  private static void link(RocksDBImmutableFile file, Path store, Path folder) throws IOException {
    Path target = store.resolve("SSTs").resolve(file.dfsFileName()).toAbsolutePath();
    if (!Files.isRegularFile(target)) throw new NoSuchFileException(target.toString());
    Files.createSymbolicLink(folder.resolve(file.localFileName()), target);
  }

  private static void unzip(Path file, Path into) throws IOException {
    try (InputStream in = Files.newInputStream(file); var zip = new ZipInputStream(in)) {
      for (ZipEntry entry = zip.getNextEntry(); entry != null; entry = zip.getNextEntry()) {
        Path target = into.resolve(entry.getName()).normalize();
        if (!target.startsWith(into)) throw new IOException(entry.getName() + " does not lie in " + file);
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
