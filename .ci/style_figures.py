#!/usr/bin/env python3
"""Prints figures of style about src/: a table, and with --all what is behind each figure. It is no gate.

Rules
- A function is each `fn` with a body or in a trait's own declaration. Not counted: functions of `impl TRAIT for TYPE`, whose names
  the trait gives; `new` and `main`; functions with an attribute `#[test]` or in a module under `#[cfg(test)]`.
- A function's name is one word if it has no underscore.
- A comment line is one that has nothing but a comment; its columns include the indentation.
- A type is each `struct`, `enum`, `union`, `trait` or `type` outside of `impl` and tests.
- A function's length is from its line with `fn` to its closing brace.
"""

import collections
import pathlib
import re
import sys

SOURCES = pathlib.Path(__file__).resolve().parent.parent / "src"
LONGEST_COMMENT = 100
MOST_DEFINITIONS = 2

# What has no code in it: comments, strings, characters. A lifetime is not a character.
NO_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(?P<hashes>\#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*"|b?'(?:\\(?:x..|u\{[^}]*\}|.)|[^'\\\n])'""",
    re.DOTALL,
)
ITEM = re.compile(r"\b(?P<kind>fn|struct|enum|union|trait|type|impl|mod)\b|(?P<brace>[{}])|(?P<end>;)")
NAME = re.compile(r"\s+(\w+)")
FOR = re.compile(r"\bfor\s+(?!<)")
UNCOUNTED = {"new", "main"}


def without_text(source: str) -> str:
    """Blanks out comments and strings; line ends stay."""
    return NO_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)


def figures(path: pathlib.Path):
    """Yields (kind, name, first line, last line) of each function and type of a file that counts."""
    code = without_text(path.read_text())
    depth, scopes, pending = 0, [], None  # scopes: (depth outside, kind, item)
    attributes_from = 0
    for match in ITEM.finditer(code):
        at = match.start()
        if match["kind"]:
            if pending and pending[0] in ("impl", "fn", "struct", "enum", "union", "trait", "type"):
                continue  # `impl` or `fn` in a signature, `type` in a bound
            name = NAME.match(code, match.end())
            attributes = code[attributes_from:at]
            is_test = "#[test]" in attributes or "cfg(test)" in attributes
            if match["kind"] == "impl":
                pending = ("impl", None, at, is_test)
            elif name:
                pending = (match["kind"], name[1], at, is_test)
        elif match["end"]:
            if pending and pending[0] == "impl":
                pending = None
            if pending:
                kind, name, begin, is_test = pending
                # `[u8; 4]` in a signature ends nothing.
                between = code[begin:at]
                if between.count("[") > between.count("]") or between.count("(") > between.count(")"):
                    continue
                if is_counted(kind, name, is_test, scopes):
                    yield kind, name, line_of(code, begin), line_of(code, at)
                pending = None
            attributes_from = match.end()
        elif match["brace"] == "{":
            item = None
            if pending:
                kind, name, begin, is_test = pending
                between = code[begin:at]
                if between.count("[") > between.count("]") or between.count("(") > between.count(")"):
                    kind = None
                if kind == "impl":
                    kind = "trait impl" if FOR.search(between) else "impl"
                item = (kind, name, begin, is_counted(kind, name, is_test, scopes), is_test)
                pending = None
            scopes.append((depth, item))
            depth += 1
            attributes_from = match.end()
        else:
            depth -= 1
            while scopes and scopes[-1][0] >= depth:
                _, item = scopes.pop()
                if item and item[3]:
                    yield item[0], item[1], line_of(code, item[2]), line_of(code, at)
            attributes_from = match.end()


def is_counted(kind, name, is_test, scopes) -> bool:
    """Whether an item in these scopes counts: see the rules at the top."""
    items = [item for _, item in scopes if item]
    if is_test or any(item[4] for item in items) or kind not in ("fn", "struct", "enum", "union", "trait", "type"):
        return False
    inner = items[-1][0] if items else None
    if kind == "fn":
        return name not in UNCOUNTED and inner != "trait impl"
    return inner not in ("impl", "trait impl", "trait")


def line_of(code: str, at: int) -> int:
    return code.count("\n", 0, at) + 1


def main() -> None:
    functions, types, comments, lines = [], collections.defaultdict(list), [], 0
    for path in sorted(SOURCES.rglob("*.rs")):
        place = path.relative_to(SOURCES.parent)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            lines += 1
            if line.lstrip().startswith("//"):
                comments.append((len(line), f"{place}:{number}"))
        for kind, name, first, last in figures(path):
            if kind == "fn":
                functions.append((name, last - first + 1, f"{place}:{first}"))
            else:
                types[name].append(f"{place}:{first}")
    one_word = [function for function in functions if "_" not in function[0].strip("_")]
    long_comments = [comment for comment in comments if comment[0] > LONGEST_COMMENT]
    frequent = {name: places for name, places in types.items() if len(places) > MOST_DEFINITIONS}
    longest = max(functions, key=lambda function: function[1])
    share = lambda part, whole: f"{len(part)} of {len(whole)}, {100 * len(part) / len(whole):.1f}%"
    names = ", ".join(f"{name} ({len(places)})" for name, places in sorted(frequent.items())) or "none"
    for figure, value, goal in [
        ("functions with a name of one word", share(one_word, functions), "below 40%"),
        (f"comment lines over {LONGEST_COMMENT} columns", share(long_comments, comments), "below 2%"),
        (f"type names defined more than {MOST_DEFINITIONS} times", names, "none"),
        ("longest function", f"{longest[1]} lines, {longest[0]} at {longest[2]}", "at most 140 lines"),
        ("lines of src", str(lines), "at most 47000"),
    ]:
        print(f"{figure:40} {goal:18} {value}")
    if "--all" in sys.argv[1:]:
        for name, length, place in sorted(one_word):
            print(f"one word: {name} at {place}, {length} lines")
        for _, place in long_comments:
            print(f"long comment: {place}")
        for name, places in sorted(frequent.items()):
            print(f"type: {name} at {', '.join(places)}")


main()
