"""Cases of `fz` itself: help, version, lists, mistyped words."""

import json
import os
import re
import shutil
import subprocess
import unittest

import cli_support
from cli_support import IO, OK, USAGE, CliCase, wave

__all__ = ["HelpTest", "ListTest", "MistakeTest", "GenerateTest"]

COMMANDS = (
    "compress",
    "decompress",
    "test",
    "info",
    "verify",
    "bench",
    "convert",
    "stages",
    "presets",
    "recover",
    "suggest",
    "tune",
    "hdf5",
    "generate",
)


class HelpTest(CliCase):
    def test_version(self):
        for option in ("--version", "-V"):
            self.assertRegex(self.fz(option).stdout.decode(), r"^fz \d+\.\d+\.\d+ \(reads FZM 3\.0 to 3\.\d")

    def test_help_of_the_tool(self):
        text = self.fz("--help").stdout.decode()
        for command in COMMANDS:
            self.assertIn(command, text)
        self.assertIn("Exit codes: 0 ok, 1 usage", text)
        codes = re.search("0 ok, .* 6 no device", " ".join(text.split())).group()
        manual = " ".join(self.fz("generate", "man").stdout.decode().split())
        self.assertIn(codes, manual)
        self.assertEqual(self.fz("help").stdout.decode(), text)
        self.assertEqual(self.fz("-h").stdout.decode(), text)

    def test_help_of_every_command_has_an_example(self):
        for command in COMMANDS:
            text = self.fz(command, "--help").stdout.decode()
            self.assertRegex(text, rf"Example[^\n]*:\n(.*\n)*  .*fz {command}")
            self.assertEqual(self.fz("help", command).stdout.decode(), text)

    def test_help_tells_the_bounds_apart(self):
        text = self.fz("compress", "--help").stdout.decode()
        for part in ("|x - x'| <= E,", "E * |x|", "E * (max - min)"):
            self.assertIn(part, text)

    def test_nothing_to_do_is_a_usage_error(self):
        done = self.fz(code=USAGE)
        self.assertEqual(done.stdout, b"")
        self.assertIn(b"compress", done.stderr)


