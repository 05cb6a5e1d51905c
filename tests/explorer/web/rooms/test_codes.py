"""Room codes, teachers' keys and students' names."""

import math

from explorer.web.rooms import (
    ALPHABET,
    CODE_LENGTH,
    hash_teacher_key,
    is_valid_student_name,
    matches_key_hash,
    new_room_code,
    new_teacher_key,
    parse_room_code,
)


def test_codes_and_keys_cannot_be_guessed():
    assert CODE_LENGTH * math.log2(len(set(ALPHABET))) >= 47
    codes, keys = ({make() for _one in range(500)} for make in (new_room_code, new_teacher_key))
    assert len(codes) == len(keys) == 500
    assert {letter for code in codes for letter in code} == set(ALPHABET)
    assert all(len(key) == 32 for key in keys)  # 6 bits for each character


def test_code_is_parsed_tolerantly():
    assert parse_room_code("bsz23-acdef") == parse_room_code(" 8522 3ACDEF ") == "85223ACDEF"
    assert not set("O0I1LBSZU") & set(ALPHABET)
    assert [parse_room_code(text) for text in ("U" * 10, "A" * 9, "A" * 11, "", None, 7, b"A" * 10)] == [None] * 7
    code = new_room_code()
    assert parse_room_code(code) == code


def test_key_matches_its_room_only():
    key = new_teacher_key()
    assert matches_key_hash(key, hash_teacher_key(key)) and key not in hash_teacher_key(key)
    assert not any(
        matches_key_hash(other, hash_teacher_key(key)) for other in (new_teacher_key(), "", key.lower() + "x")
    )


def test_student_names_are_validated():
    assert is_valid_student_name("0af" * 10 + "12")
    assert not any(map(is_valid_student_name, ("", "g" * 32, "a" * 31, "a" * 33, "a" * 32 + "\n", None, 7)))
