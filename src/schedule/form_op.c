/* SPDX-License-Identifier: Apache-2.0 */
/* Rule form, for ops, uses and the sync table. */
#include "schedule/form.h"

#include "base/error.h"
#include "schedule/words.h"
#include <string.h>

#define BREACH(...) gy_breach(err, "form", __VA_ARGS__)

static gantry_status check_use(const gantry_schedule *s, size_t index, const gy_op *op, const gy_use *u,
                               gantry_error *err)
{
    unsigned k = (unsigned)(u - &s->use.at[op->use]);
    if (u->instance >= s->instances.count || u->mode < GANTRY_READ || u->mode > GANTRY_PROD || u->rank >= op->lanes) {
        return BREACH("ops", index, "use %u of op %zu has instance %u of %zu, mode %u, rank %u of %u", k, index,
                      u->instance, s->instances.count, u->mode, u->rank, op->lanes);
    }
    const gy_instance *in = &s->instances.at[u->instance];
    if (u->first > u->last || u->first < in->first || u->last > in->last) {
        return BREACH("ops", index, "use %u of op %zu has rows %lld to %lld; instance %u has %lld to %lld", k, index,
                      (long long)u->first, (long long)u->last, u->instance, (long long)in->first, (long long)in->last);
    }
    if (in->role == GY_ROLE_ACCUMULATOR && gy_is_reduction(u->mode) && u->mode != in->op) {
        return BREACH("ops", index, "use %u of op %zu makes a %s contribution to instance %u, an accumulator of %s", k,
                      index, gy_word(&gy_access_words, u->mode), u->instance, gy_word(&gy_access_words, in->op));
    }
    return GANTRY_OK;
}

static const gy_instance *instance_of(const gantry_schedule *s, const gy_op *op, uint32_t use)
{
    return &s->instances.at[s->use.at[op->use + use].instance];
}

/* A node with `when` changes what it writes, but where nodes of its flag alone know it, and reads its flag behind that.
 */
static bool has_modes(const gantry_schedule *s, const gy_op *op, const uint8_t *mode, uint32_t count)
{
    bool may = op->node != GY_NONE && op->uses == count + 1;
    const gy_use *u = gy_vec_from(&s->use, op->use);
    bool right = may ? u[count].mode == GANTRY_READ : op->uses == count;
    for (uint32_t k = 0; k < count && right; k++)
        right = u[k].mode == mode[k] || (may && mode[k] == GANTRY_WRITE && u[k].mode == GANTRY_READWRITE);
    return right;
}

/* Copies: one read, one write; inserted ones move rows that lie alike in both values. */
static gantry_status check_copy(const gantry_schedule *s, size_t i, const uint32_t *geometry, gantry_error *err)
{
    const gy_op *op = &s->ops.at[i];
    const gy_use *u = gy_vec_from(&s->use, op->use);
    if (!has_modes(s, op, (uint8_t[]){ GANTRY_READ, GANTRY_WRITE }, 2)) {
        return BREACH("ops", i,
                      "op %zu is a %s with %u uses; it has two, a read and a write, or of a node with `when` three, a "
                      "read, a write or readwrite and the read of a flag",
                      i, gy_word(&gy_op_words, op->kind), op->uses);
    }
    if (op->node == GY_NONE && (u[0].first != u[1].first || u[0].last != u[1].last ||
                                geometry[instance_of(s, op, 0)->value] != geometry[instance_of(s, op, 1)->value])) {
        return BREACH("ops", i,
                      "op %zu copies rows %lld to %lld to rows %lld to %lld; an inserted copy moves the same rows of "
                      "values that have rows of one size",
                      i, (long long)u[0].first, (long long)u[0].last, (long long)u[1].first, (long long)u[1].last);
    }
    return GANTRY_OK;
}

static gantry_status check_fill(const gantry_schedule *s, size_t i, gantry_error *err)
{
    const gy_op *op = &s->ops.at[i];
    if (!has_modes(s, op, (uint8_t[]){ GANTRY_WRITE }, 1)) {
        return BREACH("ops", i,
                      "op %zu is a fill with %u uses; it has one, a write, or of a node with `when` two, a write or "
                      "readwrite and "
                      "the read of a flag",
                      i, op->uses);
    }
    const gy_instance *in = instance_of(s, op, 0);
    bool accumulator = in->role == GY_ROLE_ACCUMULATOR;
    if (op->node == GY_NONE && (accumulator ? op->reduce && op->reduce != in->op : !op->reduce)) {
        return BREACH("ops", i,
                      "op %zu fills with the identity of \"%s\"; say of which reduction, for an accumulator its own", i,
                      gy_word(&gy_reduction_words, op->reduce));
    }
    return GANTRY_OK;
}

