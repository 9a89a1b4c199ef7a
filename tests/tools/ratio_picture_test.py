"""tools/ratio_picture.py gives every point a label that covers nothing else."""

import itertools
import sys
import unittest
import xml.etree.ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import ratio_picture as tool  # noqa: E402

FRAME = (0, 0, 800, 350)


def data_of(*points: tuple) -> dict:
    return {"n_fields": 3, "copy_gbs": 9.0,
            "points": [{"by": by, "ratio": ratio, "compress_gbs": speed, "decompress_gbs": 2 * speed}
                       for by, ratio, speed in points]}


class RatioPicture(unittest.TestCase):
    def test_labels_of_points_that_nearly_meet_stay_apart(self):
        names = ("best", "auto", "fast", "cuszp3_outlier", "quantizer_lorenzo_bitpack", "SZ3")
        points = [(400 + 3 * i, 170 + 2 * i, name) for i, name in enumerate(names)]
        boxes = [box for _, _, _, box, _ in tool.placed(points, FRAME, [])]
        self.assertEqual(len(boxes), len(names))
        for a, b in itertools.combinations(boxes, 2):
            self.assertFalse(tool.overlap(a, b))
        for (x, y, _), box in itertools.product(points, boxes):
            self.assertFalse(box[0] < x < box[2] and box[1] < y < box[3])
        for box in boxes:
            self.assertTrue(FRAME[0] < box[0] and box[2] < FRAME[2] and FRAME[1] < box[1] and box[3] < FRAME[3])

    def test_what_has_no_room_is_said(self):
        with self.assertRaisesRegex(SystemExit, "no room for the label best"):
            tool.placed([(5, 5, "best")], (0, 0, 10, 10), [])

    def test_the_picture_is_xml_with_every_name_in_both_panels(self):
        text = tool.picture(data_of(("best", 15.0, 0.5), ("fast", 7.0, 4.0), ("SZ3", 10.0, 0.2)))
        words = [node.text for node in xml.etree.ElementTree.fromstring(text).iter() if node.text]
        for name in ("best", "fast", "SZ3", "memcpy 9.0"):
            self.assertEqual(words.count(name), 2, name)

    def test_more_ratio_is_to_the_right_and_more_speed_is_up(self):
        across, up = tool.Axis([1, 10], 0, 100, 0.1), tool.Axis([1, 10], 100, 0, 0.1)
        self.assertLess(across.at(2), across.at(3))
        self.assertGreater(up.at(2), up.at(3))


if __name__ == "__main__":
    unittest.main()
