"""Readers of pictures: named by a table, or all in a folder; their labels, ids and parts; what is refused."""

from __future__ import annotations

import unicodedata
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image

from rarenode import Dataset, Hierarchy
from rarenode.data.dataset import DatasetSplits
from rarenode.data.images import Images
from rarenode.data.readers import read
from rarenode.data.sources import open_data
from rarenode.data.table_options import Expected, TableOptions
from rarenode.errors import ArgumentError, DataError, FileFormatError, MissingFileError
from rarenode.training.embedding import usable
from tests.data.picture_files import encoded
from tests.encoders import plain_encoder

TREE = Hierarchy.from_paths(["Biota > Corals", "Biota > Sponges"])
NAMES = ("a.png", "b b.jpg", "deep/ç.png")
TAXA = ("Biota > Corals", "Biota > Sponges; Biota > Corals", "Biota")
CLOSED = [[1, 1, 0], [1, 1, 1], [1, 0, 0]]


def write_pictures(folder: Path, names: Sequence[str]) -> Path:
    for number, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        kind = {".png": "PNG", ".tif": "TIFF"}.get(path.suffix.lower(), "JPEG")
        path.write_bytes(encoded(Image.new("RGB", (4, 3), (number, 5, 5)), kind))
    return folder


def write_table(path: Path, /, **columns: Sequence[Any]) -> Path:
    pl.DataFrame(columns).write_csv(path)
    return path


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return write_pictures(tmp_path / "photos", NAMES)


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    return write_table(tmp_path / "survey.csv", image=NAMES, depth=[1, 2, 3], taxa=TAXA)


