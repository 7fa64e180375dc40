/* SPDX-License-Identifier: Apache-2.0 */
#include "run/reduce.h"

#include "base/error.h"
#include "base/half.h"
#include "kernel/identity.h"
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { BLOCK = 512 };

/* One function per type: acc (op)= x for n elements. `W` is the type the arithmetic is done in: unsigned for integers,
 * so that overflow wraps instead of being undefined. */
#define DEFINE_COMBINE(name, T, W, is_nan)                                                                             \
    static void combine_##name(gantry_access op, T *acc, const T *x, size_t n)                                         \
    {                                                                                                                  \
        switch (op) {                                                                                                  \
        case GANTRY_SUM:                                                                                               \
            for (size_t i = 0; i < n; i++)                                                                             \
                acc[i] = (T)((W)acc[i] + (W)x[i]);                                                                     \
            break;                                                                                                     \
        case GANTRY_PROD:                                                                                              \
            for (size_t i = 0; i < n; i++)                                                                             \
                acc[i] = (T)((W)acc[i] * (W)x[i]);                                                                     \
            break;                                                                                                     \
        case GANTRY_MIN:                                                                                               \
            for (size_t i = 0; i < n; i++)                                                                             \
                acc[i] = is_nan(acc[i]) || acc[i] < x[i] ? acc[i] : x[i];                                              \
            break;                                                                                                     \
        default:                                                                                                       \
            for (size_t i = 0; i < n; i++)                                                                             \
                acc[i] = is_nan(acc[i]) || acc[i] > x[i] ? acc[i] : x[i];                                              \
            break;                                                                                                     \
        }                                                                                                              \
    }
#define NEVER(x) 0
DEFINE_COMBINE(f32, float, float, isnan)
DEFINE_COMBINE(f64, double, double, isnan)
DEFINE_COMBINE(i8, int8_t, uint32_t, NEVER)
DEFINE_COMBINE(u8, uint8_t, uint32_t, NEVER)
DEFINE_COMBINE(i32, int32_t, uint32_t, NEVER)
DEFINE_COMBINE(u32, uint32_t, uint32_t, NEVER)
DEFINE_COMBINE(i64, int64_t, uint64_t, NEVER)
DEFINE_COMBINE(u64, uint64_t, uint64_t, NEVER)
#undef NEVER
#undef DEFINE_COMBINE

static void combine(gantry_dtype dtype, gantry_access op, void *acc, const void *x, size_t n)
{
    switch (dtype) {
    case GANTRY_F32:
        combine_f32(op, acc, x, n);
        break;
    case GANTRY_F64:
        combine_f64(op, acc, x, n);
        break;
    case GANTRY_I8:
        combine_i8(op, acc, x, n);
        break;
    case GANTRY_U8:
        combine_u8(op, acc, x, n);
        break;
    case GANTRY_I32:
        combine_i32(op, acc, x, n);
        break;
    case GANTRY_U32:
        combine_u32(op, acc, x, n);
        break;
    case GANTRY_I64:
        combine_i64(op, acc, x, n);
        break;
    case GANTRY_U64:
        combine_u64(op, acc, x, n);
        break;
    default:
        break;
    }
}

static void widen(gantry_dtype dtype, float *to, const void *from, size_t n)
{
    const uint16_t *half = from;
    for (size_t i = 0; i < n; i++)
        to[i] = dtype == GANTRY_F16 ? gy_f16_to_float(half[i]) : gy_bf16_to_float(half[i]);
}

static void narrow(gantry_dtype dtype, void *to, const float *from, size_t n)
{
    uint16_t *half = to;
    for (size_t i = 0; i < n; i++)
        half[i] = dtype == GANTRY_F16 ? gy_float_to_f16(from[i]) : gy_float_to_bf16(from[i]);
}

static void reduce_half_block(gantry_dtype dtype, gantry_access op, void *to, const void *const *from, size_t sources,
                              size_t at, size_t n)
{
    float acc[BLOCK], x[BLOCK];
    widen(dtype, acc, (const uint16_t *)from[0] + at, n);
    for (size_t s = 1; s < sources; s++) {
        widen(dtype, x, (const uint16_t *)from[s] + at, n);
        combine_f32(op, acc, x, n);
    }
    narrow(dtype, (uint16_t *)to + at, acc, n);
}

