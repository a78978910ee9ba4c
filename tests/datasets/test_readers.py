from __future__ import annotations

import csv
import json

import pytest

from skillopt.datasets.readers import read_items
from skillopt.errors import DataError


@pytest.fixture
def write(tmp_path):
    def write_file(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return write_file


ONE = {"id": "q1", "question": "Capital of Peru?", "answers": ["Lima"]}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("list.json", [ONE]),
        ("data.json", {"data": [ONE], "version": 2}),
        ("values.json", {"x": ONE}),
        ("c095_one_item.json", ONE),
        ("data_is_a_field.json", {**ONE, "data": [1, 2]}),
    ],
)
def test_json_forms(write, name, value):
    (item,) = read_items(write(name, json.dumps(value)))
    assert {key: item[key] for key in ONE} == ONE


def test_c095_one_line_jsonl_is_one_item(write):
    assert read_items(write("one.jsonl", json.dumps(ONE) + "\n")) == [ONE]
    assert read_items(write("one.ndjson", json.dumps(ONE))) == [ONE]


def test_json_lines_in_a_json_file(write):
    assert read_items(write("lines.json", json.dumps(ONE) + "\n" + '{"id": 2}\n')) == [ONE, {"id": "2"}]


def test_keys_of_an_object_serve_as_ids(write):
    items = read_items(write("keys.json", '{"a": {"q": 1}, "b": {"q": 2}}'))
    assert [item["id"] for item in items] == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("text.json", '"hello"', "expected a list of objects"),
        ("mixed.json", '{"a": {"id": 1}, "b": 2}', "expected a list of objects"),
        ("numbers.json", "[1, 2]", "numbers.json: item 1: expected an object, found int"),
        ("broken.json", '[{"id": 1},\n{"id": 2,}]', "broken.json:2: not valid JSON"),
        ("nan.json", '[{"id": 1, "x": NaN}]', "NaN is not a JSON value"),
        ("twice.json", '[{"id": 1, "id": 2}]', "the key 'id' stands twice"),
        ("deep.json", "[" * 100_000, "nested too deeply"),
        ("half.json", '[{"id": 1, "x": "\\ud800"}]', "half of a surrogate pair"),
        ("nul.json", '[{"id": 1, "x": "\0"}]', "NUL character"),
        ("huge.json", '[{"id": ' + "9" * 5000 + "}]", "not valid JSON"),
        ("kind.xlsx", "x", "cannot read this kind of file; expected one of .json"),
        ("list.jsonl", "[1]\n", "list.jsonl:1: expected an object, found list"),
    ],
)
def test_what_cannot_be_read_is_named(write, name, text, words):
    with pytest.raises(DataError) as caught:
        read_items(write(name, text))
    assert words in str(caught.value) and name in str(caught.value)


def test_c097_a_bad_line_is_named_with_file_and_line(write):
    lines = [json.dumps({"id": number}) for number in range(1, 11)]
    lines[6] = '{"id": 7,'
    with pytest.raises(DataError, match=r"bad\.jsonl:7: not valid JSON"):
        read_items(write("bad.jsonl", "\n".join(lines)))


def test_jsonl_lines_end_at_line_feeds_only(write):
    items = read_items(write("sep.jsonl", '{"id": 1, "x": "a\u2028b"}\r\n\n{"id": 2}'))
    assert items == [{"id": "1", "x": "a\u2028b"}, {"id": "2"}]


