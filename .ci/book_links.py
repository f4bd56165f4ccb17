#!/usr/bin/env python3
"""A preprocessor of mdbook: links that lead out of docs/ into the repository become the paths that they name.

In: mdbook's JSON on standard input (or `supports RENDERER`). Out: the book, in which no page links to what is not in it.
"""

import json
import posixpath
import re
import sys

LINK = re.compile(r"\[([^\]]*)\]\(([^)#:]+)(#[^)]*)?\)")


def without_outside(text, page):
    """Returns the text of a page; a link out of the book becomes its words and the path in the repository."""

    def replaced(link):
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), link[2]))
        if path.startswith("docs/"):
            return link[0]
        return f"`{path}`" if link[1] in path else f"{link[1]} (`{path}`)"

    return LINK.sub(replaced, text)


def change(items):
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            chapter["content"] = without_outside(chapter["content"], chapter["path"] or "")
            change(chapter["sub_items"])


def main():
    if sys.argv[1:2] == ["supports"]:
        return
    _, book = json.load(sys.stdin)
    change(book.get("items") or book.get("sections") or [])
    json.dump(book, sys.stdout)


main()