def zipped(folder: Path) -> Path:
    with zipfile.ZipFile(folder.with_suffix(".zip"), "w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder).as_posix())
    return folder.with_suffix(".zip")


def paths(data: Dataset) -> list[str]:
    assert isinstance(data.X, Images)
    return [str(file) for file in data.X.files]


# --- tables ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_zipped", [False, True])
def test_a_table_and_a_folder(survey: Path, photos: Path, is_zipped: bool) -> None:
    root = zipped(photos) if is_zipped else photos
    data = Dataset.read(survey, labels="taxa", images=root)
    assert paths(data) == [str(root / name) for name in NAMES]
    assert data.ids == NAMES
    assert data.feature_names is None
    assert data.Y.astype(int).tolist() == CLOSED
    assert data.notes == ("not used, because rows are pictures: 'depth'",)
    assert data.reading is not None
    assert (data.reading.image, data.reading.id) == ("image", "image")


@pytest.mark.parametrize("column", ["image", "File", "FILENAME", "path", "photo", "image_path"])
def test_the_column_of_pictures_is_guessed(tmp_path: Path, photos: Path, column: str) -> None:
    table = write_table(tmp_path / "t.csv", taxa=TAXA, **{column: NAMES})
    assert Dataset.read(table, labels="taxa", images=photos).ids == NAMES


def test_the_column_of_pictures_is_named(tmp_path: Path, photos: Path) -> None:
    table = write_table(tmp_path / "t.csv", image=["x", "y", "z"], shot=NAMES, taxa=TAXA)
    assert paths(Dataset.read(table, labels="taxa", images=photos, image="shot"))[0] == str(photos / "a.png")
    with pytest.raises(ArgumentError, match=r"t\.csv has no column 'shoot' .*\(--image\); it has 'image', 'shot'"):
        Dataset.read(table, labels="taxa", images=photos, image="shoot")
    other = write_table(tmp_path / "u.csv", shot=NAMES, taxa=TAXA)
    with pytest.raises(ArgumentError, match=r"which column of .*u\.csv names the pictures \(--image\)"):
        Dataset.read(other, labels="taxa", images=photos)


def test_without_a_folder_paths_begin_beside_the_table(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    table = write_table(photos / "t.csv", image=NAMES, taxa=TAXA)
    assert paths(Dataset.read(table, labels="taxa", image="image")) == [str(photos / name) for name in NAMES]


def test_names_without_a_suffix_and_with_backslashes(tmp_path: Path, photos: Path) -> None:
    names = ["a", "b b", "deep\\ç"]
    table = write_table(tmp_path / "t.csv", image=names, taxa=TAXA)
    data = Dataset.read(table, labels="taxa", images=photos)
    assert paths(data) == [str(photos / name) for name in NAMES]
    assert data.ids == tuple(names)  # as the table has them


def test_numbers_as_names(tmp_path: Path) -> None:
    write_pictures(tmp_path / "photos", ["0012.jpg", "0013.jpg", "0014.jpg"])
    (tmp_path / "t.csv").write_text("image,taxa\n0012,Biota > Corals\n0013,Biota\n0014,Biota\n")
    data = Dataset.read(tmp_path / "t.csv", labels="taxa", images=tmp_path / "photos")
    assert data.ids == ("0012", "0013", "0014")
    assert paths(data)[0].endswith("0012.jpg")


def test_a_data_frame(photos: Path) -> None:
    frame = pl.DataFrame({"image": NAMES, "taxa": TAXA})
    data = Dataset.read(frame, labels="taxa", images=photos)
    assert (data.ids, paths(data)[1]) == (NAMES, str(photos / "b b.jpg"))


def test_a_column_of_ids_beside_that_of_pictures(tmp_path: Path, photos: Path) -> None:
    """One picture may then be in several rows, such as a part of it in each."""
    table = write_table(tmp_path / "t.csv", key=["k1", "k2", "k3"], image=["a.png", "a.png", "b b.jpg"], taxa=TAXA)
    data = Dataset.read(table, labels="taxa", images=photos, id="key")
    assert data.ids == ("k1", "k2", "k3")
    with pytest.raises(
        FileFormatError, match=r"t\.csv, line 3: the picture 'a\.png'.*twice; write all its labels.*--id"
    ):
        Dataset.read(table, labels="taxa", images=photos)


def zip_of(path: Path, photos: Path, names: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, source in names.items():
            archive.writestr(zipfile.ZipInfo(name), (photos / source).read_bytes())
    return path


@pytest.mark.parametrize("top", ["photos/", "survey/photos/", "./photos/"])
def test_a_zipped_folder(tmp_path: Path, photos: Path, survey: Path, top: str) -> None:
    """Programs that zip a folder put its name before those of the files in it, which the table does not have."""
    names = {f"{top}{name}": name for name in NAMES} | {"__MACOSX/._a.png": "a.png"}
    archive = zip_of(tmp_path / "p.zip", photos, names)
    data = Dataset.read(survey, labels="taxa", images=archive)
    assert data.X.names == tuple(f"{top.removeprefix('./')}{name}" for name in NAMES)
    assert data.ids == NAMES
    assert data.X.file(0).read() == (photos / "a.png").read_bytes()
    with_top = write_table(tmp_path / "t.csv", image=[f"photos/{name}" for name in NAMES], taxa=TAXA)
    assert Dataset.read(with_top, labels="taxa", images=archive).X.names == data.X.names


def test_names_in_a_zipped_folder_must_be_clear(tmp_path: Path, photos: Path, survey: Path) -> None:
    with pytest.raises(DataError, match="none of its 3 pictures is there"):
        archive = zip_of(tmp_path / "two.zip", photos, {"one/a.png": "a.png", "two/b b.jpg": "b b.jpg"})
        Dataset.read(survey, labels="taxa", images=archive)
    archive = zip_of(tmp_path / "mixed.zip", photos, {"a.png": "a.png", "photos/b b.jpg": "b b.jpg"})
    with pytest.raises(DataError, match="2 pictures of 3 cannot be used"):
        usable([Dataset.read(survey, labels="taxa", images=archive)], plain_encoder())


def test_dots_and_slashes_in_names(tmp_path: Path, photos: Path) -> None:
    dotted = ["./a.png", ".\\b b.jpg", "deep/./ç.png"]
    table = write_table(tmp_path / "t.csv", image=dotted, taxa=TAXA)
    archive = zip_of(tmp_path / "p.zip", photos, {f"./{name}": name for name in NAMES})
    for root in (photos, zipped(photos), archive):
        data = Dataset.read(table, labels="taxa", images=root)
        assert all(data.X.file(row).read() == (photos / name).read_bytes() for row, name in enumerate(NAMES))
        assert data.ids == tuple(dotted)  # as the table has them
    assert Images.below(archive).names == NAMES
    outside = zip_of(tmp_path / "o.zip", photos, {"../a.png": "a.png", "/a.png": "a.png", "x/../../b.png": "a.png"})
    for names in (["../a.png"], ["/a.png"], ["x/../../b.png"], ["a.png"]):
        with pytest.raises(DataError, match="none of its 1 picture is there"):
            Dataset.read(write_table(tmp_path / "t.csv", image=names, taxa=TAXA[:1]), labels="taxa", images=outside)


NFC, NFD = (unicodedata.normalize(form, "Biota/Käfer") for form in ("NFC", "NFD"))


@pytest.mark.parametrize("is_zipped", [False, True])
@pytest.mark.parametrize(("ours", "theirs"), [(NFC, NFD), (NFD, NFC)])
def test_names_in_another_form_of_unicode(tmp_path: Path, is_zipped: bool, ours: str, theirs: str) -> None:
    photos = write_pictures(tmp_path / "photos", ["a.png", f"{theirs}/1.png", f"{theirs}/2.png"])
    root = zipped(photos) if is_zipped else photos
    names = [f"{ours}/1.png", f"{ours}/2", "a.png"]
    data = Dataset.read(write_table(tmp_path / "t.csv", image=names, taxa=TAXA), labels="taxa", images=root)
    assert data.X.names == (f"{theirs}/1.png", f"{theirs}/2.png", "a.png")
    assert data.ids == tuple(names)
    only = write_table(tmp_path / "t.csv", image=names[:1], taxa=TAXA[:1])
    assert Dataset.read(only, labels="taxa", images=root).X.names == (f"{theirs}/1.png",)
    top = zip_of(tmp_path / "p.zip", photos, {f"photos/{theirs}/1.png": f"{theirs}/1.png"})
    assert Dataset.read(only, labels="taxa", images=top).X.names == (f"photos/{theirs}/1.png",)


def test_labels_in_another_form_of_unicode(tmp_path: Path) -> None:
    tree = Hierarchy.from_paths([NFC.replace("/", " > "), "Biota > Fish"])
    photos = write_pictures(tmp_path / "photos", [f"{NFD}/1.png", "Biota/Fish/1.png"])
    assert Dataset.read(photos, hierarchy=tree).Y.astype(int).tolist() == [[1, 1, 0], [1, 0, 1]]
    flat = Hierarchy.from_edges([("Biota", NFC.removeprefix("Biota/"))])
    classes = write_pictures(tmp_path / "flat", [f"{NFD.removeprefix('Biota/')}/1.png"])
    assert Dataset.read(classes, hierarchy=flat).Y.all()


def test_nodes_that_look_the_same(tmp_path: Path) -> None:
    photos = write_pictures(tmp_path / "photos", [f"{NFC}/1.png", f"{NFD}/1.png", "Biota/Fish/1.png"])
    told = r"photos: 2 nodes look like others.*'Biota > Ka\\u0308fer' and 'Biota > K\\xe4fer'; write accents"
    with pytest.warns(RuntimeWarning, match=told):
        assert len(Dataset.read(photos).hierarchy) == 4


# --- labels of every form --------------------------------------------------------------------------------------------


def test_labels_in_levels_indicators_and_files(tmp_path: Path, photos: Path) -> None:
    levels = write_table(tmp_path / "l.csv", image=NAMES, one=["Biota"] * 3, two=["Corals", "Sponges", None])
    data = Dataset.read(levels, labels=["one", "two"], images=photos)
    assert data.Y.astype(int).tolist() == [[1, 1, 0], [1, 0, 1], [1, 0, 0]]
    yes_no: dict[str, Any] = {"Biota > Corals": [1, 0, 0], "Biota > Sponges": [0, 1, None]}
    indicators = write_table(tmp_path / "i.csv", image=NAMES, **yes_no)
    data = Dataset.read(indicators, labels="Biota*", images=photos, hierarchy=TREE)
    assert data.Y[:2].astype(int).tolist() == [[1, 1, 0], [1, 0, 1]]
    assert data.known is not None
    assert not data.known[2, 2]
    plain = write_table(tmp_path / "p.csv", image=NAMES)
    labels = tmp_path / "labels.csv"
    labels.write_text("id,label\na.png,Biota > Corals\ndeep/ç.png,Biota\nb b.jpg,Biota > Sponges\n")
    data = Dataset.read(plain, labels=labels, images=photos)
    assert data.Y.astype(int).tolist() == [[1, 1, 0], [1, 0, 1], [1, 0, 0]]


def test_the_layout_of_benthicnet(tmp_path: Path) -> None:
    """Pictures are dataset/site/image.jpg; labels are lists of node numbers, whose titles a hierarchy table has."""
    write_pictures(tmp_path / "all", ["nrcan/s 1/IMG_1.jpg", "nrcan/s2/IMG_2.jpg", "fk/s2/x.y.jpg"])
    table = write_table(
        tmp_path / "b.csv",
        url=["u1", "u2", "u3"],
        dataset=["nrcan", "nrcan", "fk"],
        site=["s 1", "s2", "s2"],
        image=["IMG_1.PNG", "IMG_2", "x.y"],
        labels=["[0, 3]", "[1]", "[]"],
    )
    hierarchy = tmp_path / "nodes.csv"
    hierarchy.write_text("id,parent,name\n0,,Biota\n1,0,Corals\n2,0,Sponges\n3,1,Stony corals\n")
    told = r"b\.csv: JPEG copies are used in place of 1 picture of 3 .*, such as nrcan/s 1/IMG_1\.jpg for .*IMG_1\.PNG$"
    with pytest.warns(RuntimeWarning, match=told):
        data = Dataset.read(table, labels="labels", images=tmp_path / "all", hierarchy=hierarchy)
    assert data.hierarchy.nodes == ("0", "1", "2", "3")
    assert data.hierarchy.titles == ("Biota", "Corals", "Sponges", "Stony corals")
    assert data.Y.astype(int).tolist() == [[1, 1, 0, 1], [1, 1, 0, 0], [0, 0, 0, 0]]
    assert data.known is not None
    assert data.known.any(axis=1).tolist() == [True, True, False]
    assert [Path(path).relative_to(tmp_path / "all").as_posix() for path in paths(data)] == [
        "nrcan/s 1/IMG_1.jpg",
        "nrcan/s2/IMG_2.jpg",
        "fk/s2/x.y.jpg",
    ]


@pytest.mark.parametrize("is_zipped", [False, True])
def test_a_copy_is_not_the_picture_of_another_row(tmp_path: Path, is_zipped: bool) -> None:
    root = write_pictures(tmp_path / "all", ["d/s/1.jpg", "d/s/2.jpg", "d/s/3.jpg", "d/s/4.jpg"])
    root = zipped(root) if is_zipped else root
    names = ["1.jpg", "1.png", "2", "2.tif", "3.png", "3.tif", "4.png"]
    where: dict[str, Any] = {"dataset": ["d"] * 7, "site": ["s"] * 7, "image": names}
    table = write_table(tmp_path / "b.csv", taxa=["Biota > Corals"] * 7, **where)
    with pytest.warns(RuntimeWarning, match=r"in place of 1 picture of 7 .*such as d/s/4\.jpg for d/s/4\.png"):
        data = Dataset.read(table, labels="taxa", images=root)
    assert paths(data)[::2] == [str(root / name) for name in ("d/s/1.jpg", "d/s/2.jpg", "d/s/3.png", "d/s/4.jpg")]
    told = r"4 pictures of 7 cannot be used .*d/s/1\.png: .*no such file; .*d/s/2\.tif: .*d/s/3\.png: .*d/s/3\.tif: "
    with pytest.raises(DataError, match=told):
        usable([data], plain_encoder())


@pytest.mark.parametrize("is_zipped", [False, True])
def test_a_name_without_a_suffix_must_be_clear(tmp_path: Path, is_zipped: bool) -> None:
    root = write_pictures(tmp_path / "photos", ["a.png", "b.jpeg", "b.png"])
    root = zipped(root) if is_zipped else root
    table = write_table(tmp_path / "t.csv", image=["a", "b"], taxa=TAXA[:2])
    with pytest.raises(FileFormatError, match=r"t\.csv, line 3: the picture 'b' may be b\.png or b\.jpeg; write the"):
        Dataset.read(table, labels="taxa", images=root)


def test_pictures_of_one_name_at_several_sites(tmp_path: Path) -> None:
    write_pictures(tmp_path / "all", ["d/s1/1.jpg", "d/s2/1.jpg"])
    where: dict[str, Any] = {"dataset": ["d", "d"], "site": ["s1", "s2"], "image": ["1", "1"]}
    table = write_table(tmp_path / "b.csv", taxa=TAXA[:2], **where)
    data = Dataset.read(table, labels="taxa", images=tmp_path / "all")
    assert data.ids == ("d/s1/1", "d/s2/1")
    assert paths(data) == [str(tmp_path / "all" / name) for name in ("d/s1/1.jpg", "d/s2/1.jpg")]
    twice = write_table(tmp_path / "t.csv", taxa=TAXA[:2], **where | {"site": ["s1", "s1"]})
    with pytest.raises(FileFormatError, match=r"line 3: the picture 'd/s1/1'.*twice"):
        Dataset.read(twice, labels="taxa", images=tmp_path / "all")


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["['Corals', 'Sponges']", "['Corals']"], [{"Corals", "Sponges"}, {"Corals"}]),
        (['["Corals","Sponges"]', "[ 'Corals' ]"], [{"Corals", "Sponges"}, {"Corals"}]),
        (["[0, 3]", "[12]"], [{"0", "3"}, {"12"}]),
        (["[0, 3]", None], [{"0", "3"}, set()]),
        (["[]", "['Corals']"], [set(), {"Corals"}]),
        (["[0, 3]", "Corals"], [{"[0, 3]"}, {"Corals"}]),  # not all are lists, so brackets are part of names
        (["[sic]", "Corals; [0]"], [{"[sic]"}, {"Corals", "[0]"}]),
        (["['it's']", "Corals"], [{"['it's']"}, {"Corals"}]),
    ],
)
def test_lists_in_cells(cells: list[str | None], expected: list[set[str]]) -> None:
    nodes = sorted(set().union(*expected))
    tree = Hierarchy.from_edges([("root", node) for node in nodes])
    frame = pl.DataFrame({"x": [1.0, 2.0], "labels": cells}, schema_overrides={"labels": pl.String})
    data = Dataset.read(frame, labels="labels", hierarchy=tree)
    assert [set(found) - {"root"} for found in tree.decode(data.Y)] == expected


