/* SPDX-License-Identifier: Apache-2.0 */
/* Rules order and carrier: can every wait end, and is it carried as it says? */
#include "base/error.h"
#include "schedule/check/check.h"

static gantry_status check_forward(const gy_check *k, size_t index)
{
    const gy_sync *row = &k->s->sync.at[index];
    if (row->distance > 0 || row->from < row->to)
        return GANTRY_OK;
    return gy_breach(k->err, "order", "sync", index,
                     "row %zu lets %s wait for %s, which is not before it in the total order; two "
                     "such waits are a deadlock",
                     index, gy_label_op(k->s, row->to).at, gy_label_op(k->s, row->from).at);
}

static bool share_lane(const gantry_schedule *s, const gy_op *a, const gy_op *b)
{
    for (uint32_t i = 0; i < a->lanes; i++) {
        for (uint32_t j = 0; j < b->lanes; j++)
            if (s->op_lane.at[a->lane + i] == s->op_lane.at[b->lane + j])
                return true;
    }
    return false;
}

/* `owner`: per slot, the op that signals it; events in the first half, flags in the second. */
static gantry_status check_carrier(const gy_check *k, size_t index, uint32_t *owner)
{
    const gantry_schedule *s = k->s;
    const gy_sync *row = &s->sync.at[index];
    if (row->carrier == GY_CARRIER_EDGE)
        return GANTRY_OK;
    if (row->carrier == GY_CARRIER_LANE) {
        if (share_lane(s, &s->ops.at[row->from], &s->ops.at[row->to]))
            return GANTRY_OK;
        return gy_breach(k->err, "carrier", "sync", index,
                         "row %zu says that the lane carries it, but %s and %s share no lane", index,
                         gy_label_op(s, row->from).at, gy_label_op(s, row->to).at);
    }
    uint32_t *mine = &owner[row->slot + (row->carrier == GY_CARRIER_FLAG ? s->ops.count : 0)];
    if (*mine == GY_NONE || *mine == row->from) {
        *mine = row->from;
        return GANTRY_OK;
    }
    return gy_breach(k->err, "carrier", "sync", index,
                     "row %zu has %s %u signalled by %s, which another row has signalled by %s", index,
                     gy_word(&gy_carrier_words, row->carrier), row->slot, gy_label_op(s, row->from).at,
                     gy_label_op(s, *mine).at);
}

gantry_status gy_check_order(gy_check *k)
{
    gantry_status status = GANTRY_OK;
    for (size_t i = 0; !status && i < k->s->sync.count; i++)
        status = check_forward(k, i);
    if (status)
        return status;
    size_t slots = 2 * k->s->ops.count;
    uint32_t *owner = gy_alloc((slots + 1) * sizeof *owner);
    if (!owner)
        return gy_fail_nomem(k->err);
    for (size_t i = 0; i < slots; i++)
        owner[i] = GY_NONE;
    for (size_t i = 0; !status && i < k->s->sync.count; i++)
        status = check_carrier(k, i, owner);
    gy_free(owner);
    return status;
}
