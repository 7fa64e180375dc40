/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The part of one rank in a schedule whose machine has several, as data. schedule/ranks makes parts, and the
 * checker proves that those of all ranks fit together.
 *
 * A rank has an op if the op touches a memory of the rank. An op of several ranks crosses: a copy between memories of
 * two ranks, or a collective; the rank of its first lane's device runs it. Its bytes go as messages. Of a copy: its
 * flag, if it has one, from the rank that runs it to the other, then the rows. Of a collective: what is read goes to
 * the rank that runs it, then what is written from there; in the order of uses.
 *
 * Small messages between the same two ranks at the same moment are packed: they go as one. Of copies, where all that a
 * later one waits for has ended before an earlier one begins, so that the earlier one waits for nothing more; the step
 * of the earlier one carries the messages of both. Of a collective, uses that follow each other.
 *
 * Groups. Where queues are lanes, all messages of a rank are in one queue, so what ranks send each other at the same
 * moment goes together, with all peers and both ways: the step of the first of such copies between GPUs that a rank has
 * carries the messages of all that it has, in any order, which is one call of NCCL. Those between two ranks, one way,
 * stand together, in the order of ops. The step waits for what any of them waits for; all of that comes before the
 * first copy of the group, of all ranks, in the order of ops, and is predicted to end soon after what it waits for
 * itself. Groups are in the same order on all ranks, that of their first copies. None of a step writes what another of
 * it touches.
 *
 * A part is carried out by queues, each of which does its steps one after the other: one for each device, or for each
 * lane, with its ops that do not cross, and those of the network with ops that cross. Lanes have one of the network.
 * With devices, copies to each other rank are a queue, and those from it: a rank that waits for one neighbour goes on
 * with the others. What has messages both ways, collectives and copies with a flag, is a queue of its own. So messages
 * of a queue are sent and received in the one total order of ops; those of two queues must not be taken for each other.
 *
 * Arrays of inputs and outputs are those of rank 0, but where each rank has its own: an op reads and writes those of
 * the rank that runs it, so that nothing of them goes over the network. Contents of own inputs are the same everywhere;
 * of an own output each rank has the rows that its ops wrote.
 */
#ifndef GY_SCHEDULE_PART_H
#define GY_SCHEDULE_PART_H

#include "schedule/schedule.h"

typedef struct gy_message {
    uint32_t op, use; /* a use of the op, from 0: all its bytes. The op of the step, or a copy that is packed with it */
    uint32_t peer;
    bool sends;  /* to the peer; else receives from it */
    bool packed; /* it is one with that before it in the step, and stands behind its bytes */
    uint64_t bytes;
} gy_message;
/* Both sides copy what is packed, which takes less time than a message if each is small. Bytes of one, and of all
 * together, at most. */
enum { GY_PACK_ONE = GY_MESSAGE_SMALL, GY_PACK_ALL = GY_COPIES_AT_ONCE * GY_MESSAGE_SMALL };
/* Of a group, on a rank: copies and bytes at most, as hosts may have to keep them all; the time from the first start to
 * the last, 20 us, less than what a call of NCCL takes; bytes of which all together take hardly longer. */
enum {
    GY_GROUP_MOST = GY_COPIES_AT_ONCE,
    GY_GROUP_ALL = 64 << 20,
    GY_GROUP_TICKS = 20000000,
    GY_GROUP_SMALL = 1 << 20
};

typedef struct gy_part_step {
    uint32_t op;
    bool runs;                  /* this rank runs the op; else it only sends and receives */
    bool packed;                /* a copy whose messages an earlier step carries, of its pack or group */
    uint32_t queue;             /* see gy_part_queue; those of the network come last */
    uint32_t message, messages; /* range of gy_part.message; none where the op does not cross */
    uint32_t wait, waits;       /* range of gy_part.wait */
} gy_part_step;

typedef enum gy_own { GY_OWN_INPUT = 1, GY_OWN_OUTPUT = 2 } gy_own;

typedef enum gy_part_queues { GY_PART_BY_DEVICE, GY_PART_BY_LANE } gy_part_queues;