# --- what is missing -------------------------------------------------------------------------------------------------


def test_missing_files_are_found_when_they_are_used(tmp_path: Path, photos: Path) -> None:
    names = ["a.png", "gone1.jpg", "b b.jpg", "gone2"]
    table = write_table(tmp_path / "t.csv", image=names, taxa=[*TAXA, "Biota"])
    data = Dataset.read(table, labels="taxa", images=photos)
    assert len(data) == 4
    with pytest.raises(DataError, match=r"t\.csv: 2 pictures of 4 cannot be used .*gone1\.jpg: .*gone2: ") as caught:
        usable([data], plain_encoder())
    assert len(caught.value.details) == 2
    with pytest.warns(RuntimeWarning, match=r"gone1\.jpg.*gone2"):
        (kept,) = usable([data], plain_encoder(), skip=True)
    assert kept.ids == ("a.png", "b b.jpg")


def test_if_none_is_there_it_is_an_error_at_once(tmp_path: Path, photos: Path, survey: Path) -> None:
    (tmp_path / "other").mkdir()
    with pytest.raises(DataError, match=r"none of its 3 pictures is there; looked for .*other/a\.png"):
        Dataset.read(survey, labels="taxa", images=tmp_path / "other")
    with pytest.raises(MissingFileError, match="nowhere"):
        Dataset.read(survey, labels="taxa", images=tmp_path / "nowhere")
    with pytest.raises(FileFormatError, match=r"survey\.csv.*expected a folder"):
        Dataset.read(survey, labels="taxa", images=survey)


