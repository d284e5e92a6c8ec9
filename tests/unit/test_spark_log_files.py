"""Spark's checkpoint folder: which files a batch rests on, and what its logs say."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest
from stored_run import LAST, copy, files_under, unpack

from headgate.checkpoints import sparklog
from headgate.checkpoints._changelogs import BadChangelogError, read_lineage, unpack_lz4, xxhash32
from headgate.checkpoints._crc32c import crc32c
from headgate.errors import HeadgateError


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("stored"))


def ids_by_version(checkpoint: Path, operator: int, partition: int) -> dict[int, str]:
    """Return the truth of which state files belong to the run: what its commits say."""
    return {
        batch + 1: sparklog.read_commit(checkpoint, batch).state_ids[operator][partition][0]
        for batch in sparklog.list_commits(checkpoint)
    }


def expected_state(checkpoint: Path, operator: int, partition: int, batch: int) -> set[str]:
    """Return the state files of a partition by another way: from the commits, without lineage."""
    folder = f"state/{operator}/{partition}"
    ids = ids_by_version(checkpoint, operator, partition)
    snapshots = [
        version
        for version in range(1, batch + 2)
        if (checkpoint / folder / f"{version}_{ids[version]}.zip").is_file()
    ]
    newest = f"{folder}/{snapshots[-1]}_{ids[snapshots[-1]]}.zip"
    with zipfile.ZipFile(checkpoint / newest) as archive:
        metadata = json.loads(archive.read("metadata").decode().partition("\n")[2])
    tables = [each["dfsSstFileName"] for each in metadata["sstFiles"]]
    changelogs = [
        f"{folder}/{version}_{ids[version]}.changelog"
        for version in range(snapshots[-1] + 1, batch + 2)
    ]
    return (
        {newest, f"{newest}.crc", *changelogs, *(f"{each}.crc" for each in changelogs)}
        | {f"{folder}/SSTs/{each}" for each in tables}
        | {f"{folder}/SSTs/.{each}.crc" for each in tables}
    )


@pytest.mark.parametrize("batch", range(LAST + 1))
def test_the_files_of_a_batch_are_all_that_it_needs_and_nothing_of_others(
    checkpoint: Path, batch: int
) -> None:
    newest = max(each for each in (0, 2, 20) if each <= batch)
    expected = {"metadata"}
    expected |= {f"{log}/{batch}" for log in ("offsets", "commits")}
    expected |= {f"{log}/{batch - 1}" for log in ("offsets", "commits") if batch > 0}
    expected |= {f"sources/{table}/load-target-v1.json" for table in ("users", "items")}
    for operator in (0, 1):
        expected.add(f"state/{operator}/_metadata/v2/{newest}")
        expected |= {
            each
            for each in files_under(checkpoint)
            if each.startswith(f"state/{operator}/_stateSchema/")
        }
        for partition in (0, 1):
            expected |= expected_state(checkpoint, operator, partition, batch)
    assert set(sparklog.files_of(checkpoint, batch)) == expected


def test_state_files_of_an_attempt_that_never_committed_are_left_out(
    checkpoint: Path, tmp_path: Path
) -> None:
    mine = copy(checkpoint, tmp_path / "mine")
    before = sparklog.files_of(mine, 12)
    real = next((mine / "state/0/0").glob("13_*.zip"))
    real.with_name("13_00000000-dead-0000-0000-000000000000.zip").write_bytes(b"of a dead attempt")
    real.with_name("12_00000000-dead-0000-0000-000000000000.changelog").write_bytes(b"also")
    assert sparklog.files_of(mine, 12) == before


def test_without_a_snapshot_the_changelogs_from_the_first_version_on_are_needed(
    checkpoint: Path, tmp_path: Path
) -> None:
    mine = copy(checkpoint, tmp_path / "mine")
    for file in mine.glob("state/0/0/*.zip*"):
        if int(file.name.partition("_")[0]) <= 4:
            file.unlink()
    found = [each for each in sparklog.files_of(mine, 2) if each.startswith("state/0/0/")]
    assert sorted(
        int(Path(each).name.partition("_")[0]) for each in found if "crc" not in each
    ) == [
        1,
        2,
        3,
    ]


def test_a_batch_says_where_it_ends_in_every_source(checkpoint: Path) -> None:
    positions = sparklog.read_offsets(checkpoint, LAST)
    assert set(positions) == {"orders", "users", "items"}
    assert all(json.loads(each or "")["format"] == 1 for each in positions.values())
    batch = sparklog.read_batch(checkpoint, LAST)
    assert batch.conf["spark.sql.shuffle.partitions"] == "2"
    assert sparklog.read_commit(checkpoint, LAST).watermark_ms == 0


def test_a_source_before_its_first_record_has_no_position(checkpoint: Path, tmp_path: Path) -> None:
    mine = copy(checkpoint, tmp_path / "mine")
    text = (mine / "offsets/4").read_text()
    (mine / "offsets/4").write_text(re.sub(r"orders:.*", "orders:-", text))
    assert sparklog.read_offsets(mine, 4)["orders"] is None


def test_commits_and_open_batches_are_told_apart(checkpoint: Path, tmp_path: Path) -> None:
    assert sparklog.find_last_commit(checkpoint) == LAST
    assert sparklog.find_open_batch(checkpoint) is None
    mine = copy(checkpoint, tmp_path / "mine")
    (mine / f"commits/{LAST}").unlink()
    assert sparklog.find_last_commit(mine) == LAST - 1
    assert sparklog.find_open_batch(mine) == LAST
    assert sparklog.find_last_commit(tmp_path / "nothing") is None
    assert sparklog.find_open_batch(tmp_path / "nothing") is None


@pytest.mark.parametrize("gone", ["commits/12", "offsets/12", "offsets/11", "metadata"])
def test_a_batch_without_one_of_its_logs_is_incomplete(
    checkpoint: Path, tmp_path: Path, gone: str
) -> None:
    mine = copy(checkpoint, tmp_path / "mine")
    (mine / gone).unlink()
    with pytest.raises(HeadgateError, match=re.escape(f"{gone} is missing")) as caught:
        sparklog.files_of(mine, 12)
    assert caught.value.code == "CHECKPOINT_INCOMPLETE"
    assert caught.value.hint


def test_a_batch_that_never_was_is_incomplete(checkpoint: Path) -> None:
    with pytest.raises(HeadgateError) as caught:
        sparklog.files_of(checkpoint, 99)
    assert caught.value.code == "CHECKPOINT_INCOMPLETE"


@pytest.mark.parametrize(
    "content",
    ["", "v2", "v2\n", "v9\n{}", "x\n{}", "v2\n[]", 'v2\n{"nextBatchWatermarkMs":"x"}', "\0\0"],
)
def test_a_log_that_does_not_parse_is_damaged(
    checkpoint: Path, tmp_path: Path, content: str
) -> None:
    for log in ("commits", "offsets"):
        mine = copy(checkpoint, tmp_path / log)
        (mine / log / "5").write_text(content)
        with pytest.raises(HeadgateError, match=f"{log}/5 is corrupted") as caught:
            sparklog.files_of(mine, 5)
        assert caught.value.code == "CHECKPOINT_DAMAGED"


def test_state_of_another_kind_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    mine = copy(checkpoint, tmp_path / "mine")
    text = (mine / "offsets/5").read_text()
    (mine / "offsets/5").write_text(text.replace('codec":"lz4"', 'codec":"zstd"'))
    with pytest.raises(HeadgateError, match="RocksDB with lz4"):
        sparklog.files_of(mine, 5)


def test_an_id_of_state_cannot_lead_out_of_the_folder(checkpoint: Path, tmp_path: Path) -> None:
    mine = copy(checkpoint, tmp_path / "mine")
    one = sparklog.read_commit(mine, 5).state_ids[0][0][0]
    (mine / "commits/5").write_text((mine / "commits/5").read_text().replace(one, "../../x"))
    with pytest.raises(HeadgateError, match="is not an id of state"):
        sparklog.files_of(mine, 5)


def test_the_lineage_of_a_changelog_is_what_the_commits_say(checkpoint: Path) -> None:
    for operator, partition in ((0, 0), (0, 1), (1, 0), (1, 1)):
        truth = ids_by_version(checkpoint, operator, partition)
        for version, unique in truth.items():
            file = checkpoint / f"state/{operator}/{partition}/{version}_{unique}.changelog"
            with file.open("rb") as content:
                lineage = read_lineage(content)
            assert all(truth[each] == found for each, found in lineage.items())
            assert not lineage or max(lineage) == version - 1


def test_a_flipped_byte_in_a_changelogs_head_is_noticed(checkpoint: Path, tmp_path: Path) -> None:
    file = next(checkpoint.glob("state/0/0/12_*.changelog"))
    content = file.read_bytes()
    for at in range(120):
        damaged = tmp_path / "damaged.changelog"
        damaged.write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
        if content[:at].startswith(b"LZ4Block") and at == 8:
            continue  # Half of this byte is the level of compression, which means nothing.
        with pytest.raises(BadChangelogError), damaged.open("rb") as head:
            read_lineage(head)


def test_packed_bytes_are_unpacked_as_they_were() -> None:
    # One literal, then a match that runs into what it writes.
    assert unpack_lz4(bytes([0x1F, ord("a"), 1, 0, 0, 0x10, ord("b")]), 21) == b"a" * 20 + b"b"
    with pytest.raises(BadChangelogError):
        unpack_lz4(bytes([0x1F, ord("a"), 9, 0, 0]), 21)


def test_checksums_are_those_of_their_standards() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert xxhash32(b"", 0) == 0x02CC5D05
    assert xxhash32(b"Nobody inspects the spammish repetition", 0) == 0xE2293B2F
    data = bytes(range(256)) * 2048
    whole = crc32c(data)
    # In pieces of odd sizes, some long enough to be summed side by side and some not.
    for size in (1000, 131_073, 262_144, 400_001):
        found = 0
        for at in range(0, len(data), size):
            found = crc32c(data[at : at + size], found)
        assert found == whole


def test_a_store_with_a_folder_of_its_own_is_found(checkpoint: Path, tmp_path: Path) -> None:
    mine = copy(checkpoint, tmp_path / "mine")
    before = sparklog.files_of(mine, 13)
    (mine / "state/0/0").rename(mine / "moved")
    (mine / "state/0/0").mkdir()
    (mine / "moved").rename(mine / "state/0/0/left")
    expected = [each.replace("state/0/0/", "state/0/0/left/") for each in before]
    assert sorted(sparklog.files_of(mine, 13)) == sorted(expected)
