/* SPDX-License-Identifier: Apache-2.0 */
/* Looking for packs and groups (schedule/part.h), inside of this room. */
#ifndef GY_SCHEDULE_RANKS_PACKS_H
#define GY_SCHEDULE_RANKS_PACKS_H

#include "schedule/ranks/ranks.h"

/* The last pack between two ranks: a copy may join it. */
typedef struct gy_rank_pack {
    uint32_t head; /* 1 + the op; 0: there is none */
    uint64_t bytes;
} gy_rank_pack;

/* The first and the last of some times. */
typedef struct gy_rank_span {
    gy_ticks from, to;
} gy_rank_span;

/* The part of a rank in the last group that it is of: one step. */
typedef struct gy_rank_grouped {
    uint32_t group;       /* 1 + its number; 0: none so far */
    uint32_t first, last; /* its first op on this rank, whose step carries all, and 1 + its last */
    uint32_t count;
    uint64_t bytes;
    gy_rank_span starts, waits; /* as predicted: its copies begin; the last thing that each of them waits for ends */
    uint32_t key; /* 1 + the op at the head of the last step of the network: of a group that of all ranks; 0: none */
} gy_rank_grouped;

typedef struct gy_packer {
    const gantry_schedule *s;
    const gy_part *part;
    const gy_part_rows *rows;
    uint32_t *head;
    uint32_t *last;     /* per lane: 1 + its last op so far */
    uint32_t *before;   /* per op of one lane: 1 + the op before it in its lane */
    gy_rank_pack *open; /* per rank that sends and rank that receives */
    uint32_t ranks;
    bool *gpu; /* per memory: that of a GPU */
    bool gpus; /* the machine has some: what goes by NCCL, and what through hosts, is not packed together */

    /* Where queues are lanes. */
    GY_VEC(uint32_t) group;   /* of each the first op */
    gy_rank_grouped *grouped; /* per rank */
    uint32_t *group_of;       /* per op: 1 + its group; 0: none */
    uint32_t *member; /* per op, on the rank that sends and on that which receives: 1 + the one that joined before */
} gy_packer;

/* Has `op` ended when the copy begins? Not all of that is found, but what the copy itself waits for, and before that in
 * the same lanes. */
bool gy_packer_has_ended(const gy_packer *p, uint32_t op, uint32_t copy);
/* A copy between memories of GPUs joins a group, or begins one. False: no memory. */
bool gy_groups_look_for(gy_packer *p, uint32_t id, uint32_t from, uint32_t to);
/* Any other op that crosses: no group that began before it is joined by a rank of it that is not of that yet. */
void gy_groups_pass(gy_packer *p, uint32_t id);

#endif
