/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A start that is captured is one CUDA graph over all GPUs, or one for each (docs/design/gpu-graphs.md): which of the
 * two a schedule is better off with, by what a row of the sync table from GPU to GPU costs in each, as was measured
 * (`edge` and `gate` of the machine).
 *
 * Both are the longest way through the schedule: ops in the order of their positions, each as long as it is predicted
 * to take, behind the one ahead of it in its lanes and behind what it waits for. In one graph a row between GPUs costs
 * an edge. By gates it costs a gate; besides, gates of a GPU come one behind the other, and behind what tells others of
 * its ops, as they are captured (stream/gates.h), which may hold lanes back that have nothing to do with each other;
 * and the host has to give out one graph more for each GPU beyond the first.
 */
#ifndef GY_SCHEDULE_GATES_GATES_H
#define GY_SCHEDULE_GATES_GATES_H

#include "schedule/schedule.h"

enum {
    GY_GATE_AHEAD = 512,     /* so many ops behind one that needs a gate are looked at for what goes into it, too */
    GY_GATE_MOST = 256,      /* what one gate waits for, at most */
    GY_GATE_COPY = 32 << 10, /* bytes that a kernel of one block copies and then tells of by itself, at most */
    GY_GATE_PAIRS = 8,       /* of what it reads and what it writes, at most */
    GY_GATE_WORDS_SET = 4,   /* that it sets, at most */
    /* One graph has to be predicted to take so many per cent longer. On two H200s graphs with nothing to gain took 0.98
     * to 1.09 of one graph's time, which is how much two measurements of the same differ. */
    GY_GATES_PAY = 10
};

/* Goes what `op` waits for of another GPU by a row from `from` into a gate that holds up the op at `now`, one of the
 * GPU of `op`? `end`: the end of the last op that this one waits for. It has to be submitted ahead, and is predicted to
 * hold up nothing. */
static inline bool gy_gate_takes(const gantry_schedule *s, uint32_t from, uint32_t now, gy_ticks end)
{
    return from < now && s->ops.at[from].end <= end;
}

/* Copies that one launch makes, and how many of them one other GPU alone waits for. */
typedef struct gy_gate_copies {
    uint64_t bytes;
    uint32_t pairs, told;
} gy_gate_copies;

/* Does their kernel set the words that other GPUs wait for by itself? */
static inline bool gy_gate_tells(const gy_gate_copies *c)
{
    return c->bytes <= GY_GATE_COPY && c->pairs <= GY_GATE_PAIRS && c->told > 0 && c->told <= GY_GATE_WORDS_SET;
}

/* Per op the one GPU of all others that waits for it by rows of its own start; GY_NONE: none does, or several do. */
void gy_gate_told(uint32_t *to, const gantry_schedule *s);
/* The cost of a row from the op to another GPU by a gate: a kernel that sets a word is left out where a copy does.
 * `to`: what gy_gate_told says of the op. Of copies that one launch carries, a capture asks for all at once, this for
 * each. */
gy_ticks gy_gate_cost(const gantry_schedule *s, uint32_t from, uint32_t to);

/* The GPU whose graph has the lanes of the device, by the lowest device that is it: that of CPUs is the first. */
uint32_t gy_gates_gpu(const gantry_machine *m, uint32_t device);
/* The cost of a start that is captured beyond that of one on a single GPU until all have begun: each further one its
 * part of the start, and, with a graph for each (`each`), a call. Of several processes each gives out its own: that
 * with most. */
gy_ticks gy_gates_given_out(const gantry_schedule *s, bool each);

/* Ops that wait for another GPU, those of each GPU in their order: only they are looked at for a gate of it. */
typedef struct gy_gate_waiters {
    uint32_t *op, *first; /* per op; per GPU, and one more: the first of its ops among `op` */
} gy_gate_waiters;

/* `gpu`: per op the one that waits for another, or GY_NONE. */
void gy_gate_waiters_fill(gy_gate_waiters *w, const uint32_t *gpu, size_t ops, uint32_t gpus);
/* Per op the predicted end of all that it waits for by rows of its own start: a gate ahead of it that ends by then
 * holds it up by nothing. */
void gy_gate_awaited(gy_ticks *end, const gantry_schedule *s);
/* The first that is looked at for a gate of the GPU ahead of the op, and the one behind the last. */
const uint32_t *gy_gate_waiters_from(const gy_gate_waiters *w, uint32_t gpu, uint32_t op);
const uint32_t *gy_gate_waiters_to(const gy_gate_waiters *w, uint32_t gpu, uint32_t op);

typedef struct gy_gate_times {
    gy_ticks one, each; /* the longest way as one graph, and as one for each GPU */
    uint32_t gpus;      /* that take part, of the process with most */
    uint32_t rows;      /* of the sync table that lead from GPU to GPU; 0: nothing to choose */
    gy_capture capture; /* as what the schedule was simulated, if it was */
} gy_gate_times;

/* True if both costs are known. */
bool gy_gates_known(const gantry_machine *m);
gantry_status gy_gates_predict(const gantry_schedule *s, gy_gate_times *times, gantry_error *err);
bool gy_gates_pay(const gy_gate_times *times);

/* True if starts may be captured. Those that overlap are, where a graph is asked for. */
bool gy_gates_captured_starts(const gantry_schedule *s);

/* Why starts of the schedule are left to one graph, as far as it tells; NULL: nothing is against graphs of GPUs.
 * Static.
 */
const char *gy_gates_obstacle(const gantry_schedule *s);

/* Will starts be captured as one graph for each GPU, as far as the schedule tells, by the times that its ops have? */
gantry_status gy_gates_chosen(const gantry_schedule *s, bool *each, gantry_error *err);

/* Adds "4.100 us on the longest way by gates, 6.300 us by edges of one graph, 12 rows from GPU to GPU". */
void gy_gates_tell(gy_text *to, const gy_gate_times *times);

#endif
