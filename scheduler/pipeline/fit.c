/* SPDX-License-Identifier: Apache-2.0 */
/**
 * From the fastest way to arrange a placed graph to the one that needs least memory. Each is tried only if those before
 * it do not fit:
 *
 *   - copies as early as they can begin; addresses shared where it costs no waiting
 *   - the same, without second instances for versions that take turns
 *   - the same, addresses shared wherever positions allow
 *   - rows brought just before they are used
 *   - no collectives in place of copies: these bring rows to all at one time
 *   - spilling (spill.h), with more and more room left for holes, and less and less that persists
 */
#include "scheduler/pipeline/fit.h"

#include "scheduler/lower/lower.h"
#include "scheduler/order/order.h"
#include "scheduler/pack/pack.h"
#include "scheduler/place/place.h"
#include "scheduler/plan/promises.h"
#include "scheduler/spill/spill.h"

#include "base/assert.h"
#include "base/error.h"

#define LARGE 2000 /* tasks: then nothing is tried that is all but hopeless */

static gantry_status arrange(gy_plan *p, const gy_arrangement *how, gantry_error *err)
{
    GY_TRY(gy_plan_order(p, how, err));
    GY_ASSERT(gy_promises_order(p));
    GY_TRY(gy_plan_stream(p, how, err));
    GY_ASSERT(gy_promises_lanes(p));
    GY_TRY(gy_plan_upload_turns(p, err));
    GY_TRY(gy_plan_pack(p, how, err));
    GY_ASSERT(gy_promises_order(p) && gy_promises_addresses(p));
    return GANTRY_OK;
}

static gantry_status make_draft(gy_plan *p, gantry_error *err)
{
    gy_draft *d = &p->draft;
    d->instance.count = d->op.count = d->use.count = d->edges.count = p->rank_device.count = 0;
    return gy_plan_lower(p, err);
}

static gantry_status make_draft_again(gy_plan *p, gantry_error *err)
{
    GY_TRY(make_draft(p, err));
    return gy_plan_find_collectives(p, err);
}

/* The first way takes the draft apart as it goes: most graphs fit, and large ones have no room for both. Large ones are
 * not packed in vain either. The search for offsets is cut short to a tenth, since there are other ways to go on. */
gantry_status gy_plan_fit(gy_plan *p, gantry_error *err)
{
    static const gy_arrangement fast = { .early = true, .last = true, .search_shorter = 10 },
                                tight = { .early = true, .tight = true, .search_shorter = 10 },
                                late = { .tight = true, .search_shorter = 10 };
    p->short_of_memory = true;
    if (p->flow->tasks > LARGE)
        GY_TRY(gy_plan_check_live_bytes(p, err));
    gantry_status status = arrange(p, &fast, err);
    if (status == GANTRY_E_CAPACITY && p->turns) {
        p->one_instance = true;
        GY_TRY(make_draft_again(p, err));
        status = arrange(p, &fast, err);
    }
    p->short_of_memory = status == GANTRY_E_CAPACITY;
    if (!p->short_of_memory)
        return status;
    GY_TRY(make_draft_again(p, err));
    status = arrange(p, &tight, err);
    return status == GANTRY_E_CAPACITY ? arrange(p, &late, err) : status;
}

static bool has_relayed(const gy_plan *p)
{
    for (size_t i = 0; i < p->draft.op.count; i++) {
        const gy_op *op = &p->draft.op.at[i].op;
        if (op->kind != GY_OP_COPY || op->node != GY_NONE)
            continue;
        const gy_use *u = &p->draft.use.at[op->use];
        uint32_t from = p->draft.instance.at[u[0].instance].memory, to = p->draft.instance.at[u[1].instance].memory;
        if (from != to && gy_machine_route(p->machine, from, to)->kind != GY_ROUTE_DIRECT)
            return true;
    }
    return false;
}

/* The draft without collectives, which is what spilling begins with. All that is left to try costs time of the run, so
 * the search for offsets takes all of its steps. */
