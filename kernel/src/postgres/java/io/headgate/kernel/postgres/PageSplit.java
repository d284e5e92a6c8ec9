package io.headgate.kernel.postgres;

import org.apache.spark.sql.connector.read.InputPartition;

/**
 * A page of changes that a task reads.
 *
 * @param first the number of its first change; {@code at} when it was read from the database
 */
record PageSplit(String file, String topic, long first, long at, long maxRecord) implements InputPartition {}
