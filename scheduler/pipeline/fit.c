/* SPDX-License-Identifier: Apache-2.0 */
/**
 * From the fastest way to arrange a placed graph to the one that needs least memory. Each is tried only if those before
 * it do not fit:
 *
 *   - copies as early as they can begin; addresses shared where it costs no waiting
 *   - the same, addresses shared wherever positions allow
 *   - rows brought just before they are used
 *   - no collectives in place of copies: these bring rows to all at one time
 *   - spilling (spill.h), with more and more room left for holes, and less and less that persists
 */
#include "scheduler/spill/spill.h"

#include "base/error.h"

#define LARGE 2000 /* tasks: then nothing is tried that is all but hopeless */

static gantry_status arrange(gy_plan *p, bool early, bool tight, gantry_error *err)
{
    gantry_status status = gy_plan_order(p, early, err);
    if (!status)
        status = gy_plan_stream(p, err);
    if (!status)
        status = gy_plan_pace(p, err);
    return status ? status : gy_plan_pack(p, tight, err);
}

static gantry_status make_draft(gy_plan *p, gantry_error *err)
{
    p->instance.count = p->draft.count = p->use.count = p->edges.count = p->rank_device.count = 0;
    return gy_plan_lower(p, err);
}

/* The first way takes the draft apart as it goes, if nothing is to be done with it later: most graphs fit, and large
 * ones have no room for both. Large ones are not packed in vain either. */
gantry_status gy_plan_fit(gy_plan *p, gantry_error *err)
{
    gantry_status status = p->flow->tasks > LARGE ? gy_plan_check_room(p, err) : GANTRY_OK;
    if (status)
        return status;
    p->once = true;
    status = arrange(p, true, false, err);
    p->once = false;
    if (status != GANTRY_E_CAPACITY)
        return status;
    status = make_draft(p, err);
    if (!status)
        status = gy_plan_collect(p, err);
    if (!status)
        status = arrange(p, true, true, err);
    if (status == GANTRY_E_CAPACITY)
        status = arrange(p, false, true, err);
    return status;
}

/* The draft without collectives, which is what spilling begins with. */
static gantry_status lower_again(gy_plan *p, gantry_error *err)
{
    gantry_status status = make_draft(p, err);
    if (!status && p->spill != GY_SPILL_OFF) /* else the packer says why */
        status = gy_plan_check_room(p, err);
    p->haste = 1; /* all else costs time of the run */
    return status ? status : arrange(p, false, true, err);
}

/* What gy_plan_order keeps from one call to the next is as long as the draft was. */
static void forget_order(gy_plan *p)
{
    gy_free(p->draft_of);
    gy_free(p->expect);
    gy_free(p->need_first);
    p->draft_of = NULL;
    p->expect = NULL;
    p->need_first = NULL;
}

static gantry_status try_one(gy_plan *p, const gy_spill_draft *from, const gy_spill_try *how, gy_spill_result *result,
                             gantry_error *err)
{
    gantry_status status = gy_plan_spill(p, from, how, result, err);
    forget_order(p);
    p->addressed = how->addressed;
    p->haste = 100;
    p->remade = result->remade;
    p->copies = result->copies;
    if (!status && !result->moved)
        return GANTRY_E_CAPACITY; /* as before, and that is what `err` says */
    return status ? status : arrange(p, false, true, err);
}

static bool has_persistent(const gy_spill_draft *from)
{
    for (size_t i = 0; i < from->instance.count; i++)
        if (from->instance.at[i].role == GY_ROLE_PERSIST && from->instance.at[i].memory != 0)
            return true;
    return false;
}

/* With so much that persists: addresses on the way, else less and less of each memory. */
static gantry_status try_all(gy_plan *p, const gy_spill_draft *from, uint32_t persists, gantry_error *err)
{
    static const gy_spill_try ways[] = { { .addressed = true, .remake = true },
                                         { .addressed = true },
                                         { .sixteenths = 14 },
                                         { .sixteenths = 8 },
                                         { .sixteenths = 0 } };
    gantry_status status = GANTRY_E_CAPACITY;
    gy_spill_result result = { 0 };
    for (size_t i = 0; i < sizeof ways / sizeof *ways && status == GANTRY_E_CAPACITY && !result.alone; i++) {
        gy_spill_try how = ways[i];
        how.persists = persists;
        how.late = p->late;
        if (!how.remake || p->spill == GY_SPILL_REMAKE)
            status = try_one(p, from, &how, &result, err);
    }
    return status;
}

static gantry_status spill(gy_plan *p, gantry_error *err)
{
    gy_spill_draft from = { 0 };
    gantry_status status = GANTRY_E_CAPACITY;
#define SWAP(field)                                                                                                    \
    do {                                                                                                               \
        from.field.at = p->field.at;                                                                                   \
        from.field.count = p->field.count;                                                                             \
        from.field.capacity = p->field.capacity;                                                                       \
        p->field.at = NULL;                                                                                            \
        p->field.count = p->field.capacity = 0;                                                                        \
    } while (0)
    SWAP(instance);
    SWAP(draft);
    SWAP(use);
    SWAP(edges);
#undef SWAP
    for (uint32_t persists = has_persistent(&from) ? 3 : 1; persists-- > 0 && status == GANTRY_E_CAPACITY;)
        status = try_all(p, &from, persists, err);
    gy_vec_free(&from.instance);
    gy_vec_free(&from.draft);
    gy_vec_free(&from.use);
    gy_vec_free(&from.edges);
    return status;
}

gantry_status gy_plan_squeeze(gy_plan *p, gantry_error *err)
{
    forget_order(p);
    gantry_status status = lower_again(p, err);
    return status == GANTRY_E_CAPACITY && p->spill != GY_SPILL_OFF ? spill(p, err) : status;
}
