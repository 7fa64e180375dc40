# SPDX-License-Identifier: Apache-2.0
"""The models digits_mlp and digits_cnn learn to read handwritten digits: of those that they have not seen they name as many as is said here, and more
than the nearest mean image does, in NumPy. The digits are those of tools/digits.py; without them this is skipped (77).

check_digits.py GANTRY FOLDER
"""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from numpy_gantry import gantry, np  # noqa: E402

# model, its images, how many it is trained on, steps, the least part that is right
CASES = [("digits_mlp", "x", 7996, 50, 0.92), ("digits_cnn", "image", 1000, 24, 0.86)]


def nearest_mean(x, labels, test, test_labels):
    means = np.stack([x[labels == digit].mean(0) for digit in range(10)])
    distance = ((test[:, None] - means) ** 2).sum(2)
    return (distance.argmin(1) == test_labels).mean()


def train(command, folder, model, images, count, steps):
    with tempfile.TemporaryDirectory() as temporary:
        temporary = pathlib.Path(temporary)
        np.save(temporary / "x.npy", np.load(folder / f"{images}.npy")[:count])
        np.save(temporary / "labels.npy", np.load(folder / "labels.npy")[:count])
        words = ["train", model, "--json", "--devices", 2, "--steps", steps, "--effort", 0, "--output", f"right={temporary / 'right.npy'}"]
        for name, file in [("x", temporary / "x.npy"), ("labels", temporary / "labels.npy"), ("test_x", folder / f"test_{images}.npy"),
                           ("test_labels", folder / "test_labels.npy")]:
            words += ["--input", f"{name}={file}"]
        gantry(command, *words)
        return float(np.load(temporary / "right.npy")[0])


def main(command, folder):
    folder = pathlib.Path(folder)
    if not (folder / "test_labels.npy").exists():
        print(f"skipped: no digits in {folder}; tools/digits.py {folder} fetches them")
        return 77
    x, labels, test, test_labels = (np.load(folder / f"{name}.npy") for name in ("x", "labels", "test_x", "test_labels"))
    bad = 0
    for model, images, count, steps, least in CASES:
        other = nearest_mean(x[:count], labels[:count], test, test_labels)
        right = train(command, folder, model, images, count, steps)
        print(f"{model}: {100 * right:.1f} % of {len(test)} right after {steps} steps on {count}; the nearest mean {100 * other:.1f} %")
        bad += not max(least, other) <= right < 1
    return bad > 0


sys.exit(main(sys.argv[1], sys.argv[2]))
