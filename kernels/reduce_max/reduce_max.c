/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/chunks.h"
#include "kernels/manifest.h"

typedef struct most {
    int64_t chunk;
    union {
        double align;
        char bytes[GY_CHUNKS * 8];
    } of; /* per chunk, in the type of the elements */
} most;

/* Elements are compared in their own type (f16 and bf16 as float); a NaN is passed on. */
#define LOOP(dtype, type, own, LOAD, STORE)                                                                            \
    static type most_##type##_##dtype(const type *x, int64_t n, type start)                                            \
    {                                                                                                                  \
        own found = (own)LOAD(start);                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            own v = (own)LOAD(x[i]);                                                                                   \
            found = v > found || v != v ? v : found;                                                                   \
        }                                                                                                              \
        return (type)STORE(found);                                                                                     \
    }
#define WHOLE(dtype, type, wide, LOAD, STORE) LOOP(dtype, type, type, , )
GY_FLOAT_TYPES(LOOP)
GY_INTEGER_TYPES(WHOLE)
#undef LOOP

/* Chunks are apart from each other, and meet in their order, whoever takes them. */
static gantry_status most_of_chunks(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    most *m = data;
    int64_t n = gy_arg_size(&l->arg[0]);
    switch (l->arg[0].dtype) {
#define LOOP(dtype, type, own, LOAD, STORE)                                                                            \
    case dtype:                                                                                                        \
        for (int64_t c = first; c < last; c++) {                                                                       \
            const type *x = (const type *)l->arg[0].data + c * m->chunk;                                               \
            int64_t rest = n - c * m->chunk, size = rest < m->chunk ? rest : m->chunk;                                 \
            ((type *)(void *)m->of.bytes)[c] = most_##type##_##dtype(x, size, x[0]);                                   \
        }                                                                                                              \
        return GANTRY_OK;
        GY_FLOAT_TYPES(LOOP)
        GY_INTEGER_TYPES(WHOLE)
#undef LOOP
    default:
        return GANTRY_E_KERNEL;
    }
}

static gantry_status run(const gantry_launch *l)
{
    int64_t n = gy_arg_size(&l->arg[0]);
    most m = { .chunk = gy_chunk_size(n, (int64_t)gantry_dtype_size(l->arg[0].dtype)) };
    int64_t chunks = (n + m.chunk - 1) / m.chunk;
    gantry_status status = gantry_launch_cut(l, chunks, gy_grain_of_rows(m.chunk), most_of_chunks, &m);
    if (status)
        return status;
    switch (l->arg[0].dtype) {
#define LOOP(dtype, type, own, LOAD, STORE)                                                                            \
    case dtype: {                                                                                                      \
        type *out = l->arg[1].data;                                                                                    \
        out[0] = most_##type##_##dtype((const type *)(const void *)m.of.bytes, chunks, out[0]);                        \
        return GANTRY_OK;                                                                                              \
    }
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

const gantry_kernel gy_kernel_reduce_max = { .struct_size = sizeof(gantry_kernel),
                                             .name = "reduce_max",
                                             .summary = "out = the largest of out and x",
                                             GANTRY_KERNEL_ARGS(args),
                                             .flops = "x.size",
                                             .bytes = "x.bytes",
                                             .scratch = GY_CHUNK_SCRATCH,
                                             .host = run,
                                             .check = check,
                                             .formula = "out = max(x)" };
