/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/chunks.h"
#include "kernels/manifest.h"

static gantry_status run(const gantry_launch *l)
{
    const gantry_arg *in = &l->arg[0];
    int64_t n = gy_arg_size(in);
    switch (in->dtype) {
/* Elements are compared in their own type (f16 and bf16 as float); a NaN is passed on. */
#define LOOP(dtype, type, own, LOAD, STORE)                                                                            \
    case dtype: {                                                                                                      \
        const type *x = in->data;                                                                                      \
        type *out = l->arg[1].data;                                                                                    \
        own most = (own)LOAD(out[0]);                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            own v = (own)LOAD(x[i]);                                                                                   \
            most = v > most || v != v ? v : most;                                                                      \
        }                                                                                                              \
        out[0] = STORE(most);                                                                                          \
        return GANTRY_OK;                                                                                              \
    }
#define WHOLE(dtype, type, wide, LOAD, STORE) LOOP(dtype, type, type, , )
        GY_FLOAT_TYPES(LOOP)
        GY_INTEGER_TYPES(WHOLE)
#undef WHOLE
#undef LOOP
    default:
        return GANTRY_E_KERNEL;
    }
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    return gy_check_one_element(l, 1, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_REGION("x", GANTRY_READ, 0, 'T', NULL),
    GY_REGION("out", GANTRY_MAX, 0, 'T', "one element"),
};

const gantry_kernel gy_kernel_reduce_max = { sizeof(gantry_kernel),
                                             "reduce_max",
                                             "out = the largest of out and x",
                                             GY_ARGS(args),
                                             0,
                                             "x.size",
                                             "x.bytes",
                                             GY_CHUNK_SCRATCH,
                                             run,
                                             check,
                                             NULL,
                                             NULL };
