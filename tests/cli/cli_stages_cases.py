"""Cases of `--stages`, pipelines in one line."""

import json

from cli_support import OK, USAGE, CliCase, max_error, wave, one

__all__ = ["StagesTest", "SettingsTest"]


class StagesTest(CliCase):
    def built(self, chain, *options, name="a.f32", typecode="f", code=OK):
        """Compresses with a chain; gives its stages as the archive records them."""
        self.put(name, wave(3000, typecode))
        bound = () if "-b" in options or "error_bound" in chain else ("-b", "range:1e-3")
        self.fz("compress", "-f", "--no-fallback", *bound, "--stages", chain, *options, name, code=code)
        self.fz("test", "-q", name + ".fzm")
        return {stage["name"]: stage for stage in one(self.fz("info", "--json", name + ".fzm").stdout)["stages"]}

    def refused(self, chain, place, *says):
        self.put("a.f32", wave(30))
        self.fails(USAGE, "compress", "-f", "--stages", chain, "a.f32", says=[f"character {place}: ", *says])

    def test_the_example_of_the_help(self):
        stages = self.built("quantizer(linear)->lorenzo(block_size=32)->adaptive_bitpack", "-b", "abs:1e-2", "--verify")
        self.assertEqual(list(stages), ["Quantizer", "Lorenzo", "AdaptiveBitpack"])
        self.assertTrue(stages["Quantizer"]["params"]["linear_mode"])
        self.assertEqual(stages["Lorenzo"]["params"]["block_size"], 32)
        self.assertEqual(stages["Lorenzo"]["types"], ["int32"])

    def test_bound_holds_exactly(self):
        field = wave(3000)
        self.built(" quantizer -> bitshuffle->rze ", "-b", "abs:1e-3")
        self.fz("decompress", "-o", "back.f32", "a.f32.fzm")
        self.assertLessEqual(max_error(field, self.values("back.f32")), 1e-3)

    def test_without_a_bound_a_chain_with_loss_is_refused(self):
        self.put("a.f32", wave(3000))
        self.fails(USAGE, "compress", "--stages", "quant->bshuf->rze", "a.f32", says=["quant needs to know how much may be lost", "error_bound=E in its brackets"])
        self.fz("compress", "-q", "--stages", "quant(error_bound=0.01)->bshuf->rze", "a.f32")
        self.fz("compress", "-fq", "--stages", "bshuf->rze", "a.f32")

    def test_words_are_switches_choices_and_types(self):
        stages = self.built("LorenzoQuant(quant_radius=512, zigzag, abs, error_bound=0.01)->Huffman(fine)")
        self.assertEqual(stages["LorenzoQuant"]["params"]["error_bound_mode"], "ABS")
        self.assertTrue(stages["LorenzoQuant"]["params"]["zigzag_codes"])
        # The archive does not need encode_mode, so only the tool can tell.
        text = self.fz("compress", "-fv", "-b", "range:1e-3", "--stages", "lq(zigzag)->huffman(fine)", "a.f32").stderr.decode()
        self.assertIn('huffman = Huffman uint16: encode_mode = "Fine"', text)
        stages = self.built("quantizer(code_type=uint16)->rle(uint16)")
        self.assertEqual(stages["RLE"]["types"], ["uint16"])

    def test_types_follow_from_the_neighbours(self):
        stages = self.built("quantizer(abs,linear,error_bound=0.01)->zigzag->bitpack(auto_detect)")
        self.assertEqual(stages["Zigzag"]["types"], ["int32", "uint32"])
        self.assertEqual(stages["Bitpack"]["types"], ["uint32"])
        stages = self.built("quantizer->bitshuffle->rze", name="a.f64", typecode="d")
        self.assertEqual(stages["Quantizer"]["types"][0], "float64")
        self.assertEqual(stages["Bitshuffle"]["params"]["element_width"], 4)
        stages = self.built("quantizer(code_type=uint16)->bitshuffle->rze")
        self.assertEqual(stages["Bitshuffle"]["params"]["element_width"], 2)
        self.assertEqual(self.built("lq(quant_radius=300,zigzag)->huffman")["Huffman"]["params"]["bklen"], 600)

    def test_verbose_says_what_was_built(self):
        self.put("a.f32", wave(300))
        text = self.fz("compress", "-v", "--stages", "quantizer(error_bound=0.01)->bitshuffle->rze", "a.f32").stderr.decode()
        self.assertIn("error_bound_mode = \"NOA\" (chosen)", text)
        self.assertIn("  bitshuffle = Bitshuffle: element_width = 4 (chosen)\n", text)
        text = self.fz("compress", "-fv", "-b", "abs:1", "--stages", "quant->rze", "a.f32").stderr.decode()
        self.assertIn("  quant = Quantizer float32/uint32\n", text)

    def test_linear_quantisers_tighten_their_step(self):
        self.put("a.f32", wave(3000))
        text = self.fz("compress", "-v", "-b", "range:1e-3", "--stages", "quant(linear)->rze", "a.f32").stderr.decode()
        self.assertIn('linear_policy = "Guarantee" (chosen)', text)
        text = self.fz("compress", "-fv", "--stages", "quant(linear,throw,error_bound=1)->rze", "a.f32").stderr.decode()
        self.assertIn('linear_policy = "Throw",', text)

    def test_settings_by_the_words_of_the_chain(self):
        stages = self.built("quantizer->bitshuffle->rze", "--set", "rze.levels=2", "--set", "quantizer.quant_radius=99")
        self.assertEqual(stages["RZE"]["params"]["levels"], 2)
        self.assertEqual(stages["Quantizer"]["params"]["quant_radius"], 99)
        self.built("quantizer(code_type=uint16)->difference->difference->rle", "--set", "difference_2.chunk_size=8192")

    def test_mistakes_have_a_place_and_a_hint(self):
        self.refused("quantizr->rze", 1, "no stage 'quantizr'", "did you mean 'quantizer'")
        self.refused("quantizer->", 12, "a stage is missing")
        self.refused("quantizer->->rze", 12, "'->rze' where a stage was expected")
        self.refused("quantizer rze", 11, "'rze' where '->' or the end was expected")
        self.refused("quantizer(linear", 17, "not closed")
        self.refused("quantizer(linear rle)", 18, "'rle)' where ',' or ')' was expected")
        self.refused("quantizer(,)", 11, "a setting is missing")
        self.refused("quantizer(quant_radius=)", 24, "value of 'quant_radius' is missing")
        self.refused("quantizer(quantradius=3)", 11, "no setting 'quantradius'", "did you mean 'quant_radius'")
        self.refused("quantizer(radius=3)", 11, "did you mean 'quant_radius'")
        self.refused("quantizer(foo=3)", 11, "no setting 'foo'; its settings: error_bound")
        self.refused("quantizer(lineer)", 11, "'lineer' is neither a switch", "settings: error_bound")
        self.refused("quantizer(quant_radius=lots)", 11, "quant_radius")
        self.refused("quantizer(quant_radius=0)", 11, "quant_radius")
        self.refused("lorenzo->rze", 1, "takes int8, int16, int32, int64, the data are float32")
        self.refused("quantizer->lorenzo(uint8)->rze", 12, "Lorenzo takes")
        self.refused("quantizer->lorenzo(data_type=nonsense)", 20, "'nonsense' is not an element type")

    def test_one_pipeline_and_one_bound(self):
        self.put("a.f32", wave(30))
        self.fails(USAGE, "compress", "--stages", "quant->rze", "-p", "pfpl", "a.f32", says="--preset and --stages")
        self.fails(USAGE, "compress", "--stages", "quant->rze", "-c", "x.toml", "a.f32", says="-c and --stages")
        chain = "quant(error_bound=1)->rze"
        self.fails(USAGE, "compress", "--stages", chain, "-b", "abs:1", "a.f32", says="both give the bound")