@pytest.mark.parametrize("blank", ["", "  ", "NA"])
@pytest.mark.parametrize("key", [None, "key"])
def test_a_blank_cell_is_a_picture_that_is_missing(tmp_path: Path, photos: Path, blank: str, key: str | None) -> None:
    (tmp_path / "t.csv").write_text(f"key,image,taxa\n1,a.png,Biota\n2,{blank},Biota > Corals\n3,{blank},Biota\n")
    data = Dataset.read(tmp_path / "t.csv", labels="taxa", images=photos, ignore=["key"] if key is None else [], id=key)
    told = r"t\.csv: 2 pictures of 3 .*t\.csv, line 3: no picture is named there; .*t\.csv, line 4: no picture"
    with pytest.raises(DataError, match=told):
        usable([data], plain_encoder())
    with pytest.warns(RuntimeWarning, match=r"left out: 2 pictures of 3 .*line 3"):
        (kept,) = usable([data], plain_encoder(), skip=True)
    assert kept.ids == ("a.png" if key is None else "1",)
    (tmp_path / "t.csv").write_text(f"image,taxa\n{blank},Biota > Corals\n")
    with pytest.raises(DataError, match=r"t\.csv: column 'image', which should name the pictures, is blank"):
        Dataset.read(tmp_path / "t.csv", labels="taxa", images=photos)


