/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl_suite.h"

#include "base/half.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const gantry_collective nccl_kinds[8] = {
    GANTRY_ALL_REDUCE, GANTRY_REDUCE,     GANTRY_BROADCAST,      GANTRY_SCATTER,
    GANTRY_GATHER,     GANTRY_ALL_GATHER, GANTRY_REDUCE_SCATTER, GANTRY_ALL_TO_ALL
};

enum { MOST_RANKS = 72 };

bool nccl_reduces(gantry_collective kind)
{
    return kind == GANTRY_ALL_REDUCE || kind == GANTRY_REDUCE || kind == GANTRY_REDUCE_SCATTER;
}

const char *nccl_name(const nccl_case *c)
{
    static char text[120];
    snprintf(text, sizeof text, "%s, %s, %s, %d ranks, %d rows%s%s", gantry_collective_name(c->kind),
             gantry_dtype_name(c->dtype), nccl_reduces(c->kind) ? gantry_access_name(c->op) : "-", c->ranks,
             (int)c->rows, c->in_place ? ", in place" : "", c->uneven ? ", uneven" : "");
    return text;
}

/* Where part i begins. */
static int64_t bound(const nccl_case *c, int i)
{
    return c->uneven ? c->rows * i * (c->uneven == 1 ? i + 1 : i - 1) / 2 : c->rows * i;
}

/* Regions of a side: equal whole ones, parts of one whole, or a single one of `rank`. */
typedef struct side {
    gantry_buffer buffer;
    gantry_region region[MOST_RANKS];
    int count, rank; /* rank: of the first */
} side;

static side whole_each(gantry_buffer b, const nccl_case *c, int64_t rows)
{
    side s = { .buffer = b, .count = c->ranks };
    for (int i = 0; i < c->ranks; i++)
        s.region[i] = gantry_rows(b, i * rows, (i + 1) * rows);
    return s;
}

static side parts_of(gantry_buffer b, const nccl_case *c)
{
    side s = { .buffer = b, .count = c->ranks };
    for (int i = 0; i < c->ranks; i++)
        s.region[i] = gantry_rows(b, bound(c, i), bound(c, i + 1));
    return s;
}

static side single(gantry_buffer b, int64_t first, int64_t last, int rank)
{
    side s = { .buffer = b, .count = 1, .rank = rank };
    s.region[0] = gantry_rows(b, first, last);
    return s;
}

static int root_of(const nccl_case *c)
{
    return c->ranks - 1;
}

static side side_of(const nccl_case *c, gantry_buffer b, bool in)
{
    int64_t all = bound(c, c->ranks), n = c->rows;
    int root = root_of(c);
    switch (c->kind) {
    case GANTRY_REDUCE:
        return in            ? whole_each(b, c, n)
               : c->in_place ? single(b, root * n, (root + 1) * n, root)
                             : single(b, 0, n, root);
    case GANTRY_BROADCAST:
        return !in           ? whole_each(b, c, n)
               : c->in_place ? single(b, root * n, (root + 1) * n, root)
                             : single(b, 0, n, root);
    case GANTRY_SCATTER:
        return in ? single(b, 0, all, root) : parts_of(b, c);
    case GANTRY_GATHER:
        return in ? parts_of(b, c) : single(b, 0, all, root);
    case GANTRY_ALL_GATHER:
        return in ? parts_of(b, c) : whole_each(b, c, all);
    case GANTRY_REDUCE_SCATTER:
        return in ? whole_each(b, c, all) : parts_of(b, c);
    default:
        return whole_each(b, c, n);
    }
}

static gantry_buffer buffer_of(gantry_graph *g, const nccl_case *c, const char *name)
{
    int64_t all = bound(c, c->ranks);
    bool square = c->kind == GANTRY_ALL_GATHER || c->kind == GANTRY_REDUCE_SCATTER;
    return gantry_graph_buffer(g, name, c->dtype, 2, (int64_t[]){ square ? c->ranks * all : all, NCCL_COLUMNS });
}

/* Rows of one buffer to the same rows of another, on the GPU of each rank. */
static void copy_rows(gantry_graph *g, const char *name, const side *s, gantry_buffer from, gantry_buffer to)
{
    for (int i = 0; i < s->count; i++) {
        char id[24], where[24];
        gantry_region r = s->region[i];
        snprintf(id, sizeof id, "%s%d", name, i);
        snprintf(where, sizeof where, "gpu%d", s->rank + i);
        gantry_node n = gantry_graph_kernel(g, id, "copy");
        gantry_node_arg(g, n, "x", gantry_rows(from, r.first, r.last));
        gantry_node_arg(g, n, "y", gantry_rows(to, r.first, r.last));
        gantry_node_on(g, n, where);
    }
}

