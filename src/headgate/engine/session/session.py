"""The Spark session of an attempt: every setting with its reason."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from headgate._kernel.archive import jvm_options
from headgate._kernel.bridge import create_session
from headgate._kernel.executors import PLUGIN
from headgate._kernel.gateway import DIRECTIVES, has_jvm, read_last_lines, start_jvm
from headgate._kernel.jar import get_jars
from headgate._kernel.locales import JVM_OPTIONS, UTF8_LOCALE
from headgate._kernel.translate import creating_session
from headgate.engine.session.clusters import cluster_conf
from headgate.engine.session.driver_lock import LONGEST_END, make_scratch, scratch_conf, take_lock
from headgate.engine.session.log_layout import layout
from headgate.engine.session.masters import check_master, find_own_address, is_local
from headgate.engine.session.stores import store_conf
from headgate.engine.settings import MIB, SparkSettings
from headgate.flow.names import check_path

_STATE = "spark.sql.streaming.stateStore"
_ROCKSDB = f"{_STATE}.rocksdb"

# Measured: more throughput than the default collector.
_COLLECTOR = "-XX:+UseParallelGC"
# A heap in pages of 4 KiB costs a tenth of the rate (docs/internals/speed.md). Other systems do not
# support the option, and their JVM would not start.
_HUGE_PAGES = ["-XX:+UseTransparentHugePages"] if sys.platform == "linux" else []

_METASPACE = 192 * MIB
# Spark's default.
_LARGEST_FETCH = 200 * MIB

_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # The same process reads rows from memory moments after writing them.
    "spark.shuffle.compress": "false",
    "spark.shuffle.checksum.enabled": "false",
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
    # While this is on, the checksum above is computed anyway.
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "false",
}

# Independent of the user's retention, so that a checkpoint is linked before Spark purges it.
_BATCHES_TO_RETAIN = 100

# Kernel modules to load when a JVM starts, whatever its first flow needs.
MODULES = "HEADGATE_MODULES"

_LOGGING = """\
rootLogger.level = {level}
rootLogger.appenderRef.file.ref = file
{console_ref}
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {file}
appender.file.filePattern = {file}.%i
{file_layout}
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 32MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
{console}
# A gate that ends a query is an exception to Spark, and a clean end to us.
logger.query.name = org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution
logger.query.level = info
logger.codegen.name = org.apache.spark.sql.catalyst.expressions.codegen
logger.codegen.level = warn
logger.scheduler.name = org.apache.spark.scheduler
logger.scheduler.level = warn
# Consumers tell of every seek.
logger.kafka.name = org.apache.kafka
logger.kafka.level = warn
# Readers tell of every connection and seek, and its network library of buffers it cannot have.
logger.pulsar.name = org.apache.pulsar
logger.pulsar.level = warn
# Producers warn of every row that the broker has, and a replay is full of them.
logger.producers.name = org.apache.pulsar.client.impl.ProducerImpl
logger.producers.level = error
logger.netty.name = org.apache.pulsar.shade.io.netty
logger.netty.level = error
# At debug, they log the headers of requests: a session's token is among them.
logger.aws.name = software.amazon.awssdk
logger.aws.level = warn
logger.http.name = org.apache.http
logger.http.level = warn
logger.s3a.name = org.apache.hadoop.fs.s3a
logger.s3a.level = warn
# They warn, in forty lines, of each file that is there already, which is an answer like others.
logger.s3aOutput.name = org.apache.hadoop.fs.s3a.S3ABlockOutputStream
logger.s3aOutput.level = error
logger.s3aCounts.name = org.apache.hadoop.fs.s3a.S3AInstrumentation
logger.s3aCounts.level = error
# It warns that it has no file for metrics of its own.
logger.hadoop.name = org.apache.hadoop.metrics2
logger.hadoop.level = error
logger.storage.name = org.apache.spark.storage
logger.storage.level = warn
{state}"""
# A hundred lines per batch about stores, files and tasks, written while tasks wait.
_NO_STATE = """\
logger.state.name = org.apache.spark.sql.execution.streaming.state
logger.state.level = warn
logger.checkpointing.name = org.apache.spark.sql.execution.streaming.checkpointing
logger.checkpointing.level = warn
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = warn
logger.writing.name = org.apache.spark.sql.execution.datasources.v2
logger.writing.level = warn
# It logs how long it took to extract the metrics of each source and sink.
logger.metrics.name = org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecutionContext
logger.metrics.level = warn
# Hadoop's own defaults have a name that it has given up.
logger.deprecation.name = org.apache.hadoop.conf.Configuration.deprecation
logger.deprecation.level = warn
"""
_CONSOLE = """\
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
"""


def spark_conf(settings: SparkSettings, jars: Sequence[Path]) -> dict[str, str]:
    """Return Spark's configuration with the kernel's jars."""
    class_path = os.pathsep.join(map(str, jars))
    return {
        "spark.master": local_master(settings),
        "spark.app.name": "headgate",
        "spark.driver.memory": f"{settings.driver_memory // MIB}m",
        "spark.driver.extraJavaOptions": " ".join(_jvm_options(settings, jars)),
        # Remote tasks must use the same file names, letters and numbers.
        "spark.executor.extraJavaOptions": " ".join([*JVM_OPTIONS, _COLLECTOR, *_limits(settings)]),
        "spark.executorEnv.LC_ALL": UTF8_LOCALE,
        # A Python worker that crashes in native code leaves the line that it was at.
        "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
        "spark.python.worker.faulthandler.enabled": "true",
        # On the class path from the start: file systems are looked up before jars are added.
        "spark.driver.extraClassPath": class_path,
        "spark.hadoop.fs.AbstractFileSystem.file.impl": "io.headgate.kernel.local.LocalFs",
        "spark.hadoop.fs.shared.impl": "io.headgate.kernel.checkpoint.SharedFolder",
        "spark.ui.enabled": "false",
        # Spark describes the plan of every batch to its disabled UI: keep that short.
        "spark.sql.ui.explainMode": "simple",
        "spark.ui.showConsoleProgress": "false",
        # Data kept for the UI, a thousand batches back, gets old and causes a long GC pause.
        "spark.ui.liveUpdate.period": "-1",
        "spark.ui.retainedJobs": "10",
        "spark.ui.retainedStages": "10",
        "spark.ui.retainedTasks": "100",
        "spark.sql.ui.retainedExecutions": "10",
        "spark.sql.session.timeZone": "UTC",
        # It counts tasks by executor, and executors send it what they use.
        **PLUGIN,
        # Replays must put the same rows into the same tasks: exactly-once sinks depend on it.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": str(settings.parallelism),
        # Otherwise they stay until a full collection: gigabytes.
        "spark.sql.classic.shuffleDependency.fileCleanup.enabled": "true",
        "spark.speculation": "false",
        "spark.dynamicAllocation.enabled": "false",
        "spark.locality.wait": "0s",
        "spark.sql.streaming.minBatchesToRetain": str(_BATCHES_TO_RETAIN),
        # Clocks move the watermark between batches, and each move has a batch of its own. A batch
        # that Spark added would keep the watermark it found earlier.
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        # A start compares each file of Spark's logs with its checksum.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "io.headgate.kernel.checkpoint.SummedFiles"
        ),
        # It cannot be turned on for an existing checkpoint.
        "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
        f"{_STATE}.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        f"{_STATE}.checkpointFormatVersion": "2",
        f"{_ROCKSDB}.changelogCheckpointing.enabled": "true",
        f"{_ROCKSDB}.boundedMemoryUsage": "true",
        f"{_ROCKSDB}.maxMemoryUsageMB": str(settings.state_memory // MIB),
        **_off_heap(settings),
        **_fetches(settings),
        **(_LOCAL if is_local(settings.master) else cluster_conf(settings, jars)),
    }


def _jvm_options(settings: SparkSettings, jars: Sequence[Path]) -> list[str]:
    return [
        *JVM_OPTIONS,
        _COLLECTOR,
        # A heap that starts small needs a full collection each time it grows.
        f"-Xms{settings.driver_memory // MIB // 2}m",
        *_HUGE_PAGES,
        # Spark loads some 100 MiB of classes: each growth on the way is a full collection.
        f"-XX:MetaspaceSize={min(_METASPACE, settings.metaspace or _METASPACE)}",
        # Compiler time is for code that runs once per record: a tenth more orders/s on two cores.
        "-XX:+UnlockDiagnosticVMOptions",
        f'"-XX:CompilerDirectivesFile={DIRECTIVES}"',
        # Code that runs once per batch looks cold to HotSpot, which drops and recompiles it. By
        # default there is room to keep all of it, several times over.
        "-XX:-UseCodeCacheFlushing",
        *_limits(settings),
        # A driver without memory hangs silently; one that exits is noticed.
        "-XX:+ExitOnOutOfMemoryError",
        f"-Dlog4j2.configurationFile={_logging_file(settings).as_uri()}",
        *jvm_options(jars),
    ]


def _limits(settings: SparkSettings) -> list[str]:
    """Return the options for the pools of a JVM beside its heap."""
    limits = {
        "ReservedCodeCacheSize": settings.code_cache,
        "MaxMetaspaceSize": settings.metaspace,
        "MaxDirectMemorySize": settings.direct_memory,
    }
    return [f"-XX:{name}={size}" for name, size in limits.items() if size is not None]


def _fetches(settings: SparkSettings) -> dict[str, str]:
    """Return the size of blocks of other executors that are fetched into memory, not to disk."""
    if settings.direct_memory is None:
        return {}
    # Spark 4.3 refuses to start an executor with less direct memory than one such block may take.
    largest = min(_LARGEST_FETCH, settings.direct_memory // 2)
    return {"spark.network.maxRemoteBlockSizeFetchToMem": f"{largest}b"}


def _off_heap(settings: SparkSettings) -> dict[str, str]:
    if settings.off_heap_memory is None:
        return {}
    return {
        "spark.memory.offHeap.enabled": "true",
        "spark.memory.offHeap.size": f"{settings.off_heap_memory}b",
    }


def local_master(settings: SparkSettings) -> str:
    """Return the master; a local one gets no more threads than there are tasks."""
    if settings.master == "local[*]":
        return f"local[{max(settings.parallelism, 1)}]"
    return settings.master


def open_session(settings: SparkSettings, *, modules: Sequence[str] = ()) -> SparkSession:
    """Start Spark; its output reaches the terminal only if requested.

    Args:
        modules: Kernel modules besides its core, and stores. A running JVM keeps those it was
            started with.
    """
    check_path(settings.log_file)
    check_master(settings.master)
    settings.log_file.parent.mkdir(parents=True, exist_ok=True)
    host = settings.driver_host or find_own_address(settings.master)
    needed = sorted({*modules, *_more_modules()})
    jars = get_jars(needed)
    conf = spark_conf(replace(settings, driver_host=host), jars) | store_conf(needed)
    if not has_jvm():
        held = []
        if settings.lock_file is not None:
            held = [take_lock(settings.lock_file, wait=LONGEST_END)]
            scratch = make_scratch(settings.lock_file, held[0])
            conf |= scratch_conf(scratch, conf["spark.driver.extraJavaOptions"])
        # The driver has its jars on the class path already.
        start = {name: value for name, value in conf.items() if name != "spark.jars"}
        start_jvm(start, streams=_output_file(settings), inherited=held)
    with creating_session(conf["spark.master"]):
        return create_session(conf)


class DriverOutput:
    """What the JVM and its Python workers print from now on; nothing if that is the terminal."""

    def __init__(self, settings: SparkSettings) -> None:
        self._file = _output_file(settings)
        self._begin = 0
        if self._file is not None and self._file.exists():
            self._begin = self._file.stat().st_size

    def last_lines(self) -> list[str]:
        """Return the last few lines."""
        return read_last_lines(self._file, begin=self._begin)


def _output_file(settings: SparkSettings) -> Path | None:
    return None if settings.verbose else settings.log_file.with_suffix(".out")


def _more_modules() -> list[str]:
    """Return the modules that a process with several flows wants its one JVM to load."""
    return [module for module in os.environ.get(MODULES, "").split(",") if module]


def _logging_file(settings: SparkSettings) -> Path:
    """Write the configuration of Spark's logging beside its log."""
    log = settings.log_file.absolute()
    file = log.with_suffix(".log4j2.properties")
    log.parent.mkdir(parents=True, exist_ok=True)
    text = _LOGGING.format(
        file=_escaped(log),
        level=settings.log_level,
        state=_NO_STATE if settings.log_level == "info" else "",
        file_layout=layout(settings, "file"),
        console=_CONSOLE + layout(settings, "console") if settings.verbose else "",
        console_ref="rootLogger.appenderRef.console.ref = console" if settings.verbose else "",
    )
    # Java reads such a file as Latin-1 in any locale: other characters are escaped.
    file.write_bytes(text.encode("ascii"))
    return file


def _escaped(path: Path) -> str:
    plain = re.sub(r"([\\$])", r"\\\1", str(path))
    # JSON and Java escape characters alike.
    return re.sub(r"[^\x00-\x7f]", lambda match: json.dumps(match[0])[1:-1], plain)
