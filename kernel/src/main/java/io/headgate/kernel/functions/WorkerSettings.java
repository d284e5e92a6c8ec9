package io.headgate.kernel.functions;

import java.io.Serializable;
import java.util.List;

/**
 * How a process for Python functions is started.
 *
 * @param python the interpreter
 * @param path folders that are searched for modules first: that of the flow's file
 * @param memory the bytes that a worker may allocate; 0 for no limit
 * @param timeoutMillis how long one call may take
 * @param check whether each call is made twice, and fails if the results differ
 */
public record WorkerSettings(String python, List<String> path, long memory, long timeoutMillis, boolean check) implements Serializable {}