class ListTest(CliCase):
    def test_stages(self):
        text = self.fz("stages").stdout.decode()
        for name in ("LorenzoQuant", "Huffman", "RZE"):
            self.assertRegex(text, rf"(?m)^{name} ")
        one = self.fz("stages", "huffman").stdout.decode()
        self.assertIn("bklen = ", one)
        self.assertNotIn("LorenzoQuant", one)
        self.assertIn("ports: output\n", one)
        self.assertRegex(one, r"(?m)^backends: cpu(, cuda)?$")
        self.assertRegex(one, r"(?m)^graph-safe: compress (yes|no), decompress (yes|no)$")
        self.assertRegex(text, r"(?m)^stage +category +backends +graph-safe +fusable +what it does$")
        self.assertRegex(text, r"(?m)^Huffman +coder +cpu(,cuda)? +decompress +no +canonical")
        self.assertRegex(text, r"(?m)^Zigzag +transform +cpu(,cuda)? +yes +yes +signed")
        self.assertRegex(text, r"(?m)^Difference +predictor +cpu(,cuda)? +yes +some +each")
        self.assertIn("fusable with these defaults: yes (map)", self.fz("stages", "Zigzag").stdout.decode())
        difference = self.fz("stages", "Difference").stdout.decode()
        self.assertRegex(difference, r"(?m)^fusable with these defaults: no \(must see all sums of floats .*\); yes with u?int")
        quantizer = self.fz("stages", "Quantizer").stdout.decode()
        self.assertIn("ports: codes, outlier_vals, outlier_idxs\n", quantizer)
        self.assertIn("(input_type, code_type; in a file without them float32/uint32)", quantizer)
        self.assertIn('error_bound_mode = "ABS" (in a file: "REL")\n', quantizer)
        self.assertIn("  quant_radius = 32768\n", quantizer)

    def test_stages_json(self):
        stages = {stage["name"]: stage for stage in json.loads(self.fz("stages", "--json").stdout)}
        keys = {param["key"]: param for param in stages["LorenzoQuant"]["params"]}
        self.assertEqual(keys["error_bound_mode"]["choices"], ["ABS", "REL", "NOA"])
        self.assertEqual(keys["quant_radius"]["kind"], "int")
        self.assertTrue(all(stage["summary"] and stage["category"] for stage in stages.values()))
        self.assertTrue(all(stage["ports"] for stage in stages.values()))
        quantizer = stages["Quantizer"]
        self.assertEqual(quantizer["default_types"], ["float32", "uint32"])
        modes = [(p["default"], p["config_default"]) for p in quantizer["params"] if p["key"] == "error_bound_mode"]
        self.assertEqual(modes, [("ABS", "REL")])
        self.assertEqual((stages["Zigzag"]["fusable"], stages["Zigzag"]["fusion_part"]), (True, "map"))
        self.assertFalse(stages["Huffman"]["fusable"])
        self.assertIn("chunk_size = ", stages["Difference"]["fusable_with"])
        self.assertIsNone(stages["Huffman"]["fusable_with"])
        self.assertIn("cpu", stages["Huffman"]["backends"])
        self.assertIn("compress", stages["Huffman"]["graph_safe"])
        one = json.loads(self.fz("stages", "--json", "Huffman").stdout)
        self.assertEqual([stage["name"] for stage in one], ["Huffman"])

    def test_presets(self):
        text = self.fz("presets").stdout.decode()
        for name in ("pfpl", "cusz", "fzgpu"):
            self.assertRegex(text, rf"(?m)^  {name} ")
        names = [preset["name"] for preset in json.loads(self.fz("presets", "--json").stdout)]
        self.assertEqual(names, [line.split()[0] for line in text.splitlines() if line.startswith("  ")])
        self.assertEqual(names[:5], ["fast", "balanced", "best", "auto", "lossless"])
        self.assertRegex(text, r"(?m)^  pfpl +abs range rel +PFPL")
        self.assertRegex(text, r"(?m)^  cusz +abs range +cuSZ:")
        self.assertRegex(text, r"(?m)^  best .*\(ratio 15\.1; 0\.5 GB/s in, far less below 4 MiB, 1\.4 out\)")
        for name in ("speed", "quantizer_lorenzo_bitpack"):
            self.assertRegex(text, rf"(?m)^  {name} .*Never pays")
        self.assertLess(text.index("  lossless "), text.index("families, for comparison"))
        self.assertLess(text.index("families, for comparison"), text.index("  cusz "))
        bounds = {preset["name"]: preset["bounds"] for preset in json.loads(self.fz("presets", "--json").stdout)}
        self.put("a.f32", wave(30))
        for name, kinds in bounds.items():
            for kind in ("abs", "range", "rel"):
                code = OK if kind in kinds else USAGE
                self.fz("compress", "-fqp", name, "-b", f"{kind}:1e-2", "a.f32", code=code)
        shown = self.fz("presets", "--show", "fzgpu").stdout.decode()
        self.assertEqual(self.fz("presets", "fzgpu").stdout.decode(), shown)
        self.assertIn('type = "BitplaneRZE"', shown)

    def test_unknown_names_get_a_suggestion(self):
        self.fails(USAGE, "stages", "Hufman", says="did you mean 'Huffman'")
        self.fails(USAGE, "stages", "qqqqqqqqq", says="fz stages")
        self.fails(USAGE, "stages", "rice", says="fz stages")  # two letters of RLE's or RZE's would be wrong
        self.fails(USAGE, "presets", "--show", "pfp", says="did you mean 'pfpl'")
        self.fails(USAGE, "presets", "--show", "qqqqqqqqq", says="fz presets")

    def test_a_full_disk_is_noticed(self):
        with open("/dev/full", "wb") as full:
            self.fails(IO, "presets", stdout=full, says="standard output")
            self.fails(IO, "generate", "man", stdout=full, says="cannot write standard output: No space left")

    def test_work_goes_on_when_nobody_can_be_told(self):
        self.put("a.f32", wave(3000))
        with open("/dev/full", "wb") as full:
            self.fz("compress", "-p", "cusz", "-b", "range:1e-4", "-o", "full.fzm", "a.f32", stderr=full)
            self.fz("compress", "absent.f32", code=IO, stderr=full)
            self.fz("frobnicate", code=USAGE, stderr=full)
            self.fz(code=USAGE, stderr=full)
            self.fz("test", "--progress", "always", "full.fzm", stderr=full)
            for stdout in (subprocess.PIPE, full):
                options = {"cwd": self.folder, "check": False, "timeout": 120, "stdout": stdout, "stderr": full}
                done = subprocess.run([os.path.abspath(cli_support.FZGMOD), "-z"], **options)
                self.assertEqual(done.returncode, 1)

    def test_files_stay_clean_when_a_standard_stream_is_closed(self):
        field, archive = self.archive()
        whole = self.get(archive)
        for closed in (">&-", "2>&-", "0<&-", ">&- 2>&-", "0<&- >&- 2>&-"):
            script = f'"$0" compress -v -p cusz -b range:1e-4 -o b.fzm a.f32 {closed} && "$0" decompress -v -o b.f32 b.fzm {closed}'
            words = ["sh", "-c", script, os.path.abspath(cli_support.BINARY)]
            done = subprocess.run(words, cwd=self.folder, check=False, timeout=120, capture_output=True)
            self.assertEqual(done.returncode, OK, (closed, done.stderr))
            self.assertEqual(self.get("b.fzm"), whole, closed)
            self.assertEqual(len(self.get("b.f32")), len(field.tobytes()), closed)
            for name in ("b.fzm", "b.f32"):
                (self.folder / name).unlink()


