#!/usr/bin/env python3
"""The pages of the site: what headers document is on them, and links lead to what is there."""

import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True

import site_api  # noqa: E402
import site_pages  # noqa: E402

HEADER = """#pragma once
/// What the file is for.
namespace fz {

/// A place.
struct Place {
  int x = 0;  ///< across
};

/// The sum of vector<int>.
/// In two lines.
inline int sum(int a,
               int b) {
  return a + b;
}
/// Only declared.
int difference(int a, int b);
}
"""


class Site(unittest.TestCase):
    def test_structs_keep_members_and_functions_lose_bodies(self):
        entries = site_api.header_entries(HEADER)
        self.assertEqual([code.split("\n")[0] for _, code in entries],
                         ["", "struct Place {", "inline int sum(int a,", "int difference(int a, int b);"])
        self.assertIn("///< across", entries[1][1])
        self.assertTrue(entries[2][1].endswith("int b);"))
        self.assertEqual(entries[2][0], "The sum of vector&lt;int>.\nIn two lines.")

    def test_links_lead_to_pages_and_what_is_not_on_the_site_is_text(self):
        text = "[a](docs/cli.md#x) [b](CONTRIBUTING.md) [c](SECURITY.md) ![d](docs/images/report_top.png)\n"
        turned = site_pages.on_site(text, ROOT, {"cli"})
        self.assertEqual(turned, "[a](cli.md#x) [b](contributing.md) c ![d](images/report_top.png)\n")

    def test_code_is_left_as_it_is(self):
        text = "```\n[a](no/such.md)\n```\n\n    [b](no/such.md)\n"
        self.assertEqual(site_pages.on_site(text, ROOT, set()), text)

    def test_a_link_to_nothing_is_an_error(self):
        with self.assertRaises(SystemExit):
            site_pages.on_site("[a](docs/no_such_page.md)", ROOT, set())

    def test_every_page_is_in_the_menu_and_the_interfaces_are_there(self):
        with tempfile.TemporaryDirectory() as folder:
            site_pages.make(Path(folder) / "source")
            pages = {path.stem: path.read_text() for path in (Path(folder) / "source").glob("*.md")}
        self.assertIn("fz_compress(", pages["api_c"])
        self.assertIn("class ArchiveReader", pages["api_cpp"])
        self.assertIn("fz.decompress", pages["api_python"])
        for name in pages:
            self.assertTrue(name == "index" or f"\n{name}\n" in pages["index"], name)


if __name__ == "__main__":
    unittest.main()
