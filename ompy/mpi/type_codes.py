"""Character codes and type strings of the predefined datatypes, as the buffer protocol, NumPy and Fortran write them.

A *character* is one of the buffer protocol's ("d"), a *type string* one of NumPy's ("f8"); the *code* of a datatype is the
one of the two that leads back to it.
"""

from __future__ import annotations

from ompy.core.basic import describe

C_SIZED = ["C_BOOL", "INT8_T", "INT16_T", "INT32_T", "INT64_T", "UINT8_T", "UINT16_T", "UINT32_T", "UINT64_T"]
ADDRESSES = ("AINT", "OFFSET", "COUNT")

#: kind and bytes -> character
CHARACTERS = {
    "b": {1: "?", 2: "h", 4: "i", 8: "l"},
    "i": {1: "b", 2: "h", 4: "i", 8: "l"},
    "u": {1: "B", 2: "H", 4: "I", 8: "L"},
    "f": {2: "e", 4: "f", 8: "d", 16: "g"},
    "c": {4: "E", 8: "F", 16: "D", 32: "G"},
}

#: characters and strings of the types that do not follow from kind and size: name -> (character, type string)
SPECIAL = {
    "PACKED": ("B", "u1"),
    "BYTE": ("B", "u1"),
    "CHAR": ("c", "S1"),
    "CHARACTER": ("c", "S1"),
    "WCHAR": ("U", "U1"),
    "LONG_LONG": ("q", "i8"),
    "UNSIGNED_LONG_LONG": ("Q", "u8"),
}

#: which datatype a code means
NAMES = {
    "?": "C_BOOL",
    "b": "SIGNED_CHAR",
    "h": "SHORT",
    "i": "INT",
    "l": "LONG",
    "q": "LONG_LONG",
    "B": "UNSIGNED_CHAR",
    "H": "UNSIGNED_SHORT",
    "I": "UNSIGNED",
    "L": "UNSIGNED_LONG",
    "Q": "UNSIGNED_LONG_LONG",
    "e": "FLOAT16_T",
    "f": "FLOAT",
    "d": "DOUBLE",
    "g": "LONG_DOUBLE",
    "Ze": "COMPLEX4",
    "Zf": "C_FLOAT_COMPLEX",
    "Zd": "C_DOUBLE_COMPLEX",
    "Zg": "C_LONG_DOUBLE_COMPLEX",
    "E": "COMPLEX4",
    "F": "C_FLOAT_COMPLEX",
    "D": "C_DOUBLE_COMPLEX",
    "G": "C_LONG_DOUBLE_COMPLEX",
    "b1": "C_BOOL",
    "i1": "INT8_T",
    "i2": "INT16_T",
    "i4": "INT32_T",
    "i8": "INT64_T",
    "i16": "INTEGER16",
    "u1": "UINT8_T",
    "u2": "UINT16_T",
    "u4": "UINT32_T",
    "u8": "UINT64_T",
    "f2": "FLOAT16_T",
    "f4": "FLOAT",
    "f8": "DOUBLE",
    "f16": "LONG_DOUBLE",
    "c4": "COMPLEX4",
    "c8": "C_FLOAT_COMPLEX",
    "c16": "C_DOUBLE_COMPLEX",
    "c32": "C_LONG_DOUBLE_COMPLEX",
    "n": "COUNT",
    "N": "UNSIGNED_LONG",
    "p": "AINT",
    "P": "UNSIGNED_LONG",
    "c": "CHAR",
    "a": "CHAR",
    "S": "CHAR",
    "S1": "CHAR",
    "s": "CHAR",
    "1s": "CHAR",
    "U": "WCHAR",
    "U1": "WCHAR",
    "u": "UINT16_T",
    "1u": "UINT16_T",
    "w": "WCHAR",
    "1w": "WCHAR",
    "M": "INT64_T",
    "M8": "INT64_T",
    "m": "INT64_T",
    "m8": "INT64_T",
}

#: the codes that mean a type of C in every compiler
C_CODES = ("?", "b", "h", "i", "l", "q", "B", "H", "I", "L", "Q", "f", "d", "g", "F", "D", "G", "b1", "i1", "i2", "i4", "i8")
C_SIZED_CODES = ("u1", "u2", "u4", "u8", "f2", "f4", "f8", "f16", "c8", "c16", "c32")
C_NAMES = {code: NAMES[code] for code in (*C_CODES, *C_SIZED_CODES)}

#: Fortran's codes
F_NAMES = {
    "l": "LOGICAL",
    "i": "INTEGER",
    "r": "REAL",
    "s": "REAL",
    "d": "DOUBLE_PRECISION",
    "c": "COMPLEX",
    "z": "DOUBLE_COMPLEX",
    **{f"l{size}": f"LOGICAL{size}" for size in (1, 2, 4, 8, 16)},
    **{f"i{size}": f"INTEGER{size}" for size in (1, 2, 4, 8, 16)},
    **{f"r{size}": f"REAL{size}" for size in (2, 4, 8, 16)},
    **{f"c{size}": f"COMPLEX{size}" for size in (4, 8, 16, 32)},
}

#: other names that programs know predefined datatypes by
ALIASES = {
    "FLOAT32_T": "FLOAT",
    "FLOAT64_T": "DOUBLE",
    "C_COMPLEX": "C_FLOAT_COMPLEX",
    "INT_INT": "2INT",
    "TWOINT": "2INT",
    "UNSIGNED_INT": "UNSIGNED",
    "SIGNED_SHORT": "SHORT",
    "SIGNED_INT": "INT",
    "SIGNED_LONG": "LONG",
    "SIGNED_LONG_LONG": "LONG_LONG",
    "BOOL": "C_BOOL",
    "SINT8_T": "INT8_T",
    "SINT16_T": "INT16_T",
    "SINT32_T": "INT32_T",
    "SINT64_T": "INT64_T",
    "F_BOOL": "LOGICAL",
    "F_INT": "INTEGER",
    "F_FLOAT": "REAL",
    "F_DOUBLE": "DOUBLE_PRECISION",
    "F_COMPLEX": "COMPLEX",
    "F_FLOAT_COMPLEX": "COMPLEX",
    "F_DOUBLE_COMPLEX": "DOUBLE_COMPLEX",
}

GROUP_FLOATING, GROUP_LOGICAL, GROUP_COMPLEX = 3, 4, 5
ELEMENT_UINT8, ELEMENT_UINT64 = 6, 9


def kind_of(group: int, element: int) -> str:
    """NumPy's letter for a kind of number; "" for what is none."""
    if group in (GROUP_FLOATING, GROUP_COMPLEX, GROUP_LOGICAL):
        return {GROUP_FLOATING: "f", GROUP_COMPLEX: "c", GROUP_LOGICAL: "b"}[group]
    if group in (1, 2, 7):
        return "u" if ELEMENT_UINT8 <= element <= ELEMENT_UINT64 else "i"
    return ""


def codes_of(basic: int) -> tuple[str, str, str]:
    """Character, type string and code of a predefined datatype; "" for each that it does not have."""
    name, group, element, size = describe(basic)
    if name in SPECIAL:
        character, string = SPECIAL[name]
        return character, string, character
    kind = kind_of(group, element)
    if not kind:
        return "", "", ""
    character = "p" if name in ADDRESSES else CHARACTERS[kind].get(size, "")
    string = f"{'i' if kind == 'b' and size > 1 else kind}{size}"
    fortran_sized = name.rstrip("0123456789") in ("LOGICAL", "INTEGER", "REAL", "COMPLEX") and name[-1].isdigit()
    return character, string, string if name in C_SIZED or fortran_sized else character