def test_blank_cells_of_several_files_and_of_none(tmp_path: Path, photos: Path) -> None:
    one = pl.DataFrame({"image": ["a.png", None], "taxa": ["Biota > Corals", "Biota"]})
    two = pl.DataFrame({"image": [None, "b b.jpg"], "taxa": ["Biota", "Biota"]})
    one.write_parquet(tmp_path / "1.parquet")
    two.write_parquet(tmp_path / "2.parquet")
    files = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    data = Dataset.read(*files, labels="taxa", images=photos)
    assert [str(data.X.file(row)) for row in (1, 2)] == [f"{files[0]}, row 2", f"{files[1]}, row 1"]
    data = Dataset.read(pl.concat([one, two]), labels="taxa", images=photos)
    assert [str(data.X.file(row)) for row in (1, 2)] == ["the data frame, row 1", "the data frame, row 2"]


# --- parts -----------------------------------------------------------------------------------------------------------


def parted(folder: Path, parts: Sequence[str | None], **columns: Any) -> Path:
    names = [f"{number}.png" for number in range(len(parts))]
    write_pictures(folder / "photos", names)
    return write_table(folder / "t.csv", image=names, part=parts, taxa=["Biota > Corals"] * len(parts), **columns)


def opened(path: Path, **options: Any) -> Any:
    given = TableOptions(labels=("taxa",), partition="part", images=str(path.parent / "photos"), **options)
    return open_data(path, options=given)