static gantry_status lower_again(gy_plan *p, gantry_error *err)
{
    static const gy_arrangement tight = { .tight = true, .search_shorter = 1 };
    GY_TRY(gy_place_late(p, err));
    GY_TRY(make_draft(p, err));
    if (p->attempt->spill.gather_again)
        GY_TRY(gy_plan_find_collectives(p, err));
    if (p->attempt->spill.relayed && has_relayed(p))
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "rows go by way of other memories, and not by collectives");
    if (p->attempt->spill.spilling != GY_SPILL_OFF) /* else the packer says why */
        GY_TRY(gy_plan_check_live_bytes(p, err));
    return p->attempt->spill.walk ? GANTRY_E_CAPACITY : arrange(p, &tight, err);
}

/* Arrays that gy_plan_order keeps from one call to the next are as long as the draft was. */
static void forget_order(gy_plan *p)
{
    gy_sequence *s = &p->sequence;
    gy_free(s->draft_of);
    gy_free(s->expect);
    gy_free(s->need_first);
    s->draft_of = NULL;
    s->expect = NULL;
    s->need_first = NULL;
}

static gantry_status try_one(gy_plan *p, const gy_draft *from, const gy_spill_try *how, gantry_error *err)
{
    gy_arrangement arrangement = { .tight = true, .addressed = how->addressed, .search_shorter = 100 };
    gantry_status status = gy_plan_spill(p, from, how, err);
    GY_ASSERT(status || gy_promises_draft(p));
    forget_order(p);
    if (!status && !p->spilled.moved && !p->attempt->spill.walk)
        return GANTRY_E_CAPACITY; /* as before, and that is what `err` says */
    return status ? status : arrange(p, &arrangement, err);
}

static bool has_persistent(const gy_draft *from)
{
    for (size_t i = 0; i < from->instance.count; i++)
        if (from->instance.at[i].role == GY_ROLE_PERSIST && from->instance.at[i].memory != 0)
            return true;
    return false;
}

/* With so much that persists: addresses on the way, else less and less of each memory. */
static gantry_status try_all(gy_plan *p, const gy_draft *from, gy_persisting persists, gantry_error *err)
{
    static const gy_spill_try ways[] = { { .addressed = true, .remake = true },
                                         { .addressed = true },
                                         { .sixteenths = 14 },
                                         { .sixteenths = 8 },
                                         { .sixteenths = 0 } };
    gantry_status status = GANTRY_E_CAPACITY;
    p->spilled.alone = false;
    for (size_t i = 0; i < sizeof ways / sizeof *ways && status == GANTRY_E_CAPACITY && !p->spilled.alone; i++) {
        gy_spill_try how = ways[i];
        how.persists = persists;
        how.way = &p->attempt->spill;
        if (!ways[i].remake || p->attempt->spill.spilling == GY_SPILL_REMAKE)
            status = try_one(p, from, &how, err);
    }
    return status;
}

static gantry_status spill(gy_plan *p, gantry_error *err)
{
    gy_draft from = p->draft;
    gantry_status status = GANTRY_E_CAPACITY;
    bool persistent = has_persistent(&from);
    uint32_t most = persistent ? p->attempt->spill.persisting : GY_PERSIST_NONE, least = most;
    p->draft = (gy_draft){ 0 };
    if (most == GY_PERSIST_ANY) {
        most = GY_PERSIST_ALL;
        least = GY_PERSIST_NONE;
    }
    for (uint32_t persists = most + 1; persists-- > least && status == GANTRY_E_CAPACITY;)
        status = try_all(p, &from, (gy_persisting)persists, err);
    p->spilled.persistent = persistent;
    gy_vec_free(&from.instance);
    gy_vec_free(&from.op);
    gy_vec_free(&from.use);
    gy_vec_free(&from.edges);
    return status;
}

gantry_status gy_plan_fit_by_spilling(gy_plan *p, gantry_error *err)
{
    forget_order(p);
    p->one_instance = true;
    gantry_status status = lower_again(p, err);
    return status == GANTRY_E_CAPACITY && p->attempt->spill.spilling != GY_SPILL_OFF ? spill(p, err) : status;
}
