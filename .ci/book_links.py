#!/usr/bin/env python3
"""A preprocessor of mdbook: links that are right in the repository become links that are right in the book.

In: mdbook's JSON on standard input (or `supports RENDERER`). Out: the book. A link out of docs/ becomes the path that it names; one to a
README.md, which mdbook calls index, follows it.
"""

import json
import posixpath
import re
import sys

LINK = re.compile(r"\[([^\]]*)\]\(([^)#:]+)(#[^)]*)?\)")


def linked(text, page):
    """Returns the text of a page with links for the book."""

    def replaced(link):
        words, target, place = link[1], link[2], link[3] or ""
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
        if not path.startswith("docs/"):
            return f"`{path}`" if words in path else f"{words} (`{path}`)"
        return f"[{words}]({re.sub('README.md$', 'index.md', target)}{place})"

    return LINK.sub(replaced, text)


def change(items):
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            chapter["content"] = linked(chapter["content"], chapter["path"] or "")
            change(chapter["sub_items"])


def main():
    if sys.argv[1:2] == ["supports"]:
        return
    _, book = json.load(sys.stdin)
    change(book.get("items") or book.get("sections") or [])
    json.dump(book, sys.stdout)


main()
