/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cache_append/cache_append.h"
#include <math.h>
#include <string.h>

/* Head number `from` of x becomes the `dim` elements of y from number `to` on, turned by the place. */
static void turn(const gy_append *a, int64_t place, const gantry_arg *x, int64_t from, const gantry_arg *y, int64_t to)
{
    int64_t half = a->dim / 2, at = from * a->dim;
    switch (x->dtype) {
#define LOOP(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype:                                                                                                        \
        for (int64_t i = 0; i < half; i++) {                                                                           \
            double angle = (double)place * pow(a->base, -2 * (double)i / (double)a->dim);                              \
            double c = cos(angle), s = sin(angle), u = (double)LOAD(((const type *)x->data)[at + i]),                  \
                   v = (double)LOAD(((const type *)x->data)[at + half + i]);                                           \
            ((type *)y->data)[to + i] = STORE((wide)(u * c - v * s));                                                  \
            ((type *)y->data)[to + half + i] = STORE((wide)(v * c + u * s));                                           \
        }                                                                                                              \
        break;
        GY_FLOAT_TYPES(LOOP)
#undef LOOP
    default:
        break;
    }
}

static void keep(const gy_append *a, const gantry_arg *x, int64_t head, const gantry_arg *y, int64_t to)
{
    size_t size = gantry_dtype_size(x->dtype), bytes = size * (size_t)a->dim;
    memcpy((char *)y->data + (size_t)to * size, (const char *)x->data + (size_t)head * bytes, bytes);
}

static void keep_or_turn(const gy_append *a, int64_t place, const gantry_arg *x, int64_t head, const gantry_arg *y,
                         int64_t to)
{
    if (a->base > 0)
        turn(a, place, x, head, y, to);
    else
        keep(a, x, head, y, to);
}

static gantry_status run(const gantry_launch *l)
{
    const gantry_arg *arg = l->arg;
    gy_append a = gy_append_of(l);
    int64_t place = *(const int32_t *)arg[GY_APPEND_PLACE].data;
    if (place < 0 || place >= a.places) {
        *l->status = 1;
        return GANTRY_OK;
    }
    for (int64_t h = 0; h < a.queries; h++)
        keep_or_turn(&a, place, &arg[GY_APPEND_Q], h, &arg[GY_APPEND_TURNED], h * a.dim);
    for (int64_t h = 0; h < a.heads; h++) {
        int64_t to = (h * a.places + place) * a.dim;
        keep_or_turn(&a, place, &arg[GY_APPEND_K], h, &arg[GY_APPEND_KEYS], to);
        keep(&a, &arg[GY_APPEND_V], h, &arg[GY_APPEND_VALUES], to);
    }
    return GANTRY_OK;
}

static gantry_status check_caches(const gantry_launch *l, char *text, size_t size)
{
    const gantry_arg *keys = &l->arg[GY_APPEND_KEYS], *values = &l->arg[GY_APPEND_VALUES];
    for (int i = GY_APPEND_KEYS; i <= GY_APPEND_VALUES; i++)
        if (l->arg[i].rank != 3)
            return gy_check_fail(text, size,
                                 "\"%s\" has %d axes; it must have three: [heads, places, elements of a head]",
                                 l->arg[i].name, (int)l->arg[i].rank);
    if (keys->rows != values->rows || keys->shape[1] != values->shape[1] || keys->shape[2] != values->shape[2])
        return gy_check_fail(text, size,
                             "\"values\" is [%lld, %lld, %lld]; it must be as \"keys\", which is [%lld, %lld, %lld]",
                             (long long)values->rows, (long long)values->shape[1], (long long)values->shape[2],
                             (long long)keys->rows, (long long)keys->shape[1], (long long)keys->shape[2]);
    return GANTRY_OK;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    if (check_caches(l, text, size))
        return GANTRY_E_GRAPH;
    gy_append a = gy_append_of(l);
    if (a.base < 0 || (a.base > 0 && a.dim % 2))
        return gy_check_fail(text, size,
                             "\"base\" is %g and a head has %lld elements; it must be 0, or more where a head has an "
                             "even number",
                             a.base, (long long)a.dim);
    if (gy_arg_size(&l->arg[GY_APPEND_PLACE]) != 1)
        return gy_check_fail(text, size, "\"place\" has %lld elements; it must have one",
                             (long long)gy_arg_size(&l->arg[GY_APPEND_PLACE]));
    for (int i = GY_APPEND_K; i <= GY_APPEND_V; i++)
        if (gy_arg_size(&l->arg[i]) != a.heads * a.dim)
            return gy_check_fail(
                text, size, "\"%s\" has %lld elements; it must have %lld, one token of %lld heads of %lld elements",
                l->arg[i].name, (long long)gy_arg_size(&l->arg[i]), (long long)(a.heads * a.dim), (long long)a.heads,
                (long long)a.dim);
    if (gy_arg_size(&l->arg[GY_APPEND_Q]) != a.queries * a.dim)
        return gy_check_fail(text, size, "\"q\" has %lld elements; it must have heads of %lld, as \"keys\" has",
                             (long long)gy_arg_size(&l->arg[GY_APPEND_Q]), (long long)a.dim);
    return gy_check_same_size(l, GY_APPEND_Q, GY_APPEND_TURNED, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_SCALE_OR("base", 10000,
                "pair i of a head turns by place * base^(-2 i / elements of a head); 0: nothing is turned"),
    GY_REGION("place", GANTRY_READ, GANTRY_DTYPE_BIT(GANTRY_I32), 0, "one number: the token's place, from 0"),
    GY_REGION("q", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "queries of the token, heads behind each other"),
    GY_REGION("k", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "its keys, one for each head of the cache"),
    GY_REGION("v", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "its values, as k"),
    GY_REGION("turned", GANTRY_WRITE, GY_FLOAT_DTYPES, 'T', "as many elements as q"),
    GY_REGION("keys", GANTRY_READWRITE, GY_FLOAT_DTYPES, 'T', "[heads, places, elements of a head]"),
    GY_REGION("values", GANTRY_READWRITE, GY_FLOAT_DTYPES, 'T', "as keys"),
};

const gantry_kernel gy_kernel_cache_append = { .struct_size = sizeof(gantry_kernel),
                                               .name = "cache_append",
                                               .summary =
                                                   "a token's keys and values go to their place in a cache, keys and "
                                                   "queries turned by it; status: the cache is full (or \"place\" "
                                                   "is below 0): it has room for {keys.shape1} tokens; stop before, or "
                                                   "give \"keys\" and \"values\" more places",
                                               GANTRY_KERNEL_ARGS(args),
                                               .flops = "6 * (q.size + k.size)",
                                               .bytes = "2 * (q.bytes + k.bytes + v.bytes)",
                                               .host = run,
                                               .check = check };