static gantry_status check_collective(const gantry_schedule *s, size_t i, const uint32_t *geometry, gantry_error *err)
{
    const gy_op *op = &s->ops.at[i];
    if (gy_word(&gy_collective_words, op->collective)[0] == '?' || op->ins > op->uses || op->uses == 0) {
        return BREACH("ops", i, "op %zu is collective %u with %u reads among %u uses", i, op->collective, op->ins,
                      op->uses);
    }
    for (uint32_t k = 0; k < op->uses; k++) {
        const gy_use *u = &s->use.at[op->use + k];
        gantry_access mode = k < op->ins ? GANTRY_READ : GANTRY_WRITE;
        if (u->mode != mode) {
            return BREACH("ops", i, "use %u of op %zu has mode %s; a collective has %u reads, then writes", k, i,
                          gy_word(&gy_access_words, u->mode), op->ins);
        }
        if (op->node == GY_NONE && geometry[instance_of(s, op, k)->value] != geometry[instance_of(s, op, 0)->value]) {
            return BREACH("ops", i,
                          "use %u of op %zu is of \"%s\", use 0 of \"%s\"; rows of an inserted collective have one "
                          "size",
                          k, i, s->values.at[instance_of(s, op, k)->value].name,
                          s->values.at[instance_of(s, op, 0)->value].name);
        }
    }
    return GANTRY_OK;
}

static gantry_status check_kind(const gantry_schedule *s, size_t i, const uint32_t *geometry, gantry_error *err)
{
    const gy_op *op = &s->ops.at[i];
    bool needs = gy_op_calls(op);
    bool never = op->kind == GY_OP_EVICT || op->kind == GY_OP_FETCH;
    if (op->algorithm >= GY_ALGORITHM_COUNT || (op->algorithm && op->kind != GY_OP_COLLECTIVE)) {
        return BREACH("ops", i, "op %zu is a %s by algorithm %u; collectives have 1 to %d, other ops none", i,
                      gy_word(&gy_op_words, op->kind), op->algorithm, GY_ALGORITHM_COUNT - 1);
    }
    if ((needs && op->node == GY_NONE) || (never && op->node != GY_NONE)) {
        return BREACH("ops", i, "op %zu is a %s %s a node", i, gy_word(&gy_op_words, op->kind),
                      needs ? "without" : "with");
    }
    if (op->kind != GY_OP_COLLECTIVE && op->lanes != 1) {
        return BREACH("ops", i, "op %zu is a %s in %u lanes; only collectives have several", i,
                      gy_word(&gy_op_words, op->kind), op->lanes);
    }
    if (op->reduce && (!gy_is_reduction(op->reduce) || (op->kind != GY_OP_COLLECTIVE && op->kind != GY_OP_FILL)))
        return BREACH("ops", i, "op %zu is a %s with reduction %u", i, gy_word(&gy_op_words, op->kind), op->reduce);
    switch (op->kind) {
    case GY_OP_COPY:
    case GY_OP_EVICT:
    case GY_OP_FETCH:
        return check_copy(s, i, geometry, err);
    case GY_OP_FILL:
        return check_fill(s, i, err);
    case GY_OP_COLLECTIVE:
        return check_collective(s, i, geometry, err);
    default:
        return GANTRY_OK;
    }
}

static gantry_status check_times(const gantry_schedule *s, size_t i, gantry_error *err)
{
    const gy_op *op = &s->ops.at[i];
    if (op->duration < 0 || op->duration > GY_TICKS_MAX || op->start < 0 || op->end < op->start ||
        op->end > GY_TICKS_MAX || op->provenance > GY_COST_ROOFLINE) {
        return BREACH("ops", i, "op %zu lasts %lld ps, from %lld to %lld, by %u; times are 0 or more and do not fall",
                      i, (long long)op->duration, (long long)op->start, (long long)op->end, op->provenance);
    }
    return GANTRY_OK;
}

