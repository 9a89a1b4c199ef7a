"""Code in the documents on stages stands, line for line, in the file that the text before it names.

Those files are compiled by the build, so what the documents show compiles too. Indentation does not count.
"""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ("docs/add_a_stage.md", "docs/fusion.md")
BLOCK = re.compile(r"`([\w./]+)`:\n\n```cpp\n(.*?)\n```", re.S)


def squeezed(text: str) -> str:
    """White space as one blank: a formatter may break lines elsewhere."""
    return " ".join(text.split())


class DocumentsShowRealCode(unittest.TestCase):
    def test_every_block_stands_in_the_file_that_is_named(self):
        for document in DOCUMENTS:
            text = (ROOT / document).read_text(encoding="utf-8")
            blocks = BLOCK.findall(text)
            self.assertEqual(len(blocks), text.count("```cpp"), f"{document}: a block without a file before it")
            self.assertTrue(blocks, document)
            for file, code in blocks:
                source = squeezed((ROOT / file).read_text(encoding="utf-8"))
                self.assertIn(squeezed(code), source, f"{document}: not in {file}")


if __name__ == "__main__":
    unittest.main()
