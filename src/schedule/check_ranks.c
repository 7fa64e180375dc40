/* SPDX-License-Identifier: Apache-2.0 */
/* Rule collective, and of rule external what can be seen without walking. */
#include "base/error.h"
#include "schedule/check.h"
#include <stdlib.h>

/* Reads and writes that an inserted collective must have; 0: one or more. */
static const struct shape {
    uint8_t reads, writes, reduces;
} shapes[] = {
    [GANTRY_ALL_REDUCE] = { 0, 0, 1 },     [GANTRY_REDUCE] = { 0, 1, 1 },     [GANTRY_BROADCAST] = { 1, 0, 0 },
    [GANTRY_SCATTER] = { 1, 0, 0 },        [GANTRY_GATHER] = { 0, 1, 0 },     [GANTRY_ALL_GATHER] = { 0, 0, 0 },
    [GANTRY_REDUCE_SCATTER] = { 0, 0, 1 }, [GANTRY_ALL_TO_ALL] = { 0, 0, 0 },
};

static gantry_status check_lanes(const gy_check *k, uint32_t index)
{
    const gantry_schedule *s = k->s;
    const gy_op *op = gy_check_op(k, index);
    uint8_t *used = gy_calloc(s->lanes.count + op->lanes, 1);
    if (!used) {
        return gy_fail_nomem(k->err);
    }
    uint32_t twice = GY_NONE, idle = GY_NONE;
    for (uint32_t i = 0; i < op->lanes; i++) {
        uint32_t lane = s->op_lane.at[op->lane + i];
        twice = used[lane]++ ? lane : twice;
    }
    for (uint32_t i = 0; i < op->uses; i++) {
        used[s->lanes.count + s->use.at[op->use + i].rank] = 1;
    }
    for (uint32_t i = 0; i < op->lanes; i++) {
        idle = used[s->lanes.count + i] ? idle : i;
    }
    gy_free(used);
    if (twice != GY_NONE) {
        return gy_breach(k->err, "collective", "ops", index, "%s is twice in lane %u; its lanes are distinct",
                         gy_label_op(s, index).at, twice);
    }
    if (idle != GY_NONE) {
        return gy_breach(k->err, "collective", "ops", index, "rank %u of %s reads and writes nothing", idle,
                         gy_label_op(s, index).at);
    }
    return GANTRY_OK;
}

static gantry_status check_shape(const gy_check *k, uint32_t index)
{
    const gy_op *op = gy_check_op(k, index);
    const struct shape *shape = &shapes[op->collective];
    uint32_t writes = op->uses - op->ins;
    if ((shape->reads ? op->ins != shape->reads : op->ins == 0) ||
        (shape->writes ? writes != shape->writes : writes == 0)) {
        return gy_breach(k->err, "collective", "ops", index, "%s has %u reads and %u writes; its kind has %s and %s",
                         gy_label_op(k->s, index).at, op->ins, writes, shape->reads ? "one" : "one or more",
                         shape->writes ? "one" : "one or more");
    }
    if (!op->reduce != !shape->reduces) {
        return gy_breach(k->err, "collective", "ops", index, "%s has reduction \"%s\"; its kind has %s",
                         gy_label_op(k->s, index).at, gy_word(&gy_reduction_words, op->reduce),
                         shape->reduces ? "one" : "none");
    }
    for (uint32_t i = 0; shape->reduces && i < op->ins; i++) {
        const gy_instance *in = gy_use_instance(k, &k->s->use.at[op->use + i]);
        if (in->role == GY_ROLE_ACCUMULATOR && in->op != op->reduce) {
            return gy_breach(k->err, "collective", "ops", index, "%s reduces by %s; read %u is an accumulator of %s",
                             gy_label_op(k->s, index).at, gy_word(&gy_reduction_words, op->reduce), i,
                             gy_word(&gy_reduction_words, in->op));
        }
    }
    return GANTRY_OK;
}

static int by_first(const void *a, const void *b)
{
    const gy_use *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* Each row of a write is in a read: sorted reads, with `end` how far those that begin before it reach. */
static gantry_status check_cover(const gy_check *k, uint32_t index, const gy_use *reads, const gy_use *write)
{
    const gy_op *op = gy_check_op(k, index);
    int64_t row = write->first;
    for (uint32_t i = 0; i < op->ins && row < write->last && reads[i].first <= row; i++) {
        row = reads[i].last > row ? reads[i].last : row;
    }
    if (row >= write->last) {
        return GANTRY_OK;
    }
    return gy_breach(k->err, "collective", "ops", index, "%s writes row %lld, which it reads nowhere",
                     gy_label_op(k->s, index).at, (long long)row);
}

static gantry_status check_sorted(const gy_check *k, uint32_t index, const gy_use *reads)
{
    const gy_op *op = gy_check_op(k, index);
    gantry_status status = GANTRY_OK;
    int64_t end = INT64_MIN;
    for (uint32_t i = 0; i < op->ins && !op->reduce; i++) {
        if (reads[i].first < end && reads[i].first < reads[i].last) {
            return gy_breach(k->err, "collective", "ops", index, "%s reads row %lld twice and does not reduce",
                             gy_label_op(k->s, index).at, (long long)reads[i].first);
        }
        end = reads[i].last > end ? reads[i].last : end;
    }
    for (uint32_t i = op->ins; !status && i < op->uses; i++) {
        status = check_cover(k, index, reads, &k->s->use.at[op->use + i]);
    }
    return status;
}

static gantry_status check_rows(const gy_check *k, uint32_t index)
{
    const gy_op *op = gy_check_op(k, index);
    gy_use *reads = gy_calloc(op->ins + 1u, sizeof *reads);
    if (!reads) {
        return gy_fail_nomem(k->err);
    }
    for (uint32_t i = 0; i < op->ins; i++) {
        reads[i] = k->s->use.at[op->use + i];
    }
    qsort(reads, op->ins, sizeof *reads, by_first);
    gantry_status status = check_sorted(k, index, reads);
    gy_free(reads);
    return status;
}

static gantry_status check_collective(const gy_check *k, uint32_t index)
{
    const gy_op *op = gy_check_op(k, index);
    gantry_status status = check_lanes(k, index);
    if (!status && op->node == GY_NONE) {
        status = check_shape(k, index);
        if (!status) {
            status = check_rows(k, index);
        }
    }
    return status;
}

static gantry_status check_external(const gy_check *k, uint32_t index)
{
    const gy_op *op = gy_check_op(k, index);
    for (uint32_t i = 0; i < op->uses; i++) {
        const gy_use *u = &k->s->use.at[op->use + i];
        if (u->mode != GANTRY_READ && gy_use_instance(k, u)->space == GY_SPACE_INPUT) {
            return gy_breach(k->err, "external", "ops", index, "%s writes to input \"%s\"; inputs are read only",
                             gy_label_op(k->s, index).at, k->s->values.at[gy_use_instance(k, u)->value].name);
        }
    }
    return GANTRY_OK;
}

gantry_status gy_check_ranks(gy_check *k)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; !status && i < k->s->ops.count; i++) {
        status = gy_check_op(k, i)->kind == GY_OP_COLLECTIVE ? check_collective(k, i) : GANTRY_OK;
    }
    for (uint32_t i = 0; !status && i < k->s->ops.count; i++) {
        status = check_external(k, i);
    }
    return status;
}
