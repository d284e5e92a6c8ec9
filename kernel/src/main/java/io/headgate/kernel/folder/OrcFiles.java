package io.headgate.kernel.folder;

import java.io.IOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.OrcFile;
import org.apache.orc.Reader;
import org.apache.orc.RecordReader;
import org.apache.orc.StripeInformation;
import org.apache.orc.TypeDescription;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** ORC files, of which a stripe belongs to the part that it begins in. */
final class OrcFiles implements RowFiles {
  private static Reader open(DataFile file) throws IOException {
    Configuration conf = StoredFiles.configured(Places.hadoop(), file.path.toUri().getScheme());
    Path path = StoredFiles.of(file.path);
    // Times without a zone are those of UTC, whatever zone this process is in.
    return OrcFile.createReader(path, OrcFile.readerOptions(conf).filesystem(StoredFiles.find(file.path, conf))
        .maxLength(file.file.size()).useUTCTimestamp(true).convertToProlepticGregorian(true));
  }

  @Override public StructType schema(DataFile file) throws IOException {
    try (Reader reader = open(file)) {
      return OrcValues.schema(reader.getSchema());
    }
  }

  @Override public Rows open(DataFile file, long from, long to, StructType columns) throws IOException {
    Reader reader = open(file);
    try {
      return new OrcRows(reader, from, to, columns);
    } catch (IOException | RuntimeException e) {
      reader.close();
      throw e;
    }
  }

  private static final class OrcRows implements Rows {
    private final Reader reader;
    private final RecordReader rows;
    private final VectorizedRowBatch batch;
    private final OrcValues.Getter[] getters;
    private final int[] places;
    private final GenericInternalRow row;
    private long number;
    private int at = -1;

    OrcRows(Reader reader, long from, long to, StructType columns) throws IOException {
      this.reader = reader;
      TypeDescription wanted = wanted(reader.getSchema(), columns);
      number = before(reader.getStripes(), from) - 1;
      rows = reader.rows(reader.options().schema(wanted).range(from, to - from));
      batch = wanted.createRowBatch();
      List<TypeDescription> children = wanted.getChildren();
      getters = children == null
          ? new OrcValues.Getter[0] : children.stream().map(OrcValues::getter).toArray(OrcValues.Getter[]::new);
      places = new int[getters.length];
      for (int i = 0; i < places.length; i++) places[i] = wanted.getFieldNames().indexOf(columns.fields()[i].name());
      row = new GenericInternalRow(new Object[places.length]);
    }

    /** Returns how many rows are before the first stripe of a part. */
    private static long before(List<StripeInformation> stripes, long from) {
      return stripes.stream().filter(each -> each.getOffset() < from).mapToLong(StripeInformation::getNumberOfRows).sum();
    }

    /** Returns the file's type with nothing but the chosen columns; fields that are not in the file are null. */
    private static TypeDescription wanted(TypeDescription file, StructType columns) {
      TypeDescription out = TypeDescription.createStruct();
      for (StructField field : columns.fields())
        out.addField(field.name(), OrcValues.chosen(file.findSubtype("`" + field.name().replace("`", "``") + "`"), field.dataType()));
      return out;
    }

    @Override public boolean next() throws IOException {
      at++;
      while (at >= batch.size) {
        if (!rows.nextBatch(batch)) return false;
        at = 0;
      }
      number++;
      for (int i = 0; i < getters.length; i++) row.update(i, getters[i].get(batch.cols[places[i]], at));
      return true;
    }

    @Override public InternalRow row() {
      return row;
    }

    @Override public long number() {
      return number;
    }

    @Override public void close() throws IOException {
      rows.close();
      reader.close();
    }
  }
}
