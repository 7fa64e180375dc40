/* SPDX-License-Identifier: Apache-2.0 */
/* The graph of collectives to be measured. */
#include "run/measure/collectives.h"

#include "base/error.h"
#include "base/text.h"
#include <gantry/graph.h>

/* The sizes on one side of a collective: as many bytes in each rank, a part of them in each, or all in the root. */
typedef enum side { EACH, PART, ROOT } side;

static side side_of(gantry_collective kind, bool in)
{
    switch (kind) {
    case GANTRY_REDUCE:
        return in ? EACH : ROOT;
    case GANTRY_BROADCAST:
        return in ? ROOT : EACH;
    case GANTRY_SCATTER:
        return in ? ROOT : PART;
    case GANTRY_GATHER:
        return in ? PART : ROOT;
    case GANTRY_ALL_GATHER:
        return in ? PART : EACH;
    case GANTRY_REDUCE_SCATTER:
        return in ? EACH : PART;
    case GANTRY_ALL_TO_ALL:
        return PART;
    case GANTRY_ALL_REDUCE:
        break;
    }
    return EACH;
}

static bool reduces(gantry_collective kind)
{
    return kind == GANTRY_ALL_REDUCE || kind == GANTRY_REDUCE || kind == GANTRY_REDUCE_SCATTER;
}

static void add_buffer(gy_text *to, const char *name, side s, uint32_t ranks, uint64_t elements)
{
    gy_text_printf(to, "\"%s\":{\"dtype\":\"f32\",\"shape\":[%llu],\"split\":%u}", name,
                   (unsigned long long)(s == EACH ? elements * ranks : elements), s == ROOT ? 1 : ranks);
}

/* Of the array of a rank, from which and to which its own work goes. */
static unsigned long long rows_of(side s, uint32_t ranks, uint64_t elements)
{
    return s == EACH ? elements : elements / ranks;
}

/* Each rank that has a contribution and a result takes a few elements of the one to the other. */
static void add_own(gy_text *to, side in, side out, uint32_t ranks, uint64_t elements)
{
    unsigned long long x = rows_of(in, ranks, elements), y = rows_of(out, ranks, elements);
    gy_text_printf(to,
                   "{\"id\":\"own[k][i]\",\"for\":{\"i\":%u},\"kernel\":\"scale\",\"on\":\"i\",\"args\":{\"a\":1,\"x\":"
                   "\"y{i*%llu:i*%llu+4}\",\"y\":\"x{i*%llu:i*%llu+4}\"}}",
                   in == ROOT || out == ROOT ? 1 : ranks, y, y, x, x);
}

gantry_status gy_collective_graph(gantry_graph **graph, gantry_collective kind, gy_algorithm algorithm, uint32_t ranks,
                                  uint64_t bytes, uint32_t calls, uint32_t steps, gantry_error *err)
{
    gy_text text = { 0 };
    side in = side_of(kind, true), out = side_of(kind, false);
    unsigned ins = in == ROOT ? 1 : ranks, outs = out == ROOT ? 1 : ranks;
    gy_text_add(&text, "{\"gantry\":1,\"name\":\"collectives\",\"buffers\":{");
    add_buffer(&text, "x", in, ranks, bytes / 4);
    gy_text_add(&text, ",");
    add_buffer(&text, "y", out, ranks, bytes / 4);
    gy_text_printf(
        &text,
        "},\"nodes\":[{\"id\":\"set[i]\",\"for\":{\"i\":%u},\"fill\":{\"to\":\"x[i]\",\"value\":1},\"on\":"
        "\"i\"},{\"for\":{\"k\":%u},\"nodes\":[{\"id\":\"it[k]\",\"collective\":\"%s\",%s\"in\":[{\"for\":{\"i\":%u},"
        "\"ref\":\"x[i]\"}],\"out\":[{\"for\":{\"i\":%u},\"ref\":\"y[i]\"}],\"algorithm\":\"%s\"},",
        ins, calls, gantry_collective_name(kind), reduces(kind) ? "\"op\":\"sum\"," : "", ins, outs,
        gy_algorithm_name(algorithm));
    add_own(&text, in, out, ranks, bytes / 4);
    gy_text_printf(&text, "]},{\"for\":{\"k\":\"%u:%u\"},\"nodes\":[", calls, steps);
    add_own(&text, in, out, ranks, bytes / 4);
    gy_text_add(&text, "]}]}");
    gantry_status status = text.failed
                               ? gy_fail_nomem(err)
                               : gantry_graph_parse(graph, text.at, text.length, "collectives", NULL, NULL, err);
    gy_text_free(&text);
    return status;
}