def test_a_column_says_which_part_a_row_belongs_to(tmp_path: Path) -> None:
    parts = ["train", "Val", "TEST", "training", "validation", "valid", "dev", "test", " Train "]
    data = opened(parted(tmp_path, parts))
    assert isinstance(data, DatasetSplits)
    assert data.valid is not None
    assert data.train.ids == ("0.png", "3.png", "8.png")
    assert data.valid.ids == ("1.png", "4.png", "5.png", "6.png")
    assert data.test.ids == ("2.png", "7.png")
    for part in (data.train, data.valid, data.test):
        assert part.X.names == part.ids
        assert part.partition is None
    assert data.train_and_valid.ids == (*data.train.ids, *data.valid.ids)
    assert data.train_and_valid.X.names == data.train_and_valid.ids


def test_parts_of_ordinary_tables(tmp_path: Path) -> None:
    table = write_table(
        tmp_path / "t.csv", depth=[1.0, 2.0, 3.0], part=["test", "train", "train"], taxa=["a > b", "a > c", "a > b"]
    )
    data = open_data(table, options=TableOptions(labels=("taxa",), partition="part"))
    assert isinstance(data, DatasetSplits)
    assert data.valid is None
    assert data.train.feature_names == ("depth",)
    assert np.asarray(data.train.X).ravel().tolist() == [2.0, 3.0]
    assert np.asarray(data.test.X).ravel().tolist() == [1.0]
    assert data.test.hierarchy == data.train.hierarchy


def test_parts_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(
        FileFormatError, match=r"t\.csv, line 4: column 'part': expected train, valid or test, got 'trian'"
    ):
        opened(parted(tmp_path, ["train", "test", "trian"]))
    with pytest.raises(FileFormatError, match=r"t\.csv, line 3: column 'part'.*got a blank"):
        opened(parted(tmp_path, ["train", None, "test"]))
    with pytest.raises(DataError, match="no test rows"):
        opened(parted(tmp_path, ["train", "valid"]))
    with pytest.raises(DataError, match="no train rows"):
        opened(parted(tmp_path, ["test", "valid"]))
    with pytest.raises(ArgumentError, match=r"no column 'piece' \(--partition\)"):
        open_data(tmp_path / "t.csv", options=TableOptions(labels=("taxa",), partition="piece"))


# --- folders ---------------------------------------------------------------------------------------------------------

FOLDERS = ("Biota/Corals/1.jpg", "Biota/Corals/2.png", "Biota/Sponges/1.jpg", "Biota/3.jpg", "4.jpg")


def test_a_zipped_folder_of_classes_has_a_node_too_many(tmp_path: Path, photos: Path) -> None:
    names = {"photos/Corals/Soft/a.png": "a.png", "photos/Fish/b b.jpg": "b b.jpg"}
    archive = zip_of(tmp_path / "p.zip", photos, names)
    found = Dataset.read(archive)
    assert found.hierarchy.nodes[0] == "photos"
    assert "are in the folder 'photos', which is a node that every row has; pack what is in" in found.notes[-1]
    packed = zip_of(tmp_path / "q.zip", photos, {name.removeprefix("photos/"): to for name, to in names.items()})
    assert "photos" not in Dataset.read(packed).hierarchy.nodes
    assert not Dataset.read(packed).notes


@pytest.mark.parametrize("is_zipped", [False, True])
def test_folders_are_labels(tmp_path: Path, is_zipped: bool) -> None:
    root = write_pictures(tmp_path / "photos", FOLDERS)
    data = Dataset.read(zipped(root) if is_zipped else root)
    assert data.ids == tuple(sorted(FOLDERS))
    assert data.hierarchy == TREE
    row = {name: data.Y[number].astype(int).tolist() for number, name in enumerate(data.ids or ())}
    assert row["Biota/Corals/1.jpg"] == [1, 1, 0]
    assert row["Biota/Sponges/1.jpg"] == [1, 0, 1]
    assert row["Biota/3.jpg"] == [1, 0, 0]
    assert data.known is not None  # a picture in no folder has no label
    assert data.known.all(axis=1).tolist() == [name != "4.jpg" for name in data.ids or ()]


def test_folders_with_a_hierarchy(tmp_path: Path) -> None:
    root = write_pictures(tmp_path / "photos", ["Corals/1.jpg", "Sponges; red/1.jpg"])
    tree = tmp_path / "tree.csv"
    tree.write_text("parent,child\nBiota,Corals\nBiota,Sponges; red\n")
    data = Dataset.read(root, hierarchy=tree)
    assert data.Y.astype(int).tolist() == [[1, 1, 0], [1, 0, 1]]
    with pytest.raises(DataError, match="say nothing of a hierarchy"):
        Dataset.read(root)
    with pytest.raises(FileFormatError, match=r"the label 'Corals' is not in the hierarchy"):
        Dataset.read(root, hierarchy=Hierarchy.from_paths(["Biota > Coral"]))


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("Biota/Corals > Acropora", r"'Corals > Acropora' contains ' > '"),
        ("Corals > Acropora", r"'Corals > Acropora' contains ' > '"),
        ("Biota/Cor\nals", r"'Cor\\nals' contains a line break"),
        ("Biota/Cor\x1bals", r"control character"),
        ("Biota/Cor\u2028als", r"line break"),
        ("Biota/Corals ", r"'Corals ' begins or ends with a blank"),
        ("Biota/ ", r"' ' begins or ends with a blank"),
    ],
)
@pytest.mark.parametrize("is_zipped", [False, True])
def test_a_folder_is_one_node(tmp_path: Path, folder: str, why: str, is_zipped: bool) -> None:
    root = write_pictures(tmp_path / "photos", ["Biota/Sponges/1.jpg", f"{folder}/1.jpg"])
    with pytest.raises(DataError, match=rf"photos.*the name of the folder .*{why}.*rename it"):
        Dataset.read(zipped(root) if is_zipped else root)