class MistakeTest(CliCase):
    def test_commands(self):
        self.fails(USAGE, "compres", "a", says="did you mean 'compress'")
        self.fails(USAGE, "verfiy", says="did you mean 'verify'")
        self.fails(USAGE, "frobnicate", says=["no command 'frobnicate'", "fz --help"])
        self.fails(USAGE, "compress", "a.f32", "-b", says="--bound needs a value; 'fz compress --help'")
        self.fails(USAGE, "compress", "-b", "abs:1", "-b", "rel:1", "a.f32", says="--bound is given more than once")

    def test_a_file_in_place_of_a_command(self):
        self.put("a.f32", wave(3))
        self.put("a.fzm", wave(3))
        self.fails(USAGE, "a.f32", says="did you mean 'fz compress a.f32'")
        self.fails(USAGE, "a.fzm", says="did you mean 'fz decompress a.fzm'")

    def test_options(self):
        for words, says in (
            (["compress", "--bond", "abs:1", "a"], "did you mean '--bound'"),
            (["compress", "--verfy", "a"], "did you mean '--verify'"),
            (["compress", "--thread=3", "a"], "did you mean '--threads'"),
            (["decompress", "--outptu", "x", "a"], "did you mean '--output'"),
            (["info", "--jsn", "a"], "did you mean '--json'"),
            (["test", "--frobnicate", "a"], "fz test --help"),
            (["presets", "--shwo", "a"], "did you mean '--show'"),
            (["stages", "-z"], "fz stages --help"),
            (["verify", "--qiuet", "a", "b"], "did you mean '--quiet'"),
            (["--versoin"], "did you mean '--version'"),
            (["--frobnicate"], "'fz --help'"),
        ):
            self.fails(USAGE, *words, says=["no option", says])

    def test_levels_of_gzip_are_no_files(self):
        self.put("a.f32", wave(10))
        for words in (("compress", "-9", "-b", "abs:1", "a.f32"), ("decompress", "-1", "a.f32.fzm")):
            self.fails(USAGE, *words, says=[f"no option '{words[1]}'", "--best", "fz presets"])
        self.assertEqual(self.names(), ["a.f32"])
        self.fz("compress", "-q", "-b", "abs:1", "--fill", "-9", "a.f32")

    def test_a_word_that_is_missing_is_said_with_its_meaning(self):
        self.fails(USAGE, "hdf5", says="WHAT (words, or info: whether HDF5 can load the filter) is missing")
        self.fails(USAGE, "convert", "a.f32", says="OUTPUT (its kind is in its name; - for stdout, raw) is missing")

    def test_values(self):
        self.fails(USAGE, "compress", "-b", says="fz compress --help")
        self.fails(USAGE, "compress", "-b", "abs:1", "-b", "abs:2", "a", says="fz compress --help")
        self.fails(USAGE, "presets", "pfpl", "extra", says="'extra' is one argument too many")
        self.fails(USAGE, "verify", says="fz verify --help")

    def test_messages_are_one_line(self):
        message = self.fz("compress", "absent.f32", "-p", "cusz", "-b", "range:1e-4", code=IO).stderr.decode()
        self.assertEqual(len(re.findall(r"\n", message)), 1)


