#!/usr/bin/env python3
"""The page of --report in headless Chromium: no requests, nothing overflows, all text is readable.

Usage: browser_test.py PATH_TO_FZ [unittest arguments]
Exits with 77 (skipped) where there is no Chromium. FZ_REPORT_SHOTS names a folder for screenshots.
"""

import os
import pathlib
import shutil
import sys
import tempfile
import unittest

import devtools
import report_support as support

BINARY = ""
WIDTHS = (360, 800, 1600)

# Parts of the page that stand out of it to the right, and texts that stand out of their picture.
OVERFLOW = """(() => {
  const found = [];
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) {
    found.push("page is " + document.documentElement.scrollWidth + " wide");
  }
  for (const element of document.body.querySelectorAll("*")) {
    const box = element.getBoundingClientRect();
    if (box.width === 0 || element.closest(".scroll, defs, .unseen, script")) continue;
    if (box.right > width + 0.5 || box.left < -0.5) {
      found.push(element.tagName + "." + element.getAttribute("class") + " at " + box.left + ".." + box.right);
    }
    const picture = element.closest("svg");
    if (element.tagName === "text" && picture) {
      const frame = picture.getBoundingClientRect();
      if (box.left < frame.left - 1 || box.right > frame.right + 1 ||
          box.top < frame.top - 1 || box.bottom > frame.bottom + 1) {
        found.push("text '" + element.textContent + "' is cut off");
      }
    }
  }
  return found;
})()"""

# The lowest contrast of any text against what lies behind it, as WCAG counts it.
CONTRAST = """(() => {
  const parse = (text) => (text.match(/[0-9.]+/g) || []).map(Number);
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour.length === 3 || colour[3] > 0.99) return colour.slice(0, 3);
    }
    return [255, 255, 255];
  };
  let worst = [99, ""];
  for (const element of document.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || element.closest("script, defs, title, .unseen")) continue;
    const style = getComputedStyle(element);
    const text = parse(element.closest("svg") ? style.fill : style.color).slice(0, 3);
    const pair = [luminance(text), luminance(behind(element))].sort((a, b) => b - a);
    const contrast = (pair[0] + 0.05) / (pair[1] + 0.05);
    if (contrast < worst[0]) worst = [contrast, element.tagName + ": " + element.textContent.slice(0, 40)];
  }
  return worst;
})()"""


class BrowserTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="fz_browser_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.pages = {}
        for number, (name, (values, dims, bound)) in enumerate(support.fields().items()):
            support.write_field(cls.folder, name, values)
            page = f"page{number}.html"
            words = support.compress_words(name, dims, bound, page)
            done = support.run(BINARY, cls.folder, *words, *(["--sweep"] if name in ("cube.f32", "one.f32") else []))
            assert done.returncode == 0, done.stderr
            cls.pages[name] = cls.folder / page
        words = ("verify", "-q", "-b", "abs:1e-6", "--report", "broken.html", "cube.f32.fzm", "cube.f32")
        assert support.run(BINARY, cls.folder, *words).returncode == 4
        cls.pages["broken"] = cls.folder / "broken.html"
        cls.browser = devtools.Browser(devtools.find_browser())
        cls.addClassCleanup(cls.browser.close)

    def test_no_request_is_made(self):
        for name, page in self.pages.items():
            requests, complaints = self.browser.open(page)
            self.assertEqual([r for r in requests if not r.startswith("data:")], [page.as_uri()], name)
            self.assertEqual(complaints, [], name)

    def test_the_watch_for_requests_can_fail(self):
        page = self.folder / "bad.html"
        page.write_text('<!doctype html><img src="http://example.invalid/x.png"><script>1</script>')
        requests, _ = self.browser.open(page)
        self.assertIn("http://example.invalid/x.png", requests)

    def test_nothing_overflows_at_any_width(self):
        for name, page in self.pages.items():
            self.browser.open(page)
            for width in WIDTHS:
                with self.subTest(field=name, width=width):
                    self.browser.show(width, dark=False)
                    self.assertEqual(self.browser.evaluate(OVERFLOW), [])

    def test_text_is_readable_in_light_and_dark(self):
        for name in ("cube.f32", "gaps.f32", "broken"):
            self.browser.open(self.pages[name])
            for dark in (False, True):
                self.browser.show(800, dark)
                background = self.browser.evaluate("getComputedStyle(document.body).backgroundColor")
                self.assertEqual(background, "rgb(16, 20, 24)" if dark else "rgb(255, 255, 255)")
                contrast, where = self.browser.evaluate(CONTRAST)
                self.assertGreaterEqual(contrast, 4.5, (name, dark, where))

    def test_pictures_are_drawn(self):
        self.browser.open(self.pages["cube.f32"])
        self.browser.show(800, dark=False)
        decoded = self.browser.evaluate(
            "Promise.all([...document.querySelectorAll('image')].map(async (i) => {"
            " const p = new Image(); p.src = i.href.baseVal; await p.decode();"
            " return [p.naturalWidth, p.naturalHeight]; }))"
        )
        self.assertEqual(decoded, [[32, 24]] * 3)
        self.assertGreater(len(self.browser.screenshot()), 50000)

    def test_hostile_names_make_no_elements(self):
        self.browser.open(self.pages[support.HOSTILE])
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('img').length"), 0)
        self.assertEqual(self.browser.evaluate("document.querySelector('h1').textContent"), support.HOSTILE)

    def test_it_prints(self):
        self.browser.open(self.pages["cube.f32"])
        pdf = self.browser.pdf()
        self.assertTrue(pdf.startswith(b"%PDF"))
        self.assertLessEqual(pdf.count(b"/Type /Page\n"), 6)

    def test_screenshots_are_left_where_asked(self):
        folder = os.environ.get("FZ_REPORT_SHOTS")
        if not folder:
            self.skipTest("FZ_REPORT_SHOTS is not set")
        for name in ("cube.f32", "gaps.f32", "fill.f32", "broken"):
            self.browser.open(self.pages[name])
            for width in WIDTHS:
                for dark in (False, True):
                    self.browser.show(width, dark)
                    path = pathlib.Path(folder) / f"{name}_{width}_{'dark' if dark else 'light'}.png"
                    path.write_bytes(self.browser.screenshot())


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    BINARY = os.path.abspath(sys.argv.pop(1))
    if devtools.find_browser() is None:
        print("skipped: no Chromium on the path; on Debian it is the package chromium")
        sys.exit(77)
    unittest.main()
