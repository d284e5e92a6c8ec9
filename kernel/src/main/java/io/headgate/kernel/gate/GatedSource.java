package io.headgate.kernel.gate;

import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A source in front of another one: what it reads is the other's, when it reads is the {@link Gatekeeper}'s.
 *
 * <p>Options: {@code gate} (the query's), {@code gate.source} (its uid), {@code gate.inner} (the other source's class),
 * {@code gate.role} ({@code table-first}, {@code table}, {@code stream}); the rest go to the other source.
 */
public final class GatedSource implements TableProvider {
  private static TableProvider inner(Map<String, String> options) {
    String name = new CaseInsensitiveStringMap(options).get("gate.inner");
    try {
      return (TableProvider) Class.forName(name).getDeclaredConstructor().newInstance();
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("cannot open source " + name, e);
    }
  }

  @Override public StructType inferSchema(CaseInsensitiveStringMap options) {
    return inner(options.asCaseSensitiveMap()).inferSchema(options);
  }

  @Override public boolean supportsExternalMetadata() {
    return false;
  }

  @Override public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> options) {
    return new GatedTable(inner(options).getTable(schema, partitioning, options), new CaseInsensitiveStringMap(options));
  }

  private record GatedTable(Table inner, CaseInsensitiveStringMap options) implements SupportsRead {
    @Override public String name() { return inner.name(); }

    @SuppressWarnings("deprecation")
    @Override public StructType schema() { return inner.schema(); }

    @Override public Set<TableCapability> capabilities() { return Set.of(TableCapability.MICRO_BATCH_READ); }

    @Override public ScanBuilder newScanBuilder(CaseInsensitiveStringMap ignored) {
      Scan scan = ((SupportsRead) inner).newScanBuilder(options).build();
      return () -> new GatedScan(scan, options);
    }
  }

  private record GatedScan(Scan inner, CaseInsensitiveStringMap options) implements Scan {
    @Override public StructType readSchema() { return inner.readSchema(); }

    @Override public String description() { return inner.description(); }

    @Override public MicroBatchStream toMicroBatchStream(String checkpoint) {
      return new GatedStream(inner.toMicroBatchStream(checkpoint), options, checkpoint);
    }
  }

  private static final class GatedStream implements MicroBatchStream, SupportsAdmissionControl, ReportsSourceMetrics {
    private final MicroBatchStream inner;
    private final SupportsAdmissionControl admission;
    private final Gatekeeper keeper;
    private final String name;
    private final KeptPosition target;
    private final KeptPosition begun;
    private Offset newest;

    GatedStream(MicroBatchStream inner, CaseInsensitiveStringMap options, String checkpoint) {
      this.inner = inner;
      admission = (SupportsAdmissionControl) inner;
      keeper = Gatekeeper.of(options.get("gate"));
      name = options.get("gate.source");
      String role = options.get("gate.role");
      boolean first = role.equals("table-first");
      target = first ? KeptPosition.loadTarget(checkpoint) : null;
      begun = KeptPosition.start(checkpoint);
      keeper.register(name, first, role.equals("stream"));
    }

    @Override public Offset latestOffset(Offset start, ReadLimit limit) {
      keeper.pass();
      newest = admission.reportLatestOffset();
      if (target != null) keeper.loadTo(name, inner.deserializeOffset(target.readOrWrite(newest::json)));
      if (inner instanceof Presents p) keeper.at(name, p.present(start), newest, aim -> p.left(aim, start));
      else keeper.at(name, start, newest, aim -> aim);
      // Asked also where nothing is left: a source whose records are gone says so here.
      Offset end = keeper.admits(name) ? admission.latestOffset(start, limit) : start;
      if (inner instanceof Partitioned p) keeper.reads(name, p.partitions(start, end));
      keeper.endIfCaughtUp();
      return end;
    }

    @Override public Offset latestOffset() {
      throw new UnsupportedOperationException("the position depends on where reading starts");
    }

    @Override public ReadLimit getDefaultReadLimit() { return admission.getDefaultReadLimit(); }

    @Override public Offset reportLatestOffset() { return newest; }

    @Override public InputPartition[] planInputPartitions(Offset start, Offset end) {
      return inner.planInputPartitions(start, end);
    }

    @Override public PartitionReaderFactory createReaderFactory() { return inner.createReaderFactory(); }

    @Override public Offset initialOffset() {
      return inner.deserializeOffset(begun.readOrWrite(() -> inner.initialOffset().json()));
    }

    @Override public Offset deserializeOffset(String json) { return inner.deserializeOffset(json); }

    @Override public void commit(Offset end) { inner.commit(end); }

    @Override public void stop() { inner.stop(); }

    @Override public Map<String, String> metrics(Optional<Offset> consumed) {
      return inner instanceof ReportsSourceMetrics m ? m.metrics(consumed) : Map.of();
    }

    @Override public String toString() { return name; }
  }
}
