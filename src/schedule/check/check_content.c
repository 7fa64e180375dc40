/* SPDX-License-Identifier: Apache-2.0 */
/* Contents: a base and the set of contributions made to it. Interned, so that equal contents have equal ids. */
#include "kernel/identity.h"
#include "schedule/check/check.h"
#include <string.h>

bool gy_contents_init(gy_contents *c)
{
    *c = (gy_contents){ 0 };
    gy_content unknown = { .base_kind = GY_BASE_UNKNOWN };
    return gy_vec_push(&c->at, unknown);
}

void gy_contents_free(gy_contents *c)
{
    gy_vec_free(&c->at);
    gy_map_free(&c->index);
}

static uint64_t hash(const gy_content *x)
{
    uint64_t h = gy_hash64((uint64_t)x->base_kind << 8 | x->op);
    h = gy_hash64(h ^ x->base);
    h = gy_hash64(h ^ x->sum[0]);
    return gy_hash64(h ^ x->sum[1]);
}

static bool same(const gy_content *a, const gy_content *b)
{
    return a->base_kind == b->base_kind && a->op == b->op && a->base == b->base && a->sum[0] == b->sum[0] &&
           a->sum[1] == b->sum[1];
}

static gy_content_id intern(gy_contents *c, const gy_content *x)
{
    uint64_t key = hash(x), id;
    while (gy_map_get(&c->index, key, &id)) {
        if (same(&c->at.at[id], x))
            return (gy_content_id)id;
        key++;
    }
    id = c->at.count;
    if (id >= UINT32_MAX || !gy_vec_push(&c->at, *x) || !gy_map_put(&c->index, key, id)) {
        c->failed = true;
        return GY_UNKNOWN;
    }
    return (gy_content_id)id;
}

static gy_content_id plain(gy_contents *c, gy_base_kind kind, uint64_t base)
{
    gy_content x = { .base_kind = (uint8_t)kind, .base = base };
    return intern(c, &x);
}

gy_content_id gy_content_write(gy_contents *c, uint64_t flow_access)
{
    return plain(c, GY_BASE_WRITE, flow_access);
}

gy_content_id gy_content_entry(gy_contents *c, uint32_t buffer)
{
    return plain(c, GY_BASE_ENTRY, buffer);
}

/* Reductions can share an identity (0 of sum and of max, where there are no negative numbers): the lowest stands for
 * all. */
gy_content_id gy_content_identity(gy_contents *c, gantry_dtype dtype, gantry_access op)
{
    unsigned char mine[8], other[8];
    gantry_access first = GANTRY_SUM;
    size_t size = gantry_dtype_size(dtype);
    gy_identity(dtype, op, mine);
    while (first < op && (!gy_identity(dtype, first, other) || memcmp(mine, other, size) != 0))
        first = (gantry_access)(first + 1);
    return plain(c, GY_BASE_IDENTITY, (uint64_t)dtype * 8 + first);
}

/* The content as one that takes contributions of `op`: those of another reduction become part of its base. */
static gy_content open_for(const gy_contents *c, gy_content_id id, gantry_access op)
{
    gy_content x = c->at.at[id];
    if (x.op != 0 && x.op != (uint8_t)op)
        x = (gy_content){ .base_kind = GY_BASE_AFTER, .base = id };
    x.op = (uint8_t)op;
    return x;
}

static void add_sum(gy_content *x, const uint64_t sum[2], uint64_t count)
{
    uint64_t low = x->sum[0] + sum[0];
    x->sum[1] += sum[1] + (low < sum[0]);
    x->sum[0] = low;
    x->count += count;
}

static gy_content_id close_content(gy_contents *c, gy_content *x)
{
    if (x->sum[0] == 0 && x->sum[1] == 0) {
        x->op = 0;
        if (x->base_kind == GY_BASE_AFTER)
            return (gy_content_id)x->base;
    }
    return intern(c, x);
}

gy_content_id gy_content_add(gy_contents *c, gy_content_id to, gantry_access op, uint64_t flow_access)
{
    if (to == GY_UNKNOWN)
        return GY_UNKNOWN;
    gy_content x = open_for(c, to, op);
    uint64_t low = gy_hash64(flow_access * 2 + 1);
    const uint64_t sum[2] = { low, gy_hash64(low ^ (flow_access + UINT64_C(0x9e3779b97f4a7c15))) };
    add_sum(&x, sum, 1);
    return close_content(c, &x);
}

static bool same_base(const gy_content *a, const gy_content *b)
{
    return a->base_kind == b->base_kind && a->base == b->base;
}

gy_content_id gy_content_combine(gy_contents *c, gy_content_id a, gy_content_id b, gantry_dtype dtype, gantry_access op)
{
    gy_content_id nothing = gy_content_identity(c, dtype, op);
    if (a == GY_UNKNOWN || b == GY_UNKNOWN || c->failed)
        return GY_UNKNOWN;
    gy_content x = open_for(c, a, op), y = open_for(c, b, op), identity = c->at.at[nothing];
    if (same_base(&y, &identity)) {
        add_sum(&x, y.sum, y.count);
        return close_content(c, &x);
    }
    if (same_base(&x, &identity)) {
        add_sum(&y, x.sum, x.count);
        return close_content(c, &y);
    }
    return GY_UNKNOWN;
}

bool gy_content_is_plain(const gy_contents *c, gy_content_id id)
{
    return c->at.at[id].base_kind == GY_BASE_IDENTITY && c->at.at[id].op == 0;
}
