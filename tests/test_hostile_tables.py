"""Tables of a few bytes that would fill memory: a line without an end, packed or not, and row groups without bounds."""

import bz2
import gzip
import lzma
import os
import subprocess
import sys

import polars as pl
import pytest

import fastpart as fp
from fastpart.cli import main
from fastpart.core.row_groups import refuse_large, row_groups
from fastpart.core.text_files import LONGEST, examined, zstd_bytes
from fastpart.errors import GraphFormatError, MemoryBudgetError
from fastpart.graphs.ingest.tables import open_table

PACKED = {"csv": bytes, "csv.gz": gzip.compress, "csv.bz2": bz2.compress, "csv.xz": lzma.compress}
HEADER = b"s,t\na,b\n"
LONG = b"a" * (2 * LONGEST)
TOO_LONG = r"not a text table in UTF-8: line {} or one behind it is longer than 1 MiB"


def frame_of_zeros(count):
    """A .zst of so many blocks of 128 KiB, each of one letter, in 4 bytes each."""
    blocks = [
        ((1 << 17) << 3 | 1 << 1 | (number + 1 == count)).to_bytes(3, "little") + b"a"
        for number in range(count)
    ]
    return b"\x28\xb5\x2f\xfd\x00\x58" + b"".join(blocks)


@pytest.mark.parametrize("suffix", PACKED)
def test_a_line_without_an_end_is_refused(tmp_path, suffix):
    for content, line in ((HEADER + LONG + b",b\n", 3), (LONG, 1), (HEADER * 200_000 + LONG, r"\d+")):
        (tmp_path / f"e.{suffix}").write_bytes(PACKED[suffix](content))
        with pytest.raises(GraphFormatError, match=rf"e.{suffix}: {TOO_LONG.format(line)}, or a \" there"):
            open_table("r", tmp_path / f"e.{suffix}")


