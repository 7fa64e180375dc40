/* SPDX-License-Identifier: Apache-2.0 */
#include "suite.h"

#include "base/text.h"
#include <stdlib.h>
#include <string.h>

gantry_machine *parse(const char *json)
{
    gantry_machine *m = NULL;
    gantry_error err;
    if (gantry_machine_parse(&m, json, strlen(json), "test", &err))
        ck_abort_msg("%s", err.text);
    return m;
}

gantry_machine *load(const char *name, bool tables)
{
    gantry_machine *m = NULL;
    gantry_error err;
    gy_text path = { 0 };
    gy_text_printf(&path, "%s/graphs/machines/%s.json", GANTRY_SOURCE_DIR, name);
    if (gantry_machine_load(&m, path.at, &err))
        ck_abort_msg("%s", err.text);
    gy_text_free(&path);
    if (!tables) /* nobody else has this machine */
        m->tables = 0;
    return m;
}

static gy_group of_parts(gantry_collective kind, uint32_t ranks, const int64_t *part, int64_t whole)
{
    gy_group_span span[128];
    gy_group g;
    bool reduces = kind == GANTRY_ALL_REDUCE || kind == GANTRY_REDUCE || kind == GANTRY_REDUCE_SCATTER;
    bool one_in = kind == GANTRY_BROADCAST || kind == GANTRY_SCATTER;
    bool one_out = kind == GANTRY_REDUCE || kind == GANTRY_GATHER;
    bool parts_in = kind == GANTRY_ALL_GATHER || kind == GANTRY_GATHER;
    bool parts_out = kind == GANTRY_SCATTER || kind == GANTRY_REDUCE_SCATTER;
    uint32_t n = 0, ins;
    int64_t at = 0;
    for (uint32_t i = 0; i < (one_in ? 1 : ranks); at += parts_in ? part[i] : 0, i++)
        span[n++] = (gy_group_span){ i + 1, i, at, parts_in ? at + part[i] : whole };
    ins = n;
    at = 0;
    for (uint32_t i = 0; i < (one_out ? 1 : ranks); at += parts_out ? part[i] : 0, i++)
        if (kind != GANTRY_BROADCAST || i > 0)
            span[n++] = (gy_group_span){ i + 1, 100 + i, at, parts_out ? at + part[i] : whole };
    ck_assert(gy_group_of_rows(&g, kind, reduces ? GANTRY_SUM : 0, span, ins, n - ins));
    return g;
}

/* Every rank has a block for every rank. */
static gy_group exchange(uint32_t ranks, int64_t bytes)
{
    gy_group_end end[128];
    gy_group g;
    for (uint32_t i = 0; i < ranks; i++)
        for (uint32_t k = 0; k < 2; k++)
            end[k * ranks + i] = (gy_group_end){ i + 1, bytes / ranks, k, i, i + 1 };
    ck_assert(gy_group_of_node(&g, GANTRY_ALL_TO_ALL, 0, end, ranks, ranks));
    return g;
}

gy_group uneven(gantry_collective kind, uint32_t ranks, const int64_t *part)
{
    int64_t whole = 0;
    for (uint32_t i = 0; i < ranks; i++)
        whole += part[i];
    return of_parts(kind, ranks, part, whole);
}

gy_group group(gantry_collective kind, uint32_t ranks, int64_t bytes)
{
    int64_t part[64];
    if (kind == GANTRY_ALL_TO_ALL)
        return exchange(ranks, bytes);
    for (uint32_t i = 0; i < ranks; i++)
        part[i] = gy_part_bound(bytes, ranks, i + 1) - gy_part_bound(bytes, ranks, i);
    return of_parts(kind, ranks, part, bytes);
}

gy_way look(const gantry_machine *m, const gy_group *g, gy_algorithm a)
{
    gy_net net;
    ck_assert(gy_net_init(&net, m) && gy_net_begin(&net, g));
    gy_way way = gy_collective_look(&net, g, a);
    gy_net_free(&net);
    return way;
}

gy_way choose(const gantry_machine *m, const gy_group *g)
{
    gy_net net;
    gy_way way;
    ck_assert(gy_net_init(&net, m) && gy_collective_choose(&net, g, &way));
    gy_net_free(&net);
    return way;
}

double us(gy_ticks t)
{
    return gy_ticks_to_us(t);
}
