package io.headgate.kernel.functions;

import java.io.Serializable;
import java.util.List;

/**
 * How a process for Python functions is started.
 *
 * <p>Paths are as {@link SentFiles} reads them.
 *
 * @param python the interpreter
 * @param version the version that it must have, such as 3.11
 * @param path folders that are searched for modules first: that of the flow's file
 * @param code a folder with Headgate's own modules; null for those that are installed
 * @param memory the bytes that a worker may allocate; 0 for no limit
 * @param timeoutMillis how long one call may take
 * @param check whether each call is made twice, and fails if the results differ
 */
public record WorkerSettings(
    String python, String version, List<String> path, String code, long memory, long timeoutMillis, boolean check)
    implements Serializable {}
