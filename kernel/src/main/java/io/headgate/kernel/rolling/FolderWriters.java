package io.headgate.kernel.rolling;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.headgate.kernel.CodedFailure;
import io.headgate.kernel.sink.LogSpec;
import io.headgate.kernel.sink.LogWriter;
import io.headgate.kernel.sink.LogWriters;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** Writes a flow's rows to a folder: tasks stage them in hidden files, and the driver has those published. */
public final class FolderWriters implements LogWriters {
  private final LogSpec spec;
  private final Journal journal;
  /** By the address of the output. */
  private final Map<Integer, Sheet> sheets;
  /** On the driver alone. */
  private final transient Roller roller;
  private transient boolean tookOver;

  public FolderWriters(LogSpec spec) {
    this.spec = spec;
    JsonNode client = parse(spec.client());
    journal = new Journal(Place.of(client.get("path").asText()), spec.query().lineage());
    sheets = new TreeMap<>(spec.topics().keySet().stream()
        .collect(Collectors.toMap(output -> output, output -> Sheets.of(spec.query().run(), output))));
    roller = new Roller(journal, client.get("roll_size").asLong(), client.get("roll_age_ms").asLong());
  }

  private static JsonNode parse(String client) {
    try {
      return new ObjectMapper().readTree(client);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("not a folder: " + client, e);
    }
  }

  @Override public void prepare(List<LogWriters> earlier) {
    for (LogWriters other : earlier)
      if (other instanceof FolderWriters f && f.journal.place.nameOf("").equals(journal.place.nameOf("")))
        throw new CodedFailure("FOLDER_UNSUPPORTED", "cannot write to folder " + journal.place.nameOf("")
            + ": two outputs write there, with different roll_size or roll_age");
    roller.recover();
  }

  @Override public LogWriter open(int task, int tasks, long epoch) {
    try {
      return new FolderWriter(journal, sheets, task, epoch);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot stage rows in " + journal.place.nameOf(""), e);
    }
  }

  @Override public void passed(int task, long epoch) {
    // A task without rows stages nothing.
  }

  @Override public void written(List<Serializable> reports) {
    var files = new ArrayList<Staged>();
    for (Serializable report : reports) if (report != null) files.add((Staged) report);
    roller.written(files);
  }

  @Override public void settled() {
    if (!tookOver) {
      // Not before the gate is open: until then, the run before may still be the job's.
      roller.takeOver(spec.query().fence().stream().map(run -> new Roller.Earlier(run.lineage(), run.last())).toList());
      tookOver = true;
    }
    roller.settled();
  }

  @Override public void finish() {
    roller.finish();
  }

  /** Returns a row as JSON, or the line that it is. */
  @Override public byte[] shown(int output, byte[] envelope) {
    return RowText.of(sheets.get(output), FolderWriter.row(envelope));
  }

  @Override public void close() {
    roller.close();
    Sheets.forget(spec.query().run());
  }

}
