/* SPDX-License-Identifier: Apache-2.0 */
/**
 * m-SCT, small communication times: m-ETF in which most tasks have a favourite child that wants to follow them on
 * their device. B. Jeon et al., Baechi: Fast Device Placement of Machine Learning Graphs, SoCC 2020, after C. Hanen,
 * A. Munier, An Approximation Algorithm for Scheduling Dependent Tasks on m Processors with Small Communication Delays,
 * ETFA 1995. How a device keeps itself for a favourite child is told in pairs.h.
 *
 * There a linear program chooses the favourites. Here they are chosen greedily: of the dependencies that move bytes,
 * the one on the longest path first (upward and downward rank, transfers included), as long as its first task has no
 * favourite child yet and its second is none. Equal paths: the lower numbers.
 *
 * Cost: O(e log e) to choose, then that of m-ETF and O(n p^2) looks at favourites.
 */
#include "base/error.h"
#include "scheduler/policies/etf.h"
#include "scheduler/policies/policy.h"
#include <stdlib.h>

typedef struct link {
    gy_rank path;
    uint32_t from, to;
} link;

static int by_path(const void *a, const void *b)
{
    const link *x = a, *y = b;
    if (x->path != y->path)
        return x->path > y->path ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

static bool find_links(const gy_plan *p, link *links, size_t *count)
{
    const gy_flow *f = p->flow;
    gy_ranks r;
    gy_rank *down = gy_calloc((size_t)f->tasks + 1, sizeof *down), *up = gy_upward_ranks(p, GY_BY_MEAN), edge;
    bool done = gy_ranks_init(&r, p, GY_BY_MEAN) && up && down && gy_ranks_down(&r, down);
    *count = 0;
    for (uint32_t t = 0; t < f->tasks; t++)
        for (const gy_dep *d = gy_deps_begin(f, t); d < gy_deps_end(f, t) && done; d++) {
            done = gy_ranks_transfer(&r, d, &edge);
            if (d->kinds & GY_DEP_DATA && d->bytes)
                links[(*count)++] = (link){ down[d->from] + gy_ranks_time(&r, d->from) + edge + up[t], d->from, t };
        }
    gy_ranks_free(&r);
    gy_free(up);
    gy_free(down);
    return done;
}

static bool choose(const gy_plan *p, uint32_t *favourite)
{
    size_t count;
    link *links = gy_calloc(p->flow->deps + 1, sizeof *links);
    uint8_t *taken = gy_calloc((size_t)p->flow->tasks + 1, 1);
    bool done = links && taken && find_links(p, links, &count);
    for (uint32_t t = 0; t < p->flow->tasks && done; t++)
        favourite[t] = GY_NONE;
    if (done)
        qsort(links, count, sizeof *links, by_path);
    for (size_t i = 0; done && i < count; i++)
        if (favourite[links[i].from] == GY_NONE && !taken[links[i].to]) {
            favourite[links[i].from] = links[i].to;
            taken[links[i].to] = 1;
        }
    gy_free(links);
    gy_free(taken);
    return done;
}

static gantry_status place(gy_plan *p, gantry_error *err)
{
    uint32_t *favourite = gy_calloc((size_t)p->flow->tasks + 1, sizeof *favourite);
    gy_pairing how = { .room = gy_held_memory_new(p), .favourite = favourite };
    bool done = favourite && how.room && choose(p, favourite);
    gantry_status status = done ? gy_etf(p, &how, err) : gy_fail_nomem(err);
    gy_held_memory_free(how.room);
    gy_free(favourite);
    return status;
}

const gy_policy gy_policy_m_sct = {
    .name = "m-sct",
    .summary = "keeps devices for favourite children (Hanen, Munier 1995; Baechi 2020)",
    .place = place,
    .largest = GY_MIDDLE_GRAPHS,
};
