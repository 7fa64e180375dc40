/* SPDX-License-Identifier: Apache-2.0 */
/* The plain table: passes of small radices, and Bluestein's algorithm for lengths with larger prime factors. */
#include "base/memory.h"
#include "kernels/fft/fft.h"
#include <math.h>

/* Transforms of n numbers one behind the other. */
typedef struct fft_line {
    int64_t n;
    gy_fft_passes passes; /* of n, or of m */
    int64_t m;            /* the padded length; 0: it is not padded */
    int sign;
    void *root, *chirp, *filter; /* n or m, n and m complex numbers */
} fft_line;

typedef struct fft_plan {
    gy_fft_shape shape;
    fft_line line[GY_FFT_AXES];
} fft_plan;

/* e^(sign 2 pi i k / n) for 0 <= k < n. Sine and cosine are taken of at most an eighth of a turn, where the angle is
 * rounded least, and turned by quarters. */
static void gy_fft_root(int64_t k, int64_t n, int sign, double *re, double *im)
{
    static const double turn = 6.283185307179586476925286766559;
    int64_t nearest = (8 * k + n) / (2 * n) % 4;      /* quarter of a turn */
    int64_t rest = 4 * k - (8 * k + n) / (2 * n) * n; /* quarters of n */
    double angle = turn * ((double)rest / (4 * (double)n)), c = cos(angle), s = sin(angle);
    *re = nearest == 0 ? c : nearest == 1 ? -s : nearest == 2 ? -c : s;
    *im = sign * (nearest == 0 ? s : nearest == 1 ? c : nearest == 2 ? -s : -c);
}

#define REAL    float
#define NAME(x) x##_f32
#include "kernels/fft/fft_passes.h"
#undef REAL
#undef NAME
#define REAL    double
#define NAME(x) x##_f64
#include "kernels/fft/fft_passes.h"

static void free_plan(void *made)
{
    fft_plan *p = made;
    for (int k = 0; k < GY_FFT_AXES; k++) {
        gy_free(p->line[k].root);
        gy_free(p->line[k].chirp);
        gy_free(p->line[k].filter);
    }
    gy_free(p);
}

static bool fill(fft_line *p, gantry_dtype dtype)
{
    size_t size = 2 * gantry_dtype_size(dtype);
    p->root = gy_calloc((size_t)(p->m ? p->m : p->n), size);
    p->chirp = p->m ? gy_calloc((size_t)p->n, size) : NULL;
    p->filter = p->m ? gy_calloc((size_t)p->m, size) : NULL;
    if (!p->root || (p->m && (!p->chirp || !p->filter)))
        return false;
    return dtype == GANTRY_F32 ? fill_f32(p) : fill_f64(p);
}

static bool make_line(fft_line *line, const gy_fft_shape *shape, int axis)
{
    *line = (fft_line){ .n = shape->n[axis], .sign = shape->inverse ? 1 : -1 };
    if (!gy_fft_passes_of(line->n, &line->passes)) {
        line->m = gy_fft_padded(line->n);
        gy_fft_passes_of(line->m, &line->passes);
    }
    return fill(line, shape->dtype);
}

static void *make_plan(const gy_fft_shape *shape, const void *x, void *y)
{
    (void)x;
    (void)y;
    fft_plan *p = gy_calloc(1, sizeof *p);
    bool made = p != NULL;
    for (int k = 0; made && k < shape->axes; k++)
        made = make_line(&p->line[k], shape, k);
    if (made) {
        p->shape = *shape;
        return p;
    }
    if (p)
        free_plan(p);
    return NULL;
}

/* Along the first axis from x to y, along others in y. */
static gantry_status run(const void *made, const void *x, void *y, double scale)
{
    const fft_plan *p = made;
    gantry_status status = GANTRY_OK;
    for (int k = 0; k < p->shape.axes && !status; k++) {
        const void *from = k ? y : x;
        double factor = k == p->shape.axes - 1 ? scale : 1;
        status = p->shape.dtype == GANTRY_F32 ? along_f32(p, k, from, y, factor) : along_f64(p, k, from, y, factor);
    }
    return status;
}

const gy_fft gy_fft_plain = { "plain C", make_plan, run, free_plan };
