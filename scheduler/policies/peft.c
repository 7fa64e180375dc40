/* SPDX-License-Identifier: Apache-2.0 */
/**
 * PEFT: H. Arabnejad, J. G. Barbosa, List Scheduling Algorithm for Heterogeneous Systems by an Optimistic Cost Table,
 * IEEE TPDS 25(3), 2014. The table says for a task on a device what must still follow after it at best:
 *
 *   OCT(t, d) = max over successors s of min over devices q of OCT(s, q) + time(s, q) + (q == d ? 0 : transfer(t, s))
 *
 * with the mean transfer time. Tasks that are ready go by the mean of their row; each to the device where its finish
 * plus its entry is least (the lower device of equals). Insertion as in HEFT. Everything is kept in the units of
 * ranks.h, so the table is exact.
 *
 * Cost: O(e p) for the table (the minimum over q is the smaller of q == d, and the best q plus the transfer), which has
 * n p entries of 16 bytes, and O(e p + n p log n) to place.
 */
#include "base/error.h"
#include "scheduler/place/place.h"
#include "scheduler/policies/list/ready.h"
#include "scheduler/policies/policy.h"

typedef struct peft {
    gy_ranks ranks;
    gy_rank *table; /* tasks x devices */
    gy_rank *mean;  /* per task: the sum of its row over the workers */
} peft;

/* The entry of the successor `s` on d and its time there, without a transfer; -1 if s cannot run on d. */
static gy_rank on_device(const peft *x, const gy_plan *p, uint32_t s, uint32_t d)
{
    gy_ticks time = gy_plan_time(p, p->flow->task[s].node, d);
    return time >= GY_TICKS_MAX ? -1 : x->table[(size_t)s * p->devices + d] + time * x->ranks.scale;
}

static void push_up(peft *x, const gy_plan *p, uint32_t from, uint32_t s, gy_rank transfer)
{
    gy_rank best = -1, stay;
    for (uint32_t d = 0; d < p->devices; d++) {
        stay = on_device(x, p, s, d);
        best = stay >= 0 && (best < 0 || stay < best) ? stay : best;
    }
    for (uint32_t d = 0; d < p->devices; d++) {
        gy_rank *entry = &x->table[(size_t)from * p->devices + d], least = best + transfer;
        stay = on_device(x, p, s, d);
        least = stay >= 0 && stay < least ? stay : least;
        *entry = least > *entry ? least : *entry;
    }
}

/* From the last task to the first: a row is complete when all successors have pushed up. */
static bool fill(peft *x, const gy_plan *p)
{
    const gy_flow *f = p->flow;
    for (uint32_t t = f->tasks; t-- > 0;) {
        for (uint32_t d = 0; d < p->workers; d++)
            x->mean[t] += x->table[(size_t)t * p->devices + d];
        for (const gy_dep *d = gy_deps_begin(f, t); d < gy_deps_end(f, t); d++) {
            gy_rank transfer;
            if (!gy_ranks_transfer(&x->ranks, d, &transfer))
                return false;
            push_up(x, p, d->from, t, transfer);
        }
    }
    return true;
}

static gantry_status place_one(gy_plan *p, uint32_t task, void *context, gantry_error *err)
{
    const peft *x = context;
    gy_try best = { .device = GY_NONE };
    gy_rank least = 0;
    for (uint32_t d = 0; d < p->devices && !gy_plan_team(p, task); d++) {
        if (!gy_place_allowed(p, task, d))
            continue;
        gy_try t = gy_place_try(p, task, d);
        gy_rank all = t.finish * x->ranks.scale + x->table[(size_t)task * p->devices + d];
        if (best.device == GY_NONE || all < least) {
            best = t;
            least = all;
        }
    }
    return best.device == GY_NONE ? gy_place_earliest(p, task, err) : gy_place_at(p, task, &best, err);
}

static gantry_status place(gy_plan *p, gantry_error *err)
{
    peft x = { .table = gy_calloc((size_t)p->flow->tasks + 1, p->devices * sizeof *x.table),
               .mean = gy_calloc((size_t)p->flow->tasks + 1, sizeof *x.mean) };
    bool done = gy_ranks_init(&x.ranks, p, GY_BY_MEAN) && x.table && x.mean && fill(&x, p);
    gantry_status status = done ? gy_place_by_rank(p, x.mean, place_one, &x, err) : gy_fail_nomem(err);
    gy_ranks_free(&x.ranks);
    gy_free(x.table);
    gy_free(x.mean);
    return status;
}

const gy_policy gy_policy_peft = {
    .name = "peft",
    .summary = "predicts what must follow on each device (Arabnejad, Barbosa 2014)",
    .place = place,
    .largest = GY_LARGE_GRAPHS,
};