class GenerateTest(CliCase):
    """Manual and completions come from the options, so they have every one of them."""

    def options(self, command):
        text = self.fz(command, "--help").stdout.decode()
        return set(re.findall(r"(?m)^  .*?(--[a-z][a-z-]*)", text.split("Options:")[1].split("\n\n")[0]))

    def test_every_option_is_there(self):
        texts = {what: self.fz("generate", what).stdout.decode() for what in ("bash", "zsh", "man")}
        for command in COMMANDS:
            options = self.options(command)
            self.assertIn("--help", options)
            for what, text in texts.items():
                plain = text.replace("\\-", "-")
                self.assertIn(command, plain)
                for option in options:
                    self.assertIn(option, plain, (what, command))

    def complete(self, *words):
        """What bash offers for the last word."""
        script = "source <({} generate bash); COMP_WORDS=({}); COMP_CWORD={}; _fz; echo ${{COMPREPLY[@]}}"
        quoted = " ".join(f"'{word}'" for word in ("fz", *words))
        done = subprocess.run(
            ["bash", "-c", script.format("fz", quoted, len(words))],
            cwd=self.folder, capture_output=True, check=True, env=self.path_with_fz(),
        )
        self.assertEqual(done.stderr, b"")
        return done.stdout.decode().split()

    def path_with_fz(self):
        folder = self.folder / "bin"
        folder.mkdir(exist_ok=True)
        if not (folder / "fz").exists():
            os.symlink(os.path.abspath(cli_support.BINARY), folder / "fz")
        return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}

    @unittest.skipUnless(shutil.which("bash"), "no bash here")
    def test_bash_completes(self):
        self.assertEqual(self.complete("comp"), ["compress"])
        self.assertEqual(self.complete("compress", "--ver"), ["--verify", "--verbose"])
        self.assertEqual(self.complete("compress", "-p", "cuszp3_"), ["cuszp3_fixed", "cuszp3_outlier"])
        self.assertEqual(self.complete("stages", "Huf"), ["Huffman"])
        self.put("field.f32", wave(3))
        self.assertEqual(self.complete("compress", "fie"), ["field.f32"])
        self.assertEqual(self.complete("test", "--progress", "al"), ["always"])

    @unittest.skipUnless(shutil.which("groff"), "no groff here")
    def test_manuals_are_good_roff(self):
        for what in ("man", "fzgmod-man"):
            page = self.fz("generate", what).stdout
            done = subprocess.run(["groff", "-man", "-ww", "-Tascii"], input=page, capture_output=True, check=True)
            self.assertEqual(done.stderr, b"")
            self.assertIn(b"SYNOPSIS", re.sub(rb"\x1b\[[0-9]*m|.\x08", b"", done.stdout))

    def test_other_words_are_refused(self):
        self.fails(USAGE, "generate", "tcsh", says="bash, zsh, fish, man")
        self.fails(USAGE, "generate", "zhs", says="did you mean 'zsh'")
