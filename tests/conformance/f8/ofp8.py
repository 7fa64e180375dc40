# SPDX-License-Identifier: Apache-2.0
"""The two formats of "OCP 8-bit Floating Point Specification (OFP8)", revision 1.0, from their definition: a table of what all 256
patterns mean, and rounding by searching that table. It shares nothing with Gantry's conversions."""
import numpy as np


class Format:
    def __init__(self, name, exponent, fraction, bias, has_infinities):
        self.name = name
        self.value = np.array([self._meaning(b, exponent, fraction, bias, has_infinities) for b in range(256)])
        positive = self.value[:128]
        self.finite = positive[np.isfinite(positive)]  # ascending, and as many patterns from 0 on
        self.most = self.finite[-1]
        self.nan = 0x7E if has_infinities else 0x7F

    @staticmethod
    def _meaning(bits, exponent, fraction, bias, has_infinities):
        sign = -1.0 if bits & 0x80 else 1.0
        e, f = (bits & 0x7F) >> fraction, bits & (2 ** fraction - 1)
        if has_infinities and e == 2 ** exponent - 1:
            return float("nan") if f else sign * float("inf")
        if not has_infinities and bits & 0x7F == 0x7F:
            return float("nan")
        if e == 0:
            return sign * f / 2.0 ** fraction * 2.0 ** (1 - bias)
        return sign * (1 + f / 2.0 ** fraction) * 2.0 ** (e - bias)

    def to_float(self, bits):
        return self.value[bits].astype(np.float32)

    def nearest(self, x):
        """Patterns of the nearest numbers, the even one of two that are as near, and of the largest for what is larger."""
        x = np.asarray(x, np.float64)
        size = np.where(np.isnan(x), 0, np.minimum(np.abs(x), self.most))
        above = np.searchsorted(self.finite, size)  # the first that is at least as large
        below = np.maximum(above - 1, 0)
        to_above, to_below = self.finite[above] - size, size - self.finite[below]
        bits = np.where((to_above < to_below) | ((to_above == to_below) & (above % 2 == 0)) | (above == 0), above, below)
        bits = np.where(np.isnan(x), self.nan, bits)
        return (bits | np.where(np.signbit(x), 0x80, 0)).astype(np.uint8)

    def hard(self, rng):
        """float32 that are hard to round: the numbers themselves, what is halfway between them, what is beside both, what is beyond
        the largest, NaN, infinities, subnormal floats, and any patterns."""
        ends = np.concatenate([self.finite, (self.finite[1:] + self.finite[:-1]) / 2, [self.most * 1.03, self.most * 1.0626, self.most * 1.126,
                               self.most * 2, 3e38, np.inf, np.nan, 1e-40, 1e-45]]).astype(np.float32)
        near = [ends, np.nextafter(ends, np.float32(0)), np.nextafter(ends, np.float32(np.inf))]
        random = rng.integers(0, 2 ** 32, 4000, np.uint32).view(np.float32)
        usual = rng.normal(0, 1, 4000).astype(np.float32) * np.exp2(rng.integers(-20, 20, 4000)).astype(np.float32)
        x = np.concatenate([*near, *(-part for part in near), random, usual])
        return np.where(np.isnan(x), np.copysign(np.float32(np.nan), x), x)


E4M3 = Format("f8e4m3", 4, 3, 7, False)
E5M2 = Format("f8e5m2", 5, 2, 15, True)
FORMATS = {f.name: f for f in (E4M3, E5M2)}
# Table 2 of the specification.
assert (E4M3.most, E4M3.finite[1], E4M3.finite[8]) == (448, 2.0 ** -9, 2.0 ** -6)
assert (E5M2.most, E5M2.finite[1], E5M2.finite[4]) == (57344, 2.0 ** -16, 2.0 ** -14)
