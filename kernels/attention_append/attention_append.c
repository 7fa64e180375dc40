/* SPDX-License-Identifier: Apache-2.0 */
/* cache_append, then attention_cached over the places up to the token's: the host calls the two. */
#include "kernels/attention_append/attention_append.h"
#include "base/memory.h"
#include "kernels/attention/attention.h"
#include "kernels/cache_append/cache_append.h"

/* The launch of cache_append in it, whose arguments go to `given`. */
enum { APPEND_ARGS = GY_APPEND_VALUES + 1 };
static gantry_launch append_of(const gantry_launch *l, const gantry_arg *turned, gantry_arg given[APPEND_ARGS])
{
    static const int from[APPEND_ARGS] = { GY_TOKEN_BASE, GY_TOKEN_PLACE, GY_TOKEN_Q,    GY_TOKEN_K,
                                           GY_TOKEN_V,    GY_TOKEN_Q,     GY_TOKEN_KEYS, GY_TOKEN_VALUES };
    gantry_launch one = *l;
    for (int i = 0; i < APPEND_ARGS; i++)
        given[i] = l->arg[from[i]];
    given[GY_APPEND_TURNED] = *turned;
    one.arg = given;
    one.args = APPEND_ARGS;
    return one;
}

static gantry_status attend(const gantry_launch *l, const gantry_arg *turned)
{
    enum { LENGTH = GY_ATTENTION_V + 1, Y };
    const gantry_arg *arg = l->arg;
    int64_t dim = arg[GY_TOKEN_KEYS].shape[2], shape[] = { gy_arg_size(turned) / dim, 1, dim }, one_element[] = { 1 };
    int32_t length = *(const int32_t *)arg[GY_TOKEN_PLACE].data + 1;
    gantry_arg q = *turned, count = arg[GY_TOKEN_PLACE], causal = { .name = "causal" };
    q.rank = 3;
    q.shape = shape;
    q.rows = q.own_rows = shape[0];
    q.row_bytes = dim * (int64_t)gantry_dtype_size(q.dtype);
    count.data = &length;
    count.rank = 1;
    count.shape = one_element;
    count.rows = count.own_rows = 1;
    const gantry_arg given[] = { [GY_ATTENTION_SCALE] = arg[GY_TOKEN_SCALE],
                                 [GY_ATTENTION_CAUSAL] = causal,
                                 [GY_ATTENTION_Q] = q,
                                 [GY_ATTENTION_K] = arg[GY_TOKEN_KEYS],
                                 [GY_ATTENTION_V] = arg[GY_TOKEN_VALUES],
                                 [LENGTH] = count,
                                 [Y] = arg[GY_TOKEN_Y] };
    gantry_launch two = *l;
    two.arg = given;
    two.args = (int32_t)(sizeof given / sizeof *given);
    return gy_kernel_attention_cached.host(&two);
}

static gantry_status run(const gantry_launch *l)
{
    gantry_arg turned = l->arg[GY_TOKEN_Q], given[APPEND_ARGS];
    int32_t place = *(const int32_t *)l->arg[GY_TOKEN_PLACE].data;
    if (place < 0 || place >= l->arg[GY_TOKEN_KEYS].shape[1]) {
        *l->status = 1;
        return GANTRY_OK;
    }
    turned.data = gy_alloc((size_t)gy_arg_size(&turned) * gantry_dtype_size(turned.dtype));
    if (!turned.data)
        return GANTRY_E_NOMEM;
    gantry_launch one = append_of(l, &turned, given);
    gantry_status status = gy_kernel_cache_append.host(&one);
    if (status == GANTRY_OK)
        status = attend(l, &turned);
    gy_free(turned.data);
    return status;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    const gantry_arg *keys = &l->arg[GY_TOKEN_KEYS];
    gantry_arg given[APPEND_ARGS];
    gantry_launch one = append_of(l, &l->arg[GY_TOKEN_Y], given);
    if (gy_kernel_cache_append.check(&one, text, size))
        return GANTRY_E_GRAPH;
    if (keys->shape[2] < 1 || keys->shape[2] > GY_ATTENTION_WIDEST)
        return gy_check_fail(text, size, "heads of \"keys\" have %lld elements; they must have 1 to %d",
                             (long long)keys->shape[2], GY_ATTENTION_WIDEST);
    int64_t heads = gy_arg_size(&l->arg[GY_TOKEN_Q]) / keys->shape[2];
    if (keys->rows ? heads % keys->rows : heads)
        return gy_check_fail(
            text, size, "\"q\" has %lld heads and \"keys\" %lld; those of \"q\" must be as many or a multiple of them",
            (long long)heads, (long long)keys->rows);
    return GANTRY_OK;
}

static const gantry_kernel_arg args[] = {
    GY_SCALE_OR("base", 10000,
                "pair i of a head turns by place * base^(-2 i / elements of a head); 0: nothing is turned"),
    GY_SCALE_OR("scale", 0, "factor of q keys^T; 0: 1 / sqrt(elements of a head)"),
    GY_REGION("place", GANTRY_READ, GANTRY_DTYPE_BIT(GANTRY_I32), 0, "one number: the token's place, from 0"),
    GY_REGION("q", GANTRY_READ, GY_FLOAT_DTYPES, 'T',
              "queries of the token, heads behind each other; as many in a row share a head of the cache"),
    GY_REGION("k", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "its keys, one for each head of the cache"),
    GY_REGION("v", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "its values, as k"),
    GY_REGION("keys", GANTRY_READWRITE, GY_FLOAT_DTYPES, 'T', "[heads, places, elements of a head]"),
    GY_REGION("values", GANTRY_READWRITE, GY_FLOAT_DTYPES, 'T', "as keys"),
    GY_REGION("y", GANTRY_WRITE, GY_FLOAT_DTYPES, 'T', "as many elements as q, in its order"),
};

const gantry_kernel gy_kernel_attention_append = {
    .struct_size = sizeof(gantry_kernel),
    .name = "attention_append",
    .summary =
        "cache_append, and attention of the token's queries over the cache up to its place; status: the cache is full "
        "(or \"place\" is below 0): it has room for {keys.shape1} tokens; stop before, or give \"keys\" and \"values\" "
        "more places",
    GANTRY_KERNEL_ARGS(args),
    .flops = "6 * (q.size + k.size) + 4 * q.size * keys.last1",
    .bytes = "q.bytes + 2 * (k.bytes + v.bytes) + keys.bytes + values.bytes + y.bytes",
    .host = run,
    .check = check,
    .open = gy_linalg_open_kernel,
    .close = gy_linalg_close
};
