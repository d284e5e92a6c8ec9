package io.headgate.kernel.json;

import com.fasterxml.jackson.core.JsonParser;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.List;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.unsafe.types.UTF8String;

/** Reads a key, as {@link KeyText} writes it, back into the values of its columns. */
public final class KeyValues implements Serializable {
  private final JsonReading.Reader[] readers;
  private final boolean plain;

  public KeyValues(List<DataType> types) {
    readers = types.stream().map(JsonReading::of).toArray(JsonReading.Reader[]::new);
    plain = types.size() == 1 && types.get(0) instanceof StringType;
  }

  public int columns() {
    return readers.length;
  }

  /** Puts the values, as Spark's rows hold them, at the beginning of an array. */
  public void read(byte[] key, Object[] into) {
    if (plain) {
      into[0] = UTF8String.fromBytes(key);
      return;
    }
    if (readers.length == 0) return;
    try (JsonParser p = JsonReading.JSON.createParser(key)) {
      p.nextToken();
      if (readers.length > 1) p.nextToken();
      for (int i = 0; i < readers.length; i++, p.nextToken()) into[i] = readers[i].read(p, "key");
    } catch (BadRecord e) {
      throw new IllegalStateException("not a key of these columns: " + e.getMessage(), e);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