def test_missing_file_folder_and_empty_files(write, tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_items(tmp_path / "gone.json")
    (tmp_path / "dir.json").mkdir()
    with pytest.raises(DataError, match="cannot be read"):
        read_items(tmp_path / "dir.json")
    for name in ("empty.json", "empty.jsonl", "empty.csv"):
        assert read_items(write(name, " \n")) == []
    assert read_items(write("none.json", "[]")) == []


def test_encoding(write):
    assert read_items(write("bom.csv", b"\xef\xbb\xbfid,q\n1,x\n")) == [{"id": "1", "q": "x"}]
    with pytest.raises(DataError, match=r"latin\.csv: byte 5 \(0xe9\) is not UTF-8"):
        read_items(write("latin.csv", b"id,q\n\xe9,x\n"))


def test_csv_cells(write):
    text = 'id,question,answer\r\n1,"a, b","say ""hi"""\r\n\r\n2,"two\nlines",x\r\n'
    assert read_items(write("cells.csv", text)) == [
        {"id": "1", "question": "a, b", "answer": 'say "hi"'},
        {"id": "2", "question": "two\nlines", "answer": "x"},
    ]


def test_csv_with_very_long_cells(write):
    before = csv.field_size_limit()
    assert len(read_items(write("long.csv", "id,q\n1," + "x" * 200_000))[0]["q"]) == 200_000
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('id,q\n1,"a\nb"\n2\n', ":4: 1 cells, but the header has 2 columns; fill in the row"),
        ("id,q\n1,a,b\n", ":2: 3 cells, but the header has 2 columns; put cells"),
        ('id,q\n1,"open\n', ":2: not valid CSV"),
        ("id;q\n1;a\n", ":1: the header is one column"),
        ("id,id\n1,2\n", "the column 'id' stands twice"),
        ("id,\n1,2\n", "a column has no name"),
    ],
)
def test_csv_faults(write, text, words):
    with pytest.raises(DataError) as caught:
        read_items(write("bad.csv", text))
    assert f"bad.csv{words}" in str(caught.value) or words in str(caught.value)


def test_ids_are_derived_from_content_when_no_item_has_one(write):
    first = read_items(write("a.csv", "q,a\nx,1\ny,2\n"))
    second = read_items(write("b.csv", "q,a\ny,2\nx,1\n"))
    assert {item["id"] for item in first} == {item["id"] for item in second}
    assert all(len(item["id"]) == 14 and item["id"].startswith("row-") for item in first)
    with pytest.raises(DataError, match=r"c\.csv:3: the id 'row-\w+' is already used at .*c\.csv:2"):
        read_items(write("c.csv", "q,a\nx,1\nx,1\n"))


def test_an_id_missing_in_some_items_is_an_error(write):
    with pytest.raises(DataError, match=r"some\.jsonl:2: no 'id'"):
        read_items(write("some.jsonl", '{"id": 1}\n{"q": 2}\n'))
    with pytest.raises(DataError, match=r"some\.csv:3: the id is empty"):
        read_items(write("some.csv", "id,q\n1,x\n,y\n"))


def test_another_id_field(write):
    path = write("q.csv", "qid,q\n7,x\n")
    assert read_items(path, id_field="qid") == [{"id": "7", "qid": "7", "q": "x"}]
    with pytest.raises(DataError, match="no item has the id field 'quid'; did you mean 'qid'"):
        read_items(path, id_field="quid")
    with pytest.raises(DataError, match="no item has the id field 'QID'; did you mean 'qid'"):
        read_items(path, id_field="QID")


def test_c098_a_duplicate_id_is_named_with_both_positions(write):
    with pytest.raises(DataError, match=r"d\.jsonl:3: the id 'a1' is already used at .*d\.jsonl:1"):
        read_items(write("d.jsonl", '{"id": "a1"}\n{"id": "b"}\n{"id": "a1"}\n'))


def test_c103_integer_and_text_ids_are_the_same_id(write):
    with pytest.raises(DataError, match="the id '1' is already used"):
        read_items(write("d.json", '[{"id": 1}, {"id": "1"}]'))


@pytest.mark.parametrize("item_id", ["", "   ", "a\u0000b", "a\nb", "x" * 513, None, True, 1.5, ["a"], "a\u2028b"])
def test_c101_ids_that_are_refused(write, item_id):
    with pytest.raises(DataError, match="id"):
        read_items(write("ids.json", json.dumps([{"id": item_id}, {"id": "ok"}])))


@pytest.mark.parametrize("item_id", ["../secret", "/etc/x", "a\\b", "..", "con", "a:b", "x" * 300, "end.", "日本"])
def test_c101_other_ids_are_kept_and_encoded_for_paths(write, item_id):
    from skillopt.utils.files import safe_name

    assert read_items(write("ids.json", json.dumps([{"id": item_id}])))[0]["id"] == item_id
    name = safe_name(item_id)
    assert "/" not in name and "\\" not in name and name not in ("..", ".") and len(name) <= 255


def test_a_number_that_is_too_large_is_named(write):
    with pytest.raises(DataError, match="1e999"):
        read_items(write("a.json", '[{"id": "a", "x": 1e999}]'))
    with pytest.raises(DataError, match=r"a\.jsonl:1: .*1e999"):
        read_items(write("a.jsonl", '{"id": "a", "x": 1e999}\n'))