static gantry_status check_op(const gantry_schedule *s, size_t i, const uint32_t *geometry, gantry_error *err)
{
    const gy_op *op = &s->ops.at[i];
    if (op->kind > GY_OP_FETCH || op->use > s->use.count || op->uses > s->use.count - op->use || op->lanes == 0 ||
        op->lane > s->op_lane.count || op->lanes > s->op_lane.count - op->lane) {
        return BREACH("ops", i, "op %zu has kind %u, %u uses from %u of %zu, %u lanes from %u of %zu", i, op->kind,
                      op->uses, op->use, s->use.count, op->lanes, op->lane, s->op_lane.count);
    }
    if (op->node != GY_NONE ? op->node >= s->node_ids.count : op->iteration != 0) {
        return BREACH("ops", i, "op %zu has node %u of %zu, iteration %u", i, op->node, s->node_ids.count,
                      op->iteration);
    }
    bool repeats = op->kind == GY_OP_LAUNCH || op->kind == GY_OP_FILL || op->kind == GY_OP_COLLECTIVE;
    if (op->repeat && (!repeats || op->node == GY_NONE)) {
        return BREACH("ops", i, "op %zu repeats a task and is a %s%s; only a launch, fill or collective of a node can",
                      i, gy_word(&gy_op_words, op->kind), op->node == GY_NONE ? " without a node" : "");
    }
    for (uint32_t k = 0; k < op->lanes; k++) {
        uint32_t lane = s->op_lane.at[op->lane + k];
        if (lane >= s->lanes.count)
            return BREACH("ops", i, "op %zu is in lane %u of %zu", i, lane, s->lanes.count);
    }
    for (uint32_t k = 0; k < op->uses; k++)
        GY_TRY(check_use(s, i, op, &s->use.at[op->use + k], err));
    GY_TRY(check_kind(s, i, geometry, err));
    return check_times(s, i, err);
}

static gantry_status check_row(const gantry_schedule *s, size_t i, gantry_error *err)
{
    const gy_sync *row = &s->sync.at[i];
    if (row->from >= s->ops.count || row->to >= s->ops.count || row->carrier > GY_CARRIER_FLAG ||
        row->reason > GY_WHY_REUSE) {
        return BREACH("sync", i, "row %zu joins ops %u and %u of %zu by carrier %u for reason %u", i, row->from,
                      row->to, s->ops.count, row->carrier, row->reason);
    }
    bool slots = row->carrier == GY_CARRIER_EVENT || row->carrier == GY_CARRIER_FLAG;
    if (slots && row->slot >= s->ops.count) {
        return BREACH("sync", i, "row %zu has slot %u; slots are below the number of ops, %zu", i, row->slot,
                      s->ops.count);
    }
    return GANTRY_OK;
}

static bool is_of_lanes(const gantry_schedule *s, const gy_op *a, const gy_op *b)
{
    return a->lanes == b->lanes &&
           !memcmp(&s->op_lane.at[a->lane], &s->op_lane.at[b->lane], a->lanes * sizeof *s->op_lane.at);
}

/* A batch is whole, of launches, of copies or of collectives, in the same lanes. */
static gantry_status check_batch(const gantry_schedule *s, size_t i, gantry_error *err)
{
    const gy_op *first = &s->ops.at[i];
    if (first->joined) {
        return BREACH("ops", i, "op %zu joins a batch that no op before it begins; the first op of a batch has `batch`",
                      i);
    }
    if (first->batch == 1 || first->batch > s->ops.count - i) {
        return BREACH("ops", i, "op %zu begins a batch of %u ops; there are %zu from it on, and a batch has 2 or more",
                      i, first->batch, s->ops.count - i);
    }
    for (size_t k = i; k < i + first->batch; k++) {
        const gy_op *op = &s->ops.at[k];
        bool fits = gy_op_may_batch(op) && op->kind == first->kind;
        if (!fits || op->joined != (k > i) || (k > i && op->batch)) {
            return BREACH(
                "ops", k,
                "op %zu is a %s%s in the batch of op %zu; a batch is made of launches, of copies or of collectives", k,
                gy_word(&gy_op_words, op->kind), op->batch ? " that begins a batch" : "", i);
        }
        if (!is_of_lanes(s, op, first)) {
            return BREACH(
                "ops", k,
                "op %zu is in %u lanes, the first of them %u; the batch of op %zu is in %u, the first of them "
                "%u; ops of a batch are in the same lanes, rank by rank",
                k, op->lanes, s->op_lane.at[op->lane], i, first->lanes, s->op_lane.at[first->lane]);
        }
    }
    return GANTRY_OK;
}

static gantry_status check_batches(const gantry_schedule *s, gantry_error *err)
{
    for (size_t i = 0; i < s->ops.count;) {
        GY_TRY(check_batch(s, i, err));
        i += s->ops.at[i].batch ? s->ops.at[i].batch : 1;
    }
    return GANTRY_OK;
}

gantry_status gy_form_ops(const gantry_schedule *s, const uint32_t *geometry, gantry_error *err)
{
    for (size_t i = 0; i < s->ops.count; i++)
        GY_TRY(check_op(s, i, geometry, err));
    GY_TRY(check_batches(s, err));
    for (size_t i = 0; i < s->sync.count; i++)
        GY_TRY(check_row(s, i, err));
    return GANTRY_OK;
}
