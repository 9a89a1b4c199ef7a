"""tools/test_summary counts cases and names those that failed, were skipped or did not end."""

import contextlib
import importlib.machinery
import importlib.util
import io
import tempfile
import unittest
from pathlib import Path

TOOL = str(Path(__file__).resolve().parents[2] / "tools" / "test_summary")
loader = importlib.machinery.SourceFileLoader("test_summary", TOOL)
spec = importlib.util.spec_from_file_location("test_summary", TOOL, loader=loader)
tool = importlib.util.module_from_spec(spec)
loader.exec_module(tool)

LINE = "-" * 58
PASSED = "[ RUN      ] A.Holds\n[       OK ] A.Holds\n[  PASSED  ] 1 test.\n"
SKIPPED = (
    "[ RUN      ] A.Device\na.cc:2: Skipped\nno CUDA device\n\n[  SKIPPED ] A.Device\n"
    "[  PASSED  ] 0 tests.\n[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] A.Device\n"
)
FAILED = (
    "[ RUN      ] A.Fails\na.cc:8: Failure\n1 is not 2\n[  FAILED  ] A.Fails\n[  PASSED  ] 0 tests.\n"
    "[  FAILED  ] 1 test, listed below:\n[  FAILED  ] A.Fails\n\n 1 FAILED TEST\n"
)
CRASHED = "[ RUN      ] A.Holds\n[       OK ] A.Holds\n[ RUN      ] A.Crashes\n"


class TestSummary(unittest.TestCase):
    def said(self, *entries):
        """Exit code and text for a log of (output, verdict)."""
        log = "Start testing\n"
        for number, (output, verdict) in enumerate(entries, 1):
            log += (f"{LINE}\n{number}/9 Testing: t{number}\n{number}/9 Test: t{number}\nCommand: x\nOutput:\n"
                    f"{LINE}\n{output}<end of output>\nTest time =   0.01 sec\n{LINE}\n{verdict}\n")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "Testing/Temporary/LastTest.log"
            path.parent.mkdir(parents=True)
            path.write_text(log)
            text = io.StringIO()
            with contextlib.redirect_stdout(text):
                code = tool.main([folder])
        return code, text.getvalue()

    def test_cases_of_all_tests_are_counted(self):
        code, text = self.said((PASSED, "Test Passed."), ("done\n", "Test Passed."),
                               ("Ran 3 tests in 1s\n\nOK (skipped=1)\n", "Test Passed."))
        self.assertEqual(code, 0)
        self.assertIn("4 cases passed, 0 failed, 1 skipped (1 in Python); 3 tests of ctest, 0 failed", text)

    def test_skipped_cases_are_counted_by_reason(self):
        code, text = self.said((SKIPPED, "Test Passed."), (SKIPPED, "Test Passed."),
                               ("skipped: no MPI\n", "Test Pass Reason:\nSkip regular expression"))
        self.assertEqual(code, 0)
        self.assertIn("0 cases passed, 0 failed, 3 skipped (2 no CUDA device, 1 no MPI)", text)

    def test_failing_cases_are_named_with_their_output(self):
        code, text = self.said((PASSED, "Test Passed."), (FAILED, "Test Failed."), ("oh\n", "Test Failed."))
        self.assertEqual(code, 1)
        self.assertIn("FAILED t2: A.Fails\n", text)
        self.assertIn("1 is not 2", text)
        self.assertIn("FAILED t3\n", text)
        self.assertIn("1 cases passed, 2 failed, 0 skipped; 3 tests of ctest, 2 failed", text)

    def test_a_case_that_did_not_end_is_named(self):
        code, text = self.said((CRASHED, "Test Failed."))
        self.assertEqual(code, 1)
        self.assertIn("FAILED t1: A.Crashes\n", text)

    def test_no_tests_are_a_failure(self):
        self.assertEqual(self.said()[0], 1)


if __name__ == "__main__":
    unittest.main()
