"""What a built site needs and links: nothing from outside, and nothing that is not there."""

import collections
import dataclasses
import html.parser
import pathlib
import re
import urllib.parse

# Tags and attributes that a browser loads by itself. Links that a reader follows are none of them.
_LOADED = {
    "audio": ("src",),
    "embed": ("src",),
    "feimage": ("href", "xlink:href"),
    "iframe": ("src", "srcdoc"),
    "image": ("href", "xlink:href"),
    "img": ("src", "srcset"),
    "input": ("src",),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "track": ("src",),
    "use": ("href", "xlink:href"),
    "video": ("src", "poster"),
}
# Relations of <link> that are there for readers and search engines; all others are loaded.
_NOT_LOADED = {"index", "search", "next", "prev", "author", "canonical", "license", "genindex"}
_IN_CSS = re.compile(r"""url\(\s*['"]?([^'")]+)|@import\s+['"]([^'"]+)""")
_IN_SCRIPT = re.compile(
    r"""(?:fetch|import|importScripts|Worker|WebSocket|EventSource|open)\(\s*["'`][^"'`]*?"""
    r"""((?:https?:|wss?:)?//[^"'`]+)|(?:\.src|\.href|@import)\s*=?\s*["'`]((?:https?:)?//[^"'`]+)"""
)
_OUTSIDE = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)


@dataclasses.dataclass
class Page:
    """What a page of HTML has.

    Attributes:
        ids: names of its anchors.
        links: what a reader can follow, as written.
        loaded: what a browser loads by itself, as written.
        no_alt: pictures without a text that says what is seen.
    """

    ids: set = dataclasses.field(default_factory=set)
    links: list = dataclasses.field(default_factory=list)
    loaded: list = dataclasses.field(default_factory=list)
    no_alt: list = dataclasses.field(default_factory=list)


class _Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.page, self._inside = Page(), None

    def handle_starttag(self, tag, attributes):
        known = {name: value or "" for name, value in attributes}
        self.page.ids |= {known[name] for name in ("id", "name") if name in known}
        if tag == "a" and "href" in known:
            self.page.links.append(known["href"])
        if tag == "link" and known.get("rel", "").lower() not in _NOT_LOADED:
            self.page.loaded.append(known.get("href", ""))
        if tag == "meta" and known.get("http-equiv", "").lower() == "refresh":
            self.page.links.append(known["content"].partition("url=")[2])
        if tag == "img" and not known.get("alt", "").strip():
            self.page.no_alt.append(known.get("src", ""))
        for name in _LOADED.get(tag, ()):
            if name in known:
                self.page.loaded += [part.split()[0] for part in known[name].split(",") if part]
        self.page.loaded += loaded_by_css(known.get("style", ""))
        self._inside = tag if tag in ("style", "script") else None

    def handle_data(self, data):
        if self._inside == "style":
            self.page.loaded += loaded_by_css(data)
        elif self._inside == "script":
            self.page.loaded += loaded_by_script(data)

    def handle_endtag(self, tag):
        self._inside = None


def loaded_by_css(text):
    """Returns the addresses that a style sheet loads."""
    return [one or other for one, other in _IN_CSS.findall(text)]


def loaded_by_script(text):
    """Returns the addresses outside of the site that a script names where it loads something."""
    return [one or other for one, other in _IN_SCRIPT.findall(text)]


def read_page(text):
    """Returns the `Page` of a text of HTML."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return reader.page


class Site:
    """A built site.

    Args:
        folder: the folder `html` of a build.

    Attributes:
        pages: dictionary: path of each page of HTML in the folder -> `Page`.
    """

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.pages = {
            path.relative_to(self.folder).as_posix(): read_page(path.read_text(encoding="utf-8"))
            for path in sorted(self.folder.rglob("*.html"))
        }
        found = (path for path in self.folder.rglob("*") if path.is_file())
        self._files = {path.relative_to(self.folder).as_posix() for path in found}

    def foreign(self):
        """Returns what a browser would load from outside: a list of (file, address)."""
        loaded = [(name, address) for name, page in self.pages.items() for address in page.loaded]
        for ending, found in ((".css", loaded_by_css), (".js", loaded_by_script)):
            for path in sorted(self.folder.rglob(f"*{ending}")):
                name = path.relative_to(self.folder).as_posix()
                loaded += [(name, one) for one in found(path.read_text(encoding="utf-8"))]
        return [(name, address) for name, address in loaded if _OUTSIDE.match(address)]

    def inside(self):
        """Returns the number of links and loads that stay inside of the site."""
        return sum(
            not is_elsewhere(address)
            for page in self.pages.values()
            for address in page.links + page.loaded
        )

    def broken(self):
        """Returns the links and loads inside of the site that lead nowhere: (page, address)."""
        return [
            (name, address)
            for name, page in self.pages.items()
            for address in page.links + page.loaded
            if not is_elsewhere(address) and not self._is_there(name, address)
        ]

    def pictures_without_text(self):
        """Returns the pictures that nobody describes: a list of (page, address)."""
        return [(name, address) for name, page in self.pages.items() for address in page.no_alt]

    def clicks(self, start):
        """Returns how many clicks each page is from a start page: a dictionary."""
        found, todo = {start: 0}, collections.deque([start])
        while todo:
            name = todo.popleft()
            for address in self.pages[name].links:
                target = None if is_elsewhere(address) else self._target(name, address)[0]
                if target in self.pages and target not in found:
                    found[target] = found[name] + 1
                    todo.append(target)
        return found

    def problems(self):
        """Returns a sentence for each thing that is wrong."""
        return (
            [f"{n}: it would be loaded from outside. Received: {a}" for n, a in self.foreign()]
            + [f"{n}: a link leads nowhere. Received: {a}" for n, a in self.broken()]
            + [
                f"{n}: a picture has no text that says what is seen. Received: {a}"
                for n, a in self.pictures_without_text()
            ]
        )

    def _is_there(self, page, address):
        path, anchor = self._target(page, address)
        if anchor and path in self.pages:
            return anchor in self.pages[path].ids
        return path in self._files

    def _target(self, page, address):
        """Returns the path in the folder, and the anchor, that an address on a page means."""
        absolute = urllib.parse.urljoin(f"http:///{page}", address)
        parts = urllib.parse.urlsplit(absolute)
        return urllib.parse.unquote(parts.path[1:]), urllib.parse.unquote(parts.fragment)


def is_elsewhere(address):
    """Whether an address is outside of the site, or is data itself."""
    return bool(_OUTSIDE.match(address)) or address.startswith(("data:", "mailto:", "javascript:"))