def test_a_record_within_quotes_is_refused_where_it_is_too_long(tmp_path):
    lines = b"a\n" * (LONGEST + 2)
    (tmp_path / "e.csv").write_bytes(HEADER + b'"' + lines + b'",b\n')
    with pytest.raises(GraphFormatError, match=TOO_LONG.format(r"\d+")):
        open_table("r", tmp_path / "e.csv")
    (tmp_path / "e.csv").write_bytes(HEADER + b'"' + lines[: LONGEST // 2] + b'",b\nc,"d"\n')
    assert open_table("r", tmp_path / "e.csv").rows == 3


@pytest.mark.parametrize("suffix", ["ndjson", "jsonl.gz"])
def test_a_line_of_json_is_refused_where_it_is_too_long(tmp_path, suffix):
    content = b'{"s": 1, "t": 2}\n{"s": 1, "t": "' + LONG + b'"}\n'
    (tmp_path / f"e.{suffix}").write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    with pytest.raises(GraphFormatError, match=r"not NDJSON: line 2 or one behind it is longer than 1 MiB"):
        open_table("r", tmp_path / f"e.{suffix}")


def test_guessing_leaves_out_a_line_without_an_end(tmp_path, capsys):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "e.csv").write_bytes(HEADER + LONG)
    assert main(["ingest", "--guess", str(tmp_path / "t"), "-o", str(tmp_path / "s.yaml")]) == 0
    assert "left out e.csv: not a text table in UTF-8: line 3 or one behind" in capsys.readouterr().err


def test_lines_are_counted_before_the_long_one(tmp_path):
    for before in (0, 1, 200_000, 400_000):
        (tmp_path / "t").write_bytes(HEADER * before + LONG + b"\n" + HEADER)
        found = examined(str(tmp_path / "t"), '"').long
        assert before * 2 >= found - 1 > before * 2 - 2 * LONGEST / len(HEADER)
    (tmp_path / "t").write_bytes(HEADER * 400_000)
    assert examined(str(tmp_path / "t"), "") == (len(HEADER) * 400_000, 0, None)
    (tmp_path / "t").write_bytes(b'"' * 8)
    assert examined(str(tmp_path / "t"), '"') == (8, 8, None)


@pytest.mark.parametrize("verb", ["ingest", "convert", "open_graph"])
def test_a_zst_that_unpacks_to_far_more_is_refused(tmp_path, verb):
    (tmp_path / "e.csv.zst").write_bytes(frame_of_zeros(1 << 13))
    assert zstd_bytes(str(tmp_path / "e.csv.zst")) == 1 << 30
    schema = {"vertices": {"v": {}}, "relations": {"r": {"files": str(tmp_path / "e.csv.zst")}}}
    schema["relations"]["r"] |= {"source": {"v": "s"}, "target": {"v": "t"}}
    calls = {
        "ingest": lambda limit: fp.ingest(schema, tmp_path / "out", memory_limit=limit),
        "convert": lambda limit: fp.convert(tmp_path / "e.csv.zst", tmp_path / "o.bin", memory_limit=limit),
        "open_graph": lambda limit: fp.open_graph(tmp_path / "e.csv.zst", memory_limit=limit),
    }
    with pytest.raises(MemoryBudgetError, match=r"32.8 kB of zstd unpack to up to 1.1 GB, but the budget is"):
        calls[verb]("600M")
    assert sorted(os.listdir(tmp_path)) == ["e.csv.zst"]


def test_a_zst_of_text_is_read(tmp_path):
    pl.DataFrame({"s": range(1000), "t": range(1000)}).write_csv(tmp_path / "e.csv.zst", compression="zstd")
    assert zstd_bytes(str(tmp_path / "e.csv.zst")) >= 8000
    assert open_table("r", tmp_path / "e.csv.zst", memory_limit=100).rows == 1000


@pytest.mark.parametrize("content", [b"", b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfd\xff", b"\x50\x2a\x4d\x18"])
def test_what_is_no_zst_unpacks_to_nothing(tmp_path, content):
    (tmp_path / "t").write_bytes(content)
    assert zstd_bytes(str(tmp_path / "t")) == 0


@pytest.mark.parametrize("name", ["labels.csv", "labels.csv.gz", "p.txt"])
def test_tables_of_vertices_with_a_line_without_an_end_are_refused(tmp_path, name):
    out = tmp_path / "d"
    content = b"vertex,label\n0,1\n" + LONG if name != "p.txt" else b"0\n1\n" + LONG
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    p = fp.VertexPartition([0, 1], 2)
    read = fp.open_partition if name == "p.txt" else lambda file: p.save(out, graph=[[0, 1]], labels=file)
    with pytest.raises(GraphFormatError, match=rf"{name}: line 3 or one behind it is longer than 1 MiB"):
        read(tmp_path / name)


def test_row_groups_beyond_the_limit_are_refused(tmp_path):
    file = tmp_path / "e.parquet"
    zeros = pl.DataFrame({"s": [0] * 300_000, "t": [0] * 300_000})
    zeros.write_parquet(file, row_group_size=300_000)
    assert file.stat().st_size < 100_000
    text = r"e.parquet: a row group holds up to 300,000 rows, which take 4.8 MB of memory, but the budget is 4.2 MB"
    reader = open_table("r", file, memory_limit=4 << 20)
    with pytest.raises(MemoryBudgetError, match=text):
        next(reader.batches(0, ["s", "t"]))
    assert len(next(reader.batches(0, ["s"])))
    with pytest.raises(MemoryBudgetError, match=text):
        fp.convert(file, tmp_path / "o.bin", memory_limit=4 << 20)
    zeros.write_parquet(file, row_group_size=100_000)
    assert row_groups(str(file))[:2] == (3, 100_000)
    assert len(next(open_table("r", file, memory_limit=4 << 20).batches(0, ["s", "t"])))
    with pytest.raises(
        MemoryBudgetError, match=r"it holds 300,000 rows, which take 4.8 MB .* Raise memory_limit"
    ):
        refuse_large(str(file), row_groups(str(file)), zeros.dtypes, 4 << 20, whole=True)


def test_a_string_beyond_the_limit_is_refused(tmp_path):
    pl.DataFrame({"s": ["a" * (8 << 20)], "t": ["b"]}).write_parquet(tmp_path / "e.parquet")
    reader = open_table("r", tmp_path / "e.parquet", memory_limit=4 << 20)
    with pytest.raises(MemoryBudgetError, match=r"holds up to 1 rows, which take 8.4 MB"):
        next(reader.batches(0, ["s"]))


@pytest.mark.parametrize(
    "footer",
    [
        b"\x19\xf1" + b"\xff" * 9 + b"\x01",  # a list of truth values that claims 2^63 items
        b"\x16" + b"\xff" * 100_000,  # an integer without an end
        b"\x1c" * 100_000,  # structs in structs
        b"\x19\x1c" * 50_000,
    ],
)
def test_a_footer_without_an_end_is_left_to_polars(tmp_path, footer):
    (tmp_path / "t.parquet").write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    assert row_groups(str(tmp_path / "t.parquet")) is None
    with pytest.raises(GraphFormatError, match="not a Parquet file"):
        open_table("r", tmp_path / "t.parquet")


def test_a_gigabyte_of_one_line_is_refused_within_the_limit(tmp_path):
    with gzip.open(tmp_path / "e.csv.gz", "wb", compresslevel=1) as file:
        file.write(HEADER)
        for _ in range(1 << 10):
            file.write(b"a" * (1 << 20))
    (tmp_path / "s.yaml").write_text(
        "vertices: {v: {}}\nrelations: {r: {files: e.csv.gz, source: {v: s}, target: {v: t}}}\n"
    )
    code = (
        "import atexit, re, resource, sys\nfrom fastpart.cli import main\n"
        "peak = lambda: re.search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())[1]\n"
        "atexit.register(lambda: print(peak()))\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30),) * 2)\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    words = ["ingest", "s.yaml", "-o", "out", "--memory-limit", "600M"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr.startswith(
        "fastpart: error: e.csv.gz: not a text table in UTF-8: line 3 or one behind"
    )
    assert int(done.stdout) < 600 << 10