gantry_graph *nccl_graph(const nccl_case *c)
{
    gantry_graph *g = gantry_graph_new("one collective");
    gantry_buffer x = buffer_of(g, c, "x"), a = buffer_of(g, c, "a"), y = buffer_of(g, c, "y");
    gantry_buffer b = c->in_place ? a : buffer_of(g, c, "b");
    gantry_buffer_set_class(g, x, GANTRY_INPUT);
    gantry_buffer_init_value(g, x, 0);
    gantry_buffer_init_value(g, y, 0);
    gantry_buffer_output(g, y);
    side in = side_of(c, a, true), out = side_of(c, b, false);
    copy_rows(g, "put", &in, x, a);
    bool rooted = c->kind == GANTRY_REDUCE || c->kind == GANTRY_BROADCAST || c->kind == GANTRY_SCATTER ||
                  c->kind == GANTRY_GATHER;
    gantry_graph_collective(g, "it", c->kind, nccl_reduces(c->kind) ? c->op : 0, (size_t)in.count, in.region,
                            (size_t)out.count, out.region, rooted ? root_of(c) : 0);
    copy_rows(g, "get", &out, b, y);
    MUST(gantry_graph_check(g, MUST_ERR));
    return g;
}

/* 1 or 2, in any type, or from -2 to 2, and any integer; all sorts of bytes where nothing is combined. */
static void set_element(const nccl_case *c, char *at, uint64_t draw, bool any)
{
    double d = any ? (double)(int64_t)draw / 0x1p62 : 1 + (double)(draw >> 40 & 1);
    float f = (float)d;
    uint16_t half = c->dtype == GANTRY_F16 ? gy_float_to_f16(f) : gy_float_to_bf16(f);
    int64_t whole = any ? (int64_t)draw : (int64_t)d;
    size_t size = gantry_dtype_size(c->dtype);
    const void *from = c->dtype == GANTRY_F64                              ? (const void *)&d
                       : c->dtype == GANTRY_F32                            ? (const void *)&f
                       : c->dtype == GANTRY_F16 || c->dtype == GANTRY_BF16 ? (const void *)&half
                                                                           : (const void *)&whole;
    memcpy(at, nccl_reduces(c->kind) ? from : &draw, size);
}

static void bind(gantry_run *run, gantry_graph *g, const nccl_case *c, bool any)
{
    gantry_buffer x = gantry_graph_find_buffer(g, "x");
    gantry_buffer_info info = GANTRY_BUFFER_INFO_INIT;
    MUST(gantry_graph_buffer_info(g, x, &info, MUST_ERR));
    size_t size = gantry_dtype_size(c->dtype);
    static char *data;
    free(data);
    data = malloc((size_t)info.bytes);
    uint64_t draw = 1;
    for (size_t i = 0; i < (size_t)info.bytes / size; i++) {
        draw = draw * UINT64_C(6364136223846793005) + 1442695040888963407u;
        set_element(c, data + i * size, draw ^ draw >> 29, any);
    }
    MUST(gantry_run_bind(run, x, data, (uint64_t)info.bytes, MUST_ERR));
}

void nccl_bind(gantry_run *run, gantry_graph *g, const nccl_case *c)
{
    bind(run, g, c, false);
}

void nccl_bind_any(gantry_run *run, gantry_graph *g, const nccl_case *c)
{
    bind(run, g, c, true);
}

gantry_run *nccl_open(gantry_schedule *s, gantry_graph *g, const nccl_case *c, const char *backend)
{
    gantry_run *run = open_run(s, backend);
    nccl_bind(run, g, c);
    return run;
}

gantry_machine *nccl_machine(int gpus)
{
    static char text[16384];
    size_t used = (size_t)snprintf(
        text, sizeof text,
        "{\"gantry_machine\":1,\"name\":\"nccl\",\"memories\":[{\"id\":\"host\",\"capacity\":\"2GiB\"}");
    for (int i = 0; i < gpus; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, ",{\"id\":\"gpu%d\",\"capacity\":\"256MiB\"}", i);
    used += (size_t)snprintf(text + used, sizeof text - used, "],\"devices\":[");
    for (int i = 0; i < gpus; i++) {
        used +=
            (size_t)snprintf(text + used, sizeof text - used,
                             "{\"id\":\"gpu%d\",\"type\":\"gpu\",\"kind\":\"any\",\"memory\":\"gpu%d\",\"ordinal\":%d,"
                             "\"gflops\":{\"f32\":10},\"bandwidth_gbs\":20,\"launch_us\":0.1},",
                             i, i, i);
    }
    used +=
        (size_t)snprintf(text + used, sizeof text - used,
                         "{\"id\":\"cpu\",\"type\":\"cpu\",\"use\":\"host\",\"memory\":\"host\",\"gflops\":{\"f32\":9},"
                         "\"bandwidth_gbs\":19,\"launch_us\":0.1}],\"routes\":[{\"from\":\"*\",\"to\":\"*\","
                         "\"latency_us\":5,\"bandwidth_gbs\":10}],\"collectives\":[");
    for (int k = 0; k < 8; k++) {
        used +=
            (size_t)snprintf(text + used, sizeof text - used,
                             "%s{\"collective\":\"%s\",\"algorithm\":\"nccl\",\"kind\":\"any\",\"ranks\":%d,\"points\":"
                             "[[1,0.001],[1000000000,0.002]]}",
                             k ? "," : "", gantry_collective_name(nccl_kinds[k]), gpus);
    }
    used += (size_t)snprintf(text + used, sizeof text - used, "]}");
    gantry_machine *m = NULL;
    ck_assert_uint_lt(used, sizeof text);
    MUST(gantry_machine_parse(&m, text, used, "machine of the test", MUST_ERR));
    return m;
}
