/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policies/list/ranks.h"

#include "scheduler/cost/cost.h"
#include <stdlib.h>

__extension__ typedef unsigned __int128 sum_t;

bool gy_ranks_init(gy_ranks *r, const gy_plan *p, gy_rank_by by)
{
    *r = (gy_ranks){ .p = p, .by = by, .scale = 2 };
    if (p->workers > 1)
        r->scale = (gy_rank)2 * p->workers * (p->workers - 1);
    r->sorted = gy_calloc(p->devices, sizeof *r->sorted);
    return r->sorted;
}

void gy_ranks_free(gy_ranks *r)
{
    gy_free(r->sorted);
    gy_map_free(&r->transfer);
}

static int by_time(const void *a, const void *b)
{
    gy_ticks x = *(const gy_ticks *)a, y = *(const gy_ticks *)b;
    return x < y ? -1 : x > y;
}

/* Sum over the devices that may run the task, scaled to the number of workers. */
static gy_rank sum_of(const gy_ranks *r, uint32_t count)
{
    gy_rank sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += r->sorted[i];
    return count == r->p->workers ? sum : sum * r->p->workers / count;
}

gy_rank gy_ranks_time(gy_ranks *r, uint32_t task)
{
    const gy_plan *p = r->p;
    uint32_t count = 0;
    for (uint32_t d = 0; d < p->devices; d++) {
        gy_ticks t = gy_plan_time(p, p->flow->task[task].node, d);
        if (t < GY_TICKS_MAX)
            r->sorted[count++] = t;
    }
    if (!count)
        return 0;
    if (r->by == GY_BY_MEAN)
        return r->scale / p->workers * sum_of(r, count);
    qsort(r->sorted, count, sizeof *r->sorted, by_time);
    gy_rank low = r->sorted[r->by == GY_BY_MOST ? count - 1 : r->by == GY_BY_MEDIAN ? (count - 1) / 2 : 0];
    gy_rank high = r->by == GY_BY_MEDIAN ? r->sorted[count / 2] : low;
    return r->scale / 2 * (low + high);
}

bool gy_ranks_transfer(gy_ranks *r, const gy_dep *dep, gy_rank *time)
{
    const gy_plan *p = r->p;
    int64_t bytes = dep->kinds & GY_DEP_DATA ? dep->bytes : 0;
    uint64_t known;
    if (gy_map_get(&r->transfer, (uint64_t)bytes, &known)) {
        *time = (gy_rank)known * 2;
        return true;
    }
    sum_t sum = 0;
    for (uint32_t a = 0; a < p->workers; a++)
        for (uint32_t b = 0; b < p->workers; b++)
            sum += (uint64_t)gy_transfer_time(p, p->machine->device[a].memory, p->machine->device[b].memory, bytes);
    if (sum > UINT64_MAX)
        sum = UINT64_MAX;
    *time = (gy_rank)sum * 2;
    return gy_map_put(&r->transfer, (uint64_t)bytes, (uint64_t)sum);
}

/* The ranks of the predecessors in a list, from the largest rank of the tasks that have it. */
static bool push_up(gy_ranks *r, uint32_t list, bool transfers, gy_rank most, gy_rank *rank)
{
    const gy_flow *f = r->p->flow;
    for (size_t i = f->dep_first[list]; i < f->dep_first[list + 1]; i++) {
        gy_rank edge = 0, *from = &rank[f->dep[i].from];
        if (transfers && !gy_ranks_transfer(r, &f->dep[i], &edge))
            return false;
        *from = most + edge > *from ? most + edge : *from;
    }
    return true;
}

/* From the last task to the first: a task's rank is complete when all its successors have been seen, those of a list at
 * the first task that has it. `left`: per list, tasks that have not been seen; `most`: the largest of their ranks. */
static bool go_up(gy_ranks *r, bool transfers, uint32_t *left, gy_rank *most, gy_rank *rank)
{
    const gy_flow *f = r->p->flow;
    for (uint32_t t = 0; t < f->tasks; t++) {
        rank[t] = 0;
        left[f->list[t]]++;
    }
    for (uint32_t t = f->tasks; t-- > 0;) {
        uint32_t list = f->list[t];
        rank[t] += gy_ranks_time(r, t);
        most[list] = rank[t] > most[list] ? rank[t] : most[list];
        if (!--left[list] && !push_up(r, list, transfers, most[list], rank))
            return false;
    }
    return true;
}

bool gy_ranks_up(gy_ranks *r, bool transfers, gy_rank *rank)
{
    size_t lists = r->p->flow->lists;
    uint32_t *left = gy_calloc(lists + 1, sizeof *left);
    gy_rank *most = gy_calloc(lists + 1, sizeof *most);
    bool done = left && most && go_up(r, transfers, left, most, rank);
    gy_free(left);
    gy_free(most);
    return done;
}

/* The longest way to the end of the transfers from a list of predecessors. */
static bool longest_to(gy_ranks *r, uint32_t list, const gy_rank *rank, gy_rank *longest)
{
    const gy_flow *f = r->p->flow;
    *longest = 0;
    for (size_t i = f->dep_first[list]; i < f->dep_first[list + 1]; i++) {
        uint32_t from = f->dep[i].from;
        gy_rank edge;
        if (!gy_ranks_transfer(r, &f->dep[i], &edge))
            return false;
        edge += rank[from] + gy_ranks_time(r, from);
        *longest = edge > *longest ? edge : *longest;
    }
    return true;
}

bool gy_ranks_down(gy_ranks *r, gy_rank *rank)
{
    const gy_flow *f = r->p->flow;
    gy_rank *longest = gy_calloc((size_t)f->lists + 1, sizeof *longest);
    bool done = longest;
    for (uint32_t l = 0; l < f->lists && done; l++)
        longest[l] = -1;
    for (uint32_t t = 0; t < f->tasks && done; t++) {
        uint32_t list = f->list[t];
        done = longest[list] >= 0 || longest_to(r, list, rank, &longest[list]);
        rank[t] = longest[list];
    }
    gy_free(longest);
    return done;
}

gy_rank *gy_upward_ranks(const gy_plan *p, gy_rank_by by)
{
    gy_ranks r;
    gy_rank *rank = gy_calloc((size_t)p->flow->tasks + 1, sizeof *rank);
    bool done = gy_ranks_init(&r, p, by) && rank && gy_ranks_up(&r, true, rank);
    gy_ranks_free(&r);
    if (done)
        return rank;
    gy_free(rank);
    return NULL;
}

int gy_by_falling_rank(const void *a, const void *b, void *ranks)
{
    const gy_rank *rank = ranks;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (rank[x] != rank[y])
        return rank[x] > rank[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}