typedef struct gy_part {
    gy_part_queues by;
    uint32_t rank, queues, network; /* network: its first queue */
    const uint8_t *own;        /* per buffer of the graph: a set of gy_own, borrowed; NULL: rank 0 has all arrays */
    GY_VEC(gy_part_step) step; /* in the order of ops */
    GY_VEC(gy_message) message;
    GY_VEC(uint32_t) wait; /* earlier steps, of other queues, that must have ended before a step begins */
} gy_part;

static inline uint32_t gy_use_rank(const gantry_schedule *s, uint32_t use)
{
    return s->machine->memory[s->instances.at[s->use.at[use].instance].memory].rank;
}
static inline uint32_t gy_op_rank(const gantry_schedule *s, const gy_op *op)
{
    return gy_device_rank(s->machine, gy_op_device(s, op, 0));
}

/* An array of the program in host memory: that of rank 0, or of each rank. In these spaces a value is a buffer. */
static inline bool gy_part_is_array(const gantry_schedule *s, const gy_instance *i)
{
    bool bound = i->space == GY_SPACE_INPUT || i->space == GY_SPACE_OUTPUT;
    return bound && (i->memory == 0 || (s->graph && !s->graph->buffers.at[i->value].external));
}

/* The rank that has what use number k of the op touches. */
static inline uint32_t gy_part_rank(const gy_part *part, const gantry_schedule *s, const gy_op *op, uint32_t k)
{
    const gy_instance *i = &s->instances.at[s->use.at[op->use + k].instance];
    uint8_t bit = i->space == GY_SPACE_INPUT ? GY_OWN_INPUT : i->space == GY_SPACE_OUTPUT ? GY_OWN_OUTPUT : 0;
    bool array = gy_part_is_array(s, i), own = array && part->own && (part->own[i->value] & bit);
    return own ? gy_op_rank(s, op) : array ? 0 : gy_use_rank(s, op->use + k);
}

/* The queue of an op that does not cross. */
static inline uint32_t gy_part_queue(const gy_part *part, const gantry_schedule *s, const gy_op *op)
{
    return part->by == GY_PART_BY_LANE ? s->op_lane.at[op->lane] : gy_op_device(s, op, 0);
}
/* The first message behind number i of a step that is not one with it; all up to there, from a first, are one. */
static inline uint32_t gy_pack_end(const gy_part *part, const gy_part_step *step, uint32_t i)
{
    do
        i++;
    while (i < step->messages && part->message.at[step->message + i].packed);
    return i;
}
static inline uint64_t gy_pack_bytes(const gy_part *part, const gy_part_step *step, uint32_t first, uint32_t end)
{
    uint64_t bytes = 0;
    for (uint32_t i = first; i < end; i++)
        bytes += part->message.at[step->message + i].bytes;
    return bytes;
}
/* Queues of the network: the first is of what has messages both ways, or goes by lanes; then, for each rank, of copies
 * to it, and of those from it. */
static inline uint32_t gy_part_network_queues(gy_part_queues by, uint32_t ranks)
{
    return by == GY_PART_BY_LANE ? 1 : 1 + 2 * ranks;
}
static inline uint32_t gy_part_sends_to(const gy_part *part, uint32_t rank)
{
    return part->network + 1 + 2 * rank;
}
static inline uint32_t gy_part_receives_from(const gy_part *part, uint32_t rank)
{
    return part->network + 2 + 2 * rank;
}
/* The step crosses, so it is one of the network. */
static inline bool gy_part_crosses(const gy_part *part, const gy_part_step *step)
{
    return step->queue >= part->network;
}
/* The checker: the parts of all `ranks` carry the schedule out together. Each op is done once, where its device is;
 * messages match in size and order, also where every send waits for its receiver; no speed of ranks leads to a
 * deadlock; and what must end before something else on a rank does so there. The schedule has passed
 * gy_schedule_form. E_SCHEDULE with "rule ranks: ..." */
gantry_status gy_parts_verify(const gantry_schedule *s, const gy_part *part, uint32_t ranks, gantry_error *err);
/* Of that, what is about arrays that each rank has itself; `own` of a gy_part. */
gantry_status gy_own_verify(const gantry_schedule *s, const uint8_t *own, gantry_error *err);

#endif
