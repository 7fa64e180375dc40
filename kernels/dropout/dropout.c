/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/manifest.h"
#include "kernels/philox4.h"
#include <math.h>

enum { P, SEED, FIRST, RUN, PITCH, X, Y }; /* arguments */

/* Elements whose numbers follow each other; 0 asks for all. */
static int64_t run_of(const gantry_launch *l)
{
    return l->arg[RUN].integer ? l->arg[RUN].integer : INT64_MAX;
}

static gantry_status piece(const gantry_launch *l, void *data, int64_t begin, int64_t end)
{
    (void)data;
    if (!(l->arg[P].number >= 0 && l->arg[P].number < 1)) /* check() does not see numbers that change later */
        return GANTRY_E_KERNEL;
    uint64_t seed = (uint64_t)l->arg[SEED].integer, first = (uint64_t)l->arg[FIRST].integer;
    int64_t run = run_of(l), pitch = l->arg[PITCH].integer;
    uint64_t least = (uint64_t)ceil(l->arg[P].number * 0x1p32);
    double factor = 1 / (1 - l->arg[P].number);
    switch (l->arg[X].dtype) {
#define LOOP(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype: {                                                                                                      \
        const type *x = l->arg[X].data;                                                                                \
        type *y = l->arg[Y].data;                                                                                      \
        for (int64_t i = begin; i < end;) {                                                                            \
            int64_t at = i % run, count = run - at < end - i ? run - at : end - i;                                     \
            uint64_t e = first + (uint64_t)(i / run * pitch + at);                                                     \
            gy_philox4 block = gy_philox4_at(seed, e / 4);                                                             \
            for (int64_t to = i + count; i < to; i++, e++) {                                                           \
                if (e % 4 == 0)                                                                                        \
                    block = gy_philox4_at(seed, e / 4);                                                                \
                y[i] = STORE(block.word[e % 4] >= least ? LOAD(x[i]) * (wide)factor : (wide)0);                        \
            }                                                                                                          \
        }                                                                                                              \
        return GANTRY_OK;                                                                                              \
    }
        GY_FLOAT_TYPES(LOOP)
#undef LOOP
    default:
        return GANTRY_E_KERNEL;
    }
}

static gantry_status run(const gantry_launch *l)
{
    return gantry_launch_cut(l, gy_arg_size(&l->arg[X]), GY_GRAIN / 4, piece, NULL);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    double p = l->arg[P].number;
    if (!(p >= 0 && p < 1))
        return gy_check_fail(text, size, "\"p\" is %g; it must be at least 0 and below 1", p);
    for (int i = SEED; i <= PITCH; i++) {
        if (l->arg[i].number < 0 || l->arg[i].number != (double)l->arg[i].integer)
            return gy_check_fail(text, size, "\"%s\" is %g; it must be a whole number from 0 to 2^63 - 1",
                                 l->arg[i].name, l->arg[i].number);
    }
    if (l->arg[RUN].integer && gy_arg_size(&l->arg[X]) % l->arg[RUN].integer)
        return gy_check_fail(text, size, "\"run\" is %lld; it must divide the %lld elements of \"x\"",
                             (long long)l->arg[RUN].integer, (long long)gy_arg_size(&l->arg[X]));
    return gy_check_same_size(l, X, Y, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_SCALE("p", "share of elements that become 0"),
    GY_SCALE("seed", "which elements: the same seed drops the same ones"),
    GY_SCALE_OR("first", 0, "number of the first element, where x is a part of an array"),
    GY_SCALE_OR("run", 0, "elements in a row whose numbers follow each other, where x is columns of an array; 0: all"),
    GY_SCALE_OR("pitch", 0,
                "from the number of the first element of one row to that of the next, where there is a run"),
    GY_REGION("x", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "elements, or the gradient of y"),
    GY_REGION("y", GANTRY_WRITE, GY_FLOAT_DTYPES, 'T', "as many elements, or the gradient of x"),
};

const gantry_kernel gy_kernel_dropout = { .struct_size = sizeof(gantry_kernel),
                                          .name = "dropout",
                                          .summary = "y = x / (1 - p) or 0, by numbers of Philox; its own gradient",
                                          GANTRY_KERNEL_ARGS(args),
                                          .flops = "12 * x.size",
                                          .bytes = "x.bytes + y.bytes",
                                          .host = run,
                                          .check = check };