/* The block is built aside: `to` may be a source that is read later than first. */
static void reduce_block(gantry_dtype dtype, gantry_access op, void *to, const void *const *from, size_t sources,
                         size_t at, size_t n)
{
    uint64_t acc[BLOCK]; /* aligned for, and large enough for, any dtype */
    size_t size = gantry_dtype_size(dtype);
    memcpy(acc, (const char *)from[0] + at * size, n * size);
    for (size_t s = 1; s < sources; s++)
        combine(dtype, op, acc, (const char *)from[s] + at * size, n);
    memcpy((char *)to + at * size, acc, n * size);
}

void gy_reduce(gantry_dtype dtype, gantry_access op, void *to, const void *const *from, size_t sources, uint64_t count)
{
    bool half = dtype == GANTRY_F16 || dtype == GANTRY_BF16;
    for (uint64_t at = 0; at < count; at += BLOCK) {
        size_t n = count - at < BLOCK ? (size_t)(count - at) : BLOCK;
        (half ? reduce_half_block : reduce_block)(dtype, op, to, from, sources, (size_t)at, n);
    }
}

void gy_fill_identity(void *to, gantry_dtype dtype, gantry_access op, uint64_t count)
{
    size_t size = gantry_dtype_size(dtype);
    unsigned char element[8] = { 0 };
    gy_identity(dtype, op, element);
    for (uint64_t i = 0; i < count; i++)
        memcpy((char *)to + i * size, element, size);
}

/* ---- collectives of the CPU: the pieces of an exchange are combined and moved by the thread that calls ---- */

gantry_status gy_host_collective_make(gy_host_collective **made, gy_arena *arena, const gantry_schedule *s,
                                      const gantry_graph *graph, uint32_t op, gantry_error *err)
{
    gy_host_collective *c = gy_arena_calloc(arena, 1, sizeof *c);
    gy_exchange *x = NULL;
    GY_TRY(c ? gy_exchange_make(&x, arena, s, graph, op, err) : gy_fail_nomem(err));
    c->exchange = x;
    c->from = gy_arena_calloc(arena, x->most_sources + 1, sizeof *c->from);
    c->stage = x->staged ? gy_arena_alloc(arena, x->bytes) : NULL;
    if (!c->from || (x->staged && !c->stage))
        return gy_fail_nomem(err);
    *made = c;
    return GANTRY_OK;
}

/* Combines the sources of a piece into `to`. */
static void combine_piece(const gy_host_collective *c, const gy_exchange_piece *piece, void *const *at, void *to)
{
    const gy_exchange *x = c->exchange;
    for (uint32_t k = 0; k < piece->sources; k++) {
        const gy_exchange_end *end = &x->end[piece->source + k];
        c->from[k] = (const char *)at[end->use] + end->offset;
    }
    if (piece->sources == 1)
        memmove(to, c->from[0], piece->bytes);
    else
        gy_reduce(x->dtype, x->reduce, to, c->from, piece->sources, piece->bytes / gantry_dtype_size(x->dtype));
}

static char *target_at(const gy_exchange *x, const gy_exchange_piece *piece, void *const *at, uint32_t k)
{
    const gy_exchange_end *end = &x->end[piece->target + k];
    return (char *)at[end->use] + end->offset;
}

static void deliver(const gy_exchange *x, const gy_exchange_piece *piece, void *const *at, const char *from,
                    uint32_t first)
{
    for (uint32_t k = first; k < piece->targets; k++)
        memmove(target_at(x, piece, at, k), from, piece->bytes);
}

void gy_host_collective_execute(const gy_host_collective *c, void *const *at)
{
    const gy_exchange *x = c->exchange;
    char *stage = c->stage;
    for (uint32_t i = 0; i < x->pieces; i++) {
        const gy_exchange_piece *piece = &x->piece[i];
        if (piece->bytes == 0 || piece->targets == 0)
            continue;
        if (c->stage) {
            combine_piece(c, piece, at, stage);
            stage += piece->bytes;
        } else {
            char *first = target_at(x, piece, at, 0);
            combine_piece(c, piece, at, first);
            deliver(x, piece, at, first, 1);
        }
    }
    stage = c->stage;
    for (uint32_t i = 0; c->stage && i < x->pieces; stage += x->piece[i].bytes, i++)
        deliver(x, &x->piece[i], at, stage, 0);
}
