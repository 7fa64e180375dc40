/* SPDX-License-Identifier: Apache-2.0 */
/* The same steps as on the host, a thread an element. */
#include "kernels/begin.cuh"
#include "kernels/element.cuh"

struct sizes {
    int64_t frames, height, width, high, wide, channels; /* high, wide: of the result */
};

struct place {
    int64_t first, second;
    float part;
};

static __device__ inline place place_of(int64_t to, int64_t out, int64_t in)
{
    const double at = ((double)to + 0.5) * ((double)in / (double)out) - 0.5, before = floor(at);
    const int64_t first = (int64_t)before;
    return { first < 0 ? 0 : first, first + 1 < in ? first + 1 : in - 1, (float)(at - before) };
}

static __device__ inline float between(float a, float b, float part) { return a + (b - a) * part; }

static __device__ inline void store(uint8_t *to, float value) { *to = value >= 255 ? 255 : (uint8_t)(value + 0.5f); }
static __device__ inline void store(float *to, float value) { *to = value; }

template <typename T> static __device__ void resize(const sizes &s, const T *__restrict__ image, T *__restrict__ out)
{
    GY_FOR_EACH (i, s.frames * s.high * s.wide * s.channels) {
        const int64_t c = i % s.channels, x = i / s.channels % s.wide, y = i / s.channels / s.wide % s.high;
        const place across = place_of(x, s.wide, s.width), down = place_of(y, s.high, s.height);
        const T *frame = image + i / s.channels / s.wide / s.high * s.height * s.width * s.channels + c;
        const T *top = frame + down.first * s.width * s.channels, *bottom = frame + down.second * s.width * s.channels;
        const int64_t left = across.first * s.channels, right = across.second * s.channels;
        store(out + i, between(between((float)top[left], (float)top[right], across.part),
                               between((float)bottom[left], (float)bottom[right], across.part), down.part));
    }
}

#define KERNEL(suffix, type)                                                                                           \
    extern "C" __global__ void resize_##suffix(sizes s, const type *image, type *out)                                  \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        resize(s, image, out);                                                                                         \
    }
KERNEL(u8, uint8_t)
KERNEL(f32, float)
