"""Named arrays in files: the round trip, and files that are damaged or hostile."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import save_file

from rarenode._io.arrays import layout_of, read_arrays, read_note, write_arrays
from rarenode._io.files import replacing
from rarenode.errors import FileFormatError

DTYPES = st.sampled_from([np.float32, np.float64, np.int32, np.int64, np.bool_])
ARRAYS: dict[str, Any] = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([1, 2], dtype=np.int64)}


@given(
    arrays=st.dictionaries(
        st.text("abc.0", min_size=1), DTYPES.flatmap(lambda d: hnp.arrays(d, hnp.array_shapes(min_dims=0, min_side=0)))
    ),
    note=st.text(st.characters(codec="utf-8")),
)
def test_arrays_and_note_are_read_as_they_were_written(
    arrays: dict[str, Any], note: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "some.safetensors"
    write_arrays(path, arrays, note)
    read = read_arrays(path, layout_of(arrays))
    assert read_note(path) == note
    assert list(read) == list(arrays)
    for name, array in arrays.items():
        assert read[name].dtype == array.dtype
        np.testing.assert_array_equal(read[name], array)


def test_a_new_file_has_ordinary_permissions(tmp_path: Path) -> None:
    (tmp_path / "ordinary").touch()
    write_arrays(tmp_path / "arrays", ARRAYS)
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("ordinary", "arrays")}
    assert len(modes) == 1


def test_arrays_that_lie_in_memory_in_another_order(tmp_path: Path) -> None:
    """As the weights of a network do whose channels are last; safetensors itself would mix up their numbers."""
    whole = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)
    arrays: dict[str, Any] = {
        "channels last": np.ascontiguousarray(whole.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2),
        "transposed": whole.T,
        "every other": whole[:, ::2, ::-1],
        "one number": np.array(3, dtype=np.int64),
    }
    assert (arrays["channels last"] == whole).all()
    for note in ("", "with a checksum"):
        write_arrays(tmp_path / "arrays", arrays, note)
        read = read_arrays(tmp_path / "arrays", layout_of(arrays))
        for name, array in arrays.items():
            np.testing.assert_array_equal(read[name], array)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"a": None}, "the array 'a' is missing|bytes"),
        ({"c": np.zeros(2, dtype=np.float32)}, "the array 'c' should not be there"),
        ({"b": np.array([1.0, 2.0])}, r"the array 'b' is F64 \(2,\); I64 \(2,\) was expected"),
        ({"a": np.zeros((3, 2), dtype=np.float32)}, r"the array 'a' is F32 \(3, 2\); F32 \(2, 3\) was expected"),
    ],
)
def test_other_arrays_are_refused_by_name(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    path = tmp_path / "arrays"
    write_arrays(path, {name: array for name, array in (ARRAYS | change).items() if array is not None})
    with pytest.raises(FileFormatError, match=says):
        read_arrays(path, layout_of(ARRAYS))


def test_a_layout_larger_than_the_file_is_refused_before_anything_is_allocated(tmp_path: Path) -> None:
    write_arrays(tmp_path / "arrays", ARRAYS)
    huge = {"a": (np.dtype(np.float32), (2**40, 2**20))}
    with pytest.raises(FileFormatError, match="bytes, where its arrays need 4,611,686,018,427,387,904 and a header"):
        read_arrays(tmp_path / "arrays", huge)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "arrays"
    write_arrays(path, ARRAYS, "note")
    whole = path.read_bytes()
    huge_header = (1 << 62).to_bytes(8, "little") + whole[8:]
    for content in (b"", whole[:-1], whole[:20], whole + b"\0", huge_header, b"x" * 500):
        path.write_bytes(content)
        with pytest.raises(FileFormatError):
            read_arrays(path, layout_of(ARRAYS))


def test_the_same_content_is_the_same_bytes(tmp_path: Path) -> None:
    arrays = {"b": np.arange(3.0), "a": np.ones((2, 2), dtype=np.float32)}
    for number in range(20):
        write_arrays(tmp_path / str(number), arrays, "a note")
    assert len({(tmp_path / str(number)).read_bytes() for number in range(20)}) == 1


def test_a_file_of_an_older_version(tmp_path: Path) -> None:
    arrays = {"a": np.arange(3.0)}
    checksum = hashlib.sha256(b"a note" + b";a;<f8;(3,);" + arrays["a"].tobytes()).hexdigest()
    save_file(arrays, tmp_path / "old", {"rarenode": "a note", "sha256": checksum})
    assert read_note(tmp_path / "old") == "a note"
    assert read_arrays(tmp_path / "old", layout_of(arrays))["a"].tolist() == [0, 1, 2]
    for about in ({"sha256": "0" * 64}, {}):
        save_file(arrays, tmp_path / "edited", {"rarenode": "a note", **about})
        with pytest.raises(FileFormatError, match="its checksum is not that of its content"):
            read_arrays(tmp_path / "edited", layout_of(arrays))


def test_a_file_of_another_program_has_no_note(tmp_path: Path) -> None:
    save_file({"a": np.zeros(3)}, tmp_path / "arrays")
    with pytest.raises(FileFormatError, match="rarenode did not write it"):
        read_note(tmp_path / "arrays")


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        write_arrays(tmp_path / "nowhere" / "arrays", ARRAYS)


def test_the_file_of_a_writer_stays_its_own(tmp_path: Path) -> None:
    """Another writer of the same file removes what no living process has locked."""
    with replacing(tmp_path / "model") as (part,):
        write_arrays(part, ARRAYS, "first")
        with replacing(tmp_path / "model") as (second,):
            write_arrays(second, ARRAYS, "second")
        assert read_note(tmp_path / "model") == "second"
    assert read_note(tmp_path / "model") == "first"
