"""Results that are displayed as a sentence and the numbers behind it."""

import html
import textwrap

_WIDTH = 88  # Columns of the display.


class SentenceAndNumbers:
    """A result with a sentence, its `verdict`, and with lines of names and values, its `_lines()`."""

    def __repr__(self):
        width = max(len(name) for name, _ in self._lines())
        lines = [f"  {name:<{width}}  {value}" for name, value in self._lines()]
        said = textwrap.wrap(f"{type(self).__name__}: {self.verdict}", _WIDTH, subsequent_indent="  ")
        return "\n".join([*said, *lines])

    def _repr_html_(self):
        rows = "".join(
            f'<tr><th style="text-align:left">{html.escape(name)}</th>'
            f'<td style="text-align:left">{html.escape(value)}</td></tr>'
            for name, value in self._lines()
        )
        verdict = f"<p><b>{html.escape(self.verdict)}</b></p>"
        return f'{verdict}<table style="margin-left:0">{rows}</table>'
