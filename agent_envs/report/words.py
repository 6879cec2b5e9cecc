"""Foreign text on a terminal: what an agent, a file or a policy's name says is shown, never obeyed."""

from rich.text import Text


def plain(text: str, style: str = "") -> Text:
    """Text without markup, in which everything that would steer a terminal is written as an escape."""
    return Text(visible(text), style=style)


def visible(text: str) -> str:
    r"""Line ends stay; control, formatting and surrogate characters become ``\x1b``, ``\u202e``, ``\ud835``."""
    return "".join(letter if letter.isprintable() or letter == "\n" else _escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape", "surrogatepass").decode("ascii")