class SettingsTest(CliCase):
    def test_unknown_settings_are_answered_with_the_known_ones(self):
        self.put("a.f32", wave(30))
        base = ("compress", "-p", "cusz", "-b", "range:1e-4", "a.f32", "--set")
        listed = ["predict (LorenzoQuant): ", "; coder (Huffman): bklen, "]
        self.fails(USAGE, *base, "huffmn.bklen=3", says=["did you mean 'Huffman.bklen'?", *listed])
        self.fails(USAGE, *base, "coder.bklne=3", says=["did you mean 'coder.bklen'?", *listed])
        self.fails(USAGE, *base, "bklne=3", says=["did you mean 'bklen'?", *listed])
        self.fails(USAGE, *base, "zzz.zzzzzzzz=3", says=["no stage 'zzz' has a setting 'zzzzzzzz'; the", *listed])

    def test_a_stage_may_be_called_by_its_type_in_any_spelling(self):
        self.put("a.f32", wave(3000))

        def archive_of(*settings):
            words = [word for setting in settings for word in ("--set", setting)]
            self.fz("compress", "-fqp", "pfpl", "-b", "rel:1e-3", *words, "a.f32")
            return self.get("a.f32.fzm")

        named = archive_of("coder.levels=2")
        self.assertNotEqual(named, archive_of())
        for setting in ("RZE.levels=2", "rze.levels=2", "Rze.levels=2", "levels=2"):
            self.assertEqual(named, archive_of(setting), setting)
        self.fails(USAGE, "compress", "-fp", "pfpl", "-b", "rel:1e-3", "--set", "rze.levels=9", "a.f32", says="levels must be an integer from 1 to 4")

    def test_a_setting_of_several_stages_needs_one_of_their_names(self):
        self.put("a.f32", wave(3000))
        base = ("compress", "-fq", "a.f32")
        choices = "2 stages have this setting; write difference.chunk_size or coder.chunk_size"
        self.fails(USAGE, *base, "-b", "rel:1e-3", "-p", "pfpl", "--set", "chunk_size=8192", says=choices)
        chain = "quantizer(code_type=uint16)->difference->difference->rle"
        choices = "write difference.chunk_size or difference_2.chunk_size"
        self.fails(USAGE, *base, "-b", "range:1e-3", "--stages", chain, "--set", "Difference.chunk_size=8192", says=choices)
        self.fz(*base, "-b", "range:1e-3", "--stages", chain, "--set", "difference.chunk_size=8192")

    def test_the_example_of_a_setting_works_as_it_stands(self):
        self.put("a.f32", wave(30))
        message = self.fails(USAGE, "compress", "--set", "radius", "a.f32", says="as in ")
        self.fz("compress", "-q", "-b", "rel:1e-3", "--set", message.split("as in ")[1].split()[0], "a.f32")