def test_signs_that_folder_names_may_have(tmp_path: Path) -> None:
    names = ("a>b", "a; b", "[0, 3]", "深海\u3000魚", "a\\b", "1.5", "x|y")
    root = write_pictures(tmp_path / "photos", [f"Biota/{name}/1.jpg" for name in names])
    data = Dataset.read(root)
    assert set(data.hierarchy.nodes) == {"Biota", *(f"Biota > {name}" for name in names)}
    assert (data.Y.sum(axis=1) == 2).all()


def test_a_folder_named_as_a_node_of_a_given_hierarchy(tmp_path: Path) -> None:
    root = write_pictures(tmp_path / "photos", ["Biota > Corals/1.jpg", "Biota > Sponges/1.jpg"])
    assert Dataset.read(root, hierarchy=TREE).Y.astype(int).tolist() == [[1, 1, 0], [1, 0, 1]]
    by_paths = Dataset.read(root, path_separator=" > ")
    assert by_paths.hierarchy == TREE


def test_a_folder_with_a_file_of_labels(tmp_path: Path) -> None:
    root = write_pictures(tmp_path / "photos", ["1.jpg", "x/2.jpg"])
    labels = tmp_path / "labels.csv"
    labels.write_text("id,label\n1.jpg,Biota > Corals\nx/2.jpg,Biota > Sponges\n")
    data = Dataset.read(root, labels=labels)
    assert data.Y.astype(int).tolist() == [[1, 1, 0], [1, 0, 1]]
    assert data.notes == ()
    labels.write_text("id,label\n1.jpg,Biota > Corals\n2.jpg,Biota > Sponges\n")
    with pytest.warns(RuntimeWarning, match=r"1 of 2 ids of .*labels\.csv are not in .*photos, such as '2\.jpg'"):
        Dataset.read(root, labels=labels)


def test_folders_that_cannot_be_read(tmp_path: Path) -> None:
    flat = write_pictures(tmp_path / "flat", ["1.jpg"])
    with pytest.raises(ArgumentError, match=r"no folders, whose names could be labels.*--images .*flat --labels"):
        Dataset.read(flat)
    tables = tmp_path / "tables"
    tables.mkdir()
    with pytest.raises(FileFormatError, match=r"folder without pictures .*; name a file in it, or a pattern"):
        Dataset.read(tables)
    with pytest.raises(FileFormatError, match=r"archive without pictures \(\.jpg, "):
        Dataset.read(zipped(tables))
    write_table(tables / "t.csv", taxa=TAXA)
    with pytest.raises(FileFormatError, match=r"folder without pictures .*; name a file in it, such as .*t\.csv"):
        Dataset.read(tables)
    with pytest.raises(ArgumentError, match="only one folder"):
        read([flat, flat])


# --- options that do not fit pictures --------------------------------------------------------------------------------


def test_a_column_names_pictures_and_nothing_else(tmp_path: Path, photos: Path) -> None:
    table = write_table(tmp_path / "t.csv", image=NAMES, taxa=TAXA, part=["train", "train", "test"])
    with pytest.raises(ArgumentError, match=r"t\.csv: the column 'image' cannot name the pictures and have the labels"):
        Dataset.read(table, labels="image", images=photos)
    with pytest.raises(ArgumentError, match=r"'taxa' cannot name the pictures and have the labels too \(--labels\)$"):
        Dataset.read(table, labels="ta*", images=photos, image="taxa")
    with pytest.raises(ArgumentError, match=r"'part' cannot name the pictures and name the parts"):
        Dataset.read(table, labels="taxa", images=photos, image="part", partition="part")
    with pytest.raises(ArgumentError, match=r"'image' cannot name the pictures and be left out .*; say which"):
        Dataset.read(table, labels="taxa", images=photos, ignore=["image"])
    other = write_table(tmp_path / "u.csv", image=TAXA, path=NAMES)
    assert Dataset.read(other, labels="image", images=photos).ids == NAMES  # the next that is called so


def test_columns_to_learn_from_are_refused(survey: Path, photos: Path) -> None:
    with pytest.raises(ArgumentError, match="no other column is learned from; leave out --features"):
        Dataset.read(survey, labels="taxa", images=photos, features=["depth"])
    data = Dataset.read(survey, labels="taxa", images=photos, ignore=["depth"])
    assert data.notes == ()  # left out on purpose
    with pytest.raises(ArgumentError, match=r"no column 'deep'"):
        Dataset.read(survey, labels="taxa", images=photos, ignore=["deep"])


@pytest.mark.parametrize(
    "option",
    [
        {"features": ["depth"]},
        {"ignore": ["depth"]},
        {"partition": "part"},
        {"weight": "w"},
        {"id": "key"},
        {"image": "image"},
        {"images": "elsewhere"},
    ],
)
def test_a_folder_has_no_columns(tmp_path: Path, option: dict[str, Any]) -> None:
    root = write_pictures(tmp_path / "photos", FOLDERS)
    with pytest.raises(ArgumentError, match=rf"photos: --{next(iter(option))} is for a table that names pictures"):
        Dataset.read(root, **option)


def test_rows_for_a_model(tmp_path: Path, photos: Path, survey: Path) -> None:
    """A model for pictures takes tables and folders; one for tables takes no folder."""
    wants = Expected(TREE, None, images=True, reading=TableOptions(labels=("taxa",), id="shot", image="shot"))
    data = read(photos, expected=wants, labels=False)
    assert data.ids == tuple(sorted(NAMES))
    assert data.hierarchy is TREE
    assert data.known is not None
    assert not data.known.any()
    table = read(survey, options=TableOptions(images=str(photos)), expected=wants, labels=False)
    assert table.ids == NAMES
    with pytest.raises(DataError, match="folder of pictures, and the model was trained on tables"):
        read(photos, expected=Expected(TREE, ("depth",)), labels=False)


def test_the_picture_of_a_site_comes_before_others_of_its_name(tmp_path: Path) -> None:
    photos = write_pictures(tmp_path / "photos", ["3.jpg", "d/s/3.jpg", "d/t/3.jpg"])
    table = write_table(tmp_path / "t.csv", dataset=["d", "d"], site=["s", "t"], image=["3", "3"], taxa=["a", "b"])
    found = read(table, options=TableOptions(images=str(photos), labels=("taxa",)), hierarchy=Hierarchy.from_edges(
        [("all", "a"), ("all", "b")]
    ))  # fmt: skip
    assert [file.name for file in found.X.files] == ["d/s/3.jpg", "d/t/3.jpg"]
    assert found.ids == ("d/s/3", "d/t/3")


def test_a_name_with_a_backslash_is_itself_if_it_is_there(tmp_path: Path) -> None:
    photos = write_pictures(tmp_path / "photos", ["a\\b.png", "a/b.png"])
    table = write_table(tmp_path / "t.csv", image=["a\\b.png"], taxa=["all > x"])
    found = read(table, options=TableOptions(images=str(photos), labels=("taxa",)))
    assert found.X.names == ("a\\b.png",)


def test_a_name_that_is_no_text_is_named(tmp_path: Path) -> None:
    photos = write_pictures(tmp_path / "photos", ["a/1.png", "a/\udcff.png"])
    with pytest.raises(DataError, match=r"udcff.png' is not UTF-8 text; rename"):
        read(photos)


def test_picture_files_for_a_model(tmp_path: Path) -> None:
    photos = write_pictures(tmp_path / "photos", ["a/1.png", "a/2.png"])
    expected = Expected(Hierarchy.from_edges([("all", "a")]), None, images=True)
    wanted = [photos / "a" / "2.png", photos / "a" / "1.png"]
    found = read(wanted, expected=expected, labels=False)
    assert found.X.names == ("2.png", "1.png")  # as those of a folder


def test_folders_of_classes_with_and_without_a_hierarchy(tmp_path: Path) -> None:
    """Folders that are not nested need a hierarchy, whose paths are separated otherwise."""
    write_pictures(tmp_path / "photos", ["stars/1.png", "corals/2.png"])
    with pytest.raises(DataError, match=r"photos: its folders, such as 'corals', .* give one \(--hierarchy FILE\)"):
        Dataset.read(tmp_path / "photos")
    (tmp_path / "paths.csv").write_text("path\nBiota > Animals > stars\nBiota > corals\n")
    data = Dataset.read(tmp_path / "photos", hierarchy=tmp_path / "paths.csv")
    assert [set(labels) for labels in data.hierarchy.decode(data.Y)] == [
        {"Biota", "Biota > corals"},
        {"Biota", "Biota > Animals", "Biota > Animals > stars"},
    ]
