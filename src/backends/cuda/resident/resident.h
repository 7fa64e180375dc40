/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Starts that GPUs carry out without the host: each GPU has one kernel a start, whose workers go through the packets of
 * the lanes (kernels/resident/resident.h) and wait for each other by the counters of the schedule
 * (docs/design/counters.md).
 *
 * Workers carry out *stretches*: ops that follow each other in a lane, all of which they have code for. The other ops
 * of the lane are given to its stream as ever, which waits for counters and writes them, so nothing else orders a
 * start. Where the two follow each other in a lane, a counter of the lane's own keeps their order.
 *
 * Ops of NCCL *cut* a start into segments (cut.c), each of which has a kernel on each GPU that has ops in it. So do
 * waits between two GPUs that do not reach each other's memory, in which their counters would lie (detour.c).
 */
#ifndef GY_CUDA_RESIDENT_RESIDENT_H
#define GY_CUDA_RESIDENT_RESIDENT_H

#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/stream/stream.h"
#include "kernels/resident/resident.h"

/* ---- the table of counters by op (table.c) ---- */

typedef struct gy_resident_edge {
    uint32_t op, counter, value, distance; /* distance: of waits */
} gy_resident_edge;

/* Of op i: [first[i], first[i + 1]). */
typedef struct gy_resident_edges {
    gy_resident_edge *at;
    uint32_t *first;
} gy_resident_edges;

/* ---- state ---- */

typedef GY_VEC(gy_resident_packet) gy_resident_packets;

/* The packets of a lane in a segment: they begin there among those of its leader, and of its helpers. */
typedef struct gy_resident_part {
    uint32_t segment, leader, helper;
} gy_resident_part;

typedef struct gy_resident_lane {
    uint32_t resident, streamed; /* ops that workers carry out, and that its stream does */
    uint32_t workers, meet;      /* meet: index among those of the GPU */
    uint32_t widest;             /* blocks of its widest call */
    uint64_t shared;             /* blocks of all calls that its workers share */
    /* Of the turn that was built last. */
    gy_resident_packets leader, helper;
    GY_VEC(gy_resident_part) part; /* segments in which it has packets, in their order */
} gy_resident_lane;

/* The workers of a GPU's kernel in a segment: [first, first + workers) of the table of a program. */
typedef struct gy_resident_segment {
    uint32_t first, workers;
} gy_resident_segment;

/* Memory that programs of a turn are in. */
typedef struct gy_resident_turn {
    bool stale; /* addresses or scalars have changed, or the program was never made */
    CUdeviceptr at;
    char *host; /* page-locked: the same */
    uint64_t room;
    GY_VEC(gy_resident_segment) segment;
} gy_resident_turn;

/* The programs of all turns in one, of series whose starts take the turns one after the other. */
typedef struct gy_resident_ring {
    bool made; /* of the programs that there are */
    CUdeviceptr at;
    char *host; /* page-locked: the same */
    uint64_t room;
} gy_resident_ring;

/* The most that streams of a GPU do beside workers. */
typedef enum gy_streamed { GY_STREAMED_NOTHING, GY_STREAMED_COPIES, GY_STREAMED_KERNELS } gy_streamed;

typedef struct gy_resident_gpu {
    bool used; /* it has a lane with an op */
    gy_cuda_resident *code;
    gy_queue queue, aside;             /* of the kernels; of the host's copies while a kernel runs */
    CUevent end;                       /* of the last kernel */
    uint32_t counters, lanes, workers; /* lanes: that have workers */
    uint32_t entries;                  /* of the table of workers: one for each segment that a worker has packets in */
    gy_streamed streamed;
    CUdeviceptr block; /* counters, the words of series, a meet a lane, a word of progress a worker */
    uint64_t meets_at, progress_at, bytes;
    char *host; /* page-locked: progress as it was fetched last, counters as the host raises them, and as it saw them */
    gy_resident_turn *turn;
    gy_resident_ring ring;
} gy_resident_gpu;

/* Kernels of NCCL wait for each other and need room, so no worker is on their GPUs meanwhile. GY_CUT_HERE: a segment
 * ends ahead of the op, and the next one begins behind it; GY_CUT_JOINED: the op is a part of such a one. GY_CUT_AHEAD:
 * one ends ahead of the op, of whomever it is, and it belongs to the next one. */
typedef enum gy_resident_cut { GY_CUT_NOWHERE, GY_CUT_HERE, GY_CUT_JOINED, GY_CUT_AHEAD } gy_resident_cut;

/* A wait between lanes of two GPUs that do not reach each other: `to` for `from`, so many starts before. */
typedef struct gy_resident_detour {
    uint32_t from, to, from_lane, to_lane, distance;
} gy_resident_detour;

/* Ahead of op `at`, what comes next in stream `to` is put behind all that stream `from` has by then. From one start to
 * a later one, `at` is their distance, and `from` is GY_NONE: behind all of the earlier one. Streams: those of lanes,
 * then those of the resident kernel of each device. */
typedef struct gy_resident_passage {
    uint32_t at, from, to;
} gy_resident_passage;
typedef GY_VEC(gy_resident_passage) gy_resident_passages;

/* Two lanes that meet in an op of both. */
typedef struct gy_resident_lanes {
    uint32_t from, to;
} gy_resident_lanes;

/* Formulas and code of users that were compiled for workers (linked.c). */
typedef struct gy_resident_linked {
    bool any;
    uint32_t *number;     /* per kernel of the graph: of its first function; 0: workers do not have it */
    const char **refused; /* per kernel: why that is so; NULL: it is not refused by itself */
    uint32_t shared;      /* bytes of shared memory that they use */
    char why[400];        /* why workers have none */
} gy_resident_linked;

typedef struct gy_resident {
    const char *off; /* starts are replayed otherwise, for this reason; NULL: they are not */
    bool rests;      /* the next ones are, until it is turned to again (submit/ways.c) */
    gy_resident_lane *lane;
    gy_resident_gpu *gpu; /* per device of the machine */
    uint8_t *can, *has;   /* per op: workers have code for it; they carry it out */
    uint8_t *cut;         /* per op: gy_resident_cut */
    uint32_t segments;    /* one more than there are places where starts are cut */
    uint32_t cuts;        /* ops of NCCL there */
    GY_VEC(gy_resident_detour) detours;
    gy_resident_passages passages, credits; /* within a start, in the order of `at`; from start to start */
    uint32_t *left;                         /* the ops that they do not, which are left to streams, by position */
    uint32_t lefts;
    GY_VEC(gy_resident_lanes) pairs;
    /* Per counter, those of the schedule first, then two of each lane, then one of each pair: among those of its GPU;
     * signals in a start. */
    uint32_t *number, *signals_of;
    gy_resident_edges waits, signals;
    GY_VEC(uint64_t) far; /* parameters that packets have no room for, of the turn that was built last */
    gy_resident_linked linked;
    uint64_t epoch;    /* starts since counters were 0 */
    bool begun;        /* a start was given to the GPUs since then */
    uint32_t unfit_op; /* the first op that workers have no code for, and why; GY_NONE */
    const char *unfit_why;
    int64_t looked_ns;
    uint32_t seen_epoch; /* of the op that was found then */

    /* ---- series.c ---- */
    const gy_series *wanted;   /* while one is made: what the caller would have */
    gy_resident_series series; /* of the next launch, without addresses */
    const char *series_why;    /* why a launch is one start; NULL: it is a series, or none was wanted */
    bool in_series, counts;    /* series were wanted; the last launch began with epoch `first` */
    uint64_t first;
    uint32_t until, ask_op; /* the buffer that says if it was the last start, and the op that brings it; GY_NONE */
    bool ask_far;           /* there is one on a GPU that does not reach all others, which cannot be told */
    gy_resident_asked ask;
    uint64_t *told; /* page-locked: the last verdict */
    char text[1800], off_text[512];
} gy_resident;

/* True if starts are replayed by resident kernels. */
static inline bool gy_resident_on(const gy_cuda *h)
{
    return h->resident && !h->resident->off && !h->resident->rests;
}
/* Workers carry the op out. */
bool gy_resident_has(const gy_cuda *h, uint32_t op);
/* The stream of the lane carries ops out. */
bool gy_resident_streams(const gy_cuda *h, uint32_t lane);

/* ---- resident.c ---- */

/* With the counters of the job; what is in the way is no error, but a reason that replay text tells. */
gantry_status gy_resident_make(gy_cuda *h, gantry_error *err);
void gy_resident_free(gy_cuda *h);
void gy_resident_stale(gy_cuda *h, uint32_t turn); /* programs of the turn have old addresses or scalars */
void gy_resident_give_up(gy_cuda *h, const char *why);
/* `replay` of the run with what there is to say of resident kernels. */
const char *gy_resident_replay(gy_cuda *h, const char *replay);
CUdeviceptr gy_resident_counter(const gy_cuda *h, uint32_t counter);

/* ---- around.c ---- */

/* The reason why the process or a GPU is no place for kernels that wait for others; NULL: it is one. */
const char *gy_resident_around(const gy_cuda *h);

/* ---- linked.c ---- */

/* Sees which formulas and which code of users workers can have. */
gantry_status gy_resident_link_make(gy_cuda *h, gantry_error *err);
/* Compiles them for the GPU and links them to the code of the resident kernel: *image for the driver (gy_free). */
gantry_status gy_resident_link(gy_cuda *h, uint32_t device, char **image, gantry_error *err);
/* The source of what workers call: all kernels of the graph whose number is not 0, formulas in full. */
void gy_resident_print_linked(gy_text *to, const gantry_graph *graph, const uint32_t *number);
/* The texts ahead of the source of a user's kernel, and behind it. */
void gy_resident_print_around(gy_text *before, gy_text *after, const gy_kernel *kernel, uint32_t number);
struct gy_code;
struct gy_nvrtc;
/* Compiles it with these, to be linked. */
gantry_status gy_resident_compile_user(struct gy_code *to, const struct gy_nvrtc *nvrtc, const gantry_graph *graph,
                                       uint32_t kernel, uint32_t number, int capability, gantry_error *err);
/* Workers have none, and why. */
void gy_resident_link_none(gy_cuda *h, const char *why);
/* The dynamic shared memory of workers that call it: that of functions of the library, or the totals of a reduction's
 * threads, whichever is more, behind what names of CUDA are in formulas. */
size_t gy_resident_room(const gy_kernel *kernel);
/* Workers do not have this kernel, and why, a text of the run's arena; NULL: out of memory. */
gantry_status gy_resident_link_refuse(gy_cuda *h, uint32_t kernel, const char *why, gantry_error *err);

/* ---- table.c ---- */

gantry_status gy_resident_table_make(gy_cuda *h, gantry_error *err);
/* Fills it, once it is known which ops workers carry out. */
gantry_status gy_resident_table(gy_cuda *h, gantry_error *err);
uint32_t gy_resident_counters(const gy_cuda *h);
bool gy_resident_is_switch(const gy_cuda *h, uint32_t counter);
/* It is between two lanes of one GPU, all ops of which workers carry out. */
bool gy_resident_is_near(const gy_cuda *h, uint32_t counter);
/* The lane that writes the counter, and the one that awaits it. */
gy_resident_lanes gy_resident_lanes_of(const gy_cuda *h, uint32_t counter);
uint32_t gy_resident_counter_device(const gy_cuda *h, uint32_t counter); /* in whose memory it lies */
/* The pair of two lanes that have an op together, and the counter by which the one tells the other. */
uint32_t gy_resident_pair(const gy_cuda *h, uint32_t from, uint32_t to);
uint32_t gy_resident_pair_counter(const gy_cuda *h, uint32_t pair);

/* ---- detour.c ---- */

/* Two devices that wait for each other and whose GPUs do not reach each other's memory, and a remedy, a text of the
 * run's arena; NULL: there are none. */
const char *gy_resident_unreached(gy_cuda *h);
/* Finds what counters cannot carry. */
gantry_status gy_resident_find_detours(gy_cuda *h, gantry_error *err);
bool gy_resident_takes_detour(const gy_cuda *h, const gy_counter *counter); /* it is one of those */
bool gy_resident_awaits_detour(const gy_cuda *h, uint32_t op);              /* within a start */
/* Cuts starts where workers take part in detours, if these carry out `by_workers`, by op, and decides by which events
 * detours are carried. */
gantry_status gy_resident_cut_detours(gy_cuda *h, const uint8_t *by_workers, gantry_error *err);
/* The streams of this start come behind those of earlier ones as detours want it. */
gantry_status gy_resident_follow_starts(gy_submit *x);
/* The events of detours, and the kernels of segments, that come up to that op, ahead of it. */
gantry_status gy_resident_pass(gy_submit *x, uint32_t op);
/* Appends what there is to say of them. */
void gy_resident_tell_detours(gy_cuda *h, char *to, size_t size);

/* ---- cut.c ---- */

void gy_resident_find_cuts(gy_cuda *h);
/* A segment ends ahead of the op. */
bool gy_resident_ends_ahead(const gy_resident *r, uint32_t op);
/* Appends what there is to say of them; `replay` without workers. */
void gy_resident_tell_cuts(const gy_cuda *h, const char *replay, char *to, size_t size);
/* Where the next segment comes behind x->op: around its submission. The first orders it behind the kernels of its GPUs,
 * the second launches the kernels of the next segment behind it. */
gantry_status gy_resident_cut_begin(gy_submit *x);
gantry_status gy_resident_cut_end(gy_submit *x);
/* Leaves what is left of segments that are hardly worth a kernel to streams, where nobody knows what that costs. */
gantry_status gy_resident_leave_short(gy_cuda *h, gantry_error *err);

/* ---- program.c ---- */

/* Makes programs of the turn where they are stale, and copies them to the GPUs ahead of the kernels that come next. May
 * give up. */
gantry_status gy_resident_program(gy_cuda *h, uint32_t turn, gantry_error *err);
/* The table of workers, with which a program begins. */
uint64_t gy_resident_table_bytes(const gy_resident_gpu *g);

/* ---- ring.c ---- */

/* Lanes have as many workers, and these as many packets, in the programs of all turns, none of which is stale. */
bool gy_resident_turns_alike(const gy_cuda *h);
/* Then: copies the rings that are not made to the GPUs ahead of the kernels that come next. */
gantry_status gy_resident_ring_make(gy_cuda *h, gantry_error *err);
void gy_resident_ring_free(gy_cuda *h, uint32_t device); /* which is the current one */

/* ---- calls.c ---- */

typedef struct gy_resident_call {
    uint32_t function;
    unsigned grid[2], block[2];
    uint64_t word[GY_CUDA_RECORDED_WORDS];
    uint32_t words;
    bool far; /* its parameters are more than that, and lie in `far` of the state from that index on: its one word */
    bool together; /* threads of a block wait for each other */
    bool guarded;  /* it is made only where the flag is not 0 */
    gy_resident_asked flag;
    uint32_t lane, round; /* of the op's lanes, the one that makes it; of a collective */
} gy_resident_call;
typedef GY_VEC(gy_resident_call) gy_resident_calls;

/* True if the function can store its results in other GPUs as well. */
bool gy_resident_call_sends(const gy_resident_call *call);

/* How workers see if the number at an address of a GPU is 0. */
gy_resident_asked gy_resident_asked_of(CUdeviceptr at, gantry_dtype dtype);

/* Appends the calls that carry the op out in the turn. *why: they cannot be made by workers, and why, else NULL. */
gantry_status gy_resident_calls_of(gy_cuda *h, uint32_t op, uint32_t turn, gy_resident_calls *to, const char **why,
                                   gantry_error *err);

/* The number of a function by its name; 0: workers have none of that name. */
uint32_t gy_resident_function_of(const char *name);

/* ---- combine.c ---- */

/* The same of a collective: the calls of each GPU's share. */
gantry_status gy_resident_combine_calls(gy_cuda *h, uint32_t op, uint32_t turn, gy_resident_calls *to, const char **why,
                                        gantry_error *err);

struct gy_share;
uint32_t gy_resident_share_device(const gy_cuda *h, uint32_t op,
                                  const struct gy_share *share); /* that carries it out */

/* ---- sends.c ---- */

/* A copy that a launch makes as it stores, in place of a packet behind it. */
typedef struct gy_resident_sent {
    uint32_t launch; /* that makes this copy; GY_NONE: it is carried out as itself */
    uint32_t next;   /* the first copy that this launch makes, or the next one of the same launch; GY_NONE */
    gy_resident_send send;
} gy_resident_sent;

/* Of each op. The calls of op i are calls->at[first[i]] up to first[i + 1]. False: out of memory. */
bool gy_resident_find_sends(const gy_cuda *h, uint32_t turn, const gy_resident_calls *calls, const size_t *first,
                            gy_resident_sent *to);

/* ---- start.c ---- */

gantry_status gy_resident_launch(gy_submit *x);                 /* the kernels of segment x->segment */
gantry_status gy_resident_probe(gy_cuda *h, gantry_error *err); /* of none: the driver loads them, and has room */
/* For x->op, which streams carry out: each of its lanes awaits and writes the counters that are its own. */
gantry_status gy_resident_stream_await(gy_submit *x);
gantry_status gy_resident_stream_signal(gy_submit *x);
void gy_resident_begun(gy_cuda *h); /* all of a start was given to the GPUs */
/* CUDA_SUCCESS once all of the turn's start has ended, whoever carries it out. */
CUresult gy_resident_ask(const gy_cuda *h, const gy_cuda_turn *turn);

/* ---- series.c ---- */

enum { GY_RESIDENT_SERIES_WORDS = 2 }; /* of a GPU: verdict and halt, behind its counters */
extern const gy_resident_series gy_resident_alone;

/* The next start is to be so many, up to gy_resident_series_end. */
void gy_resident_series_want(gy_cuda *h, const gy_series *wanted);
/* The next start may be several, which take all turns; and it is. */
bool gy_resident_may_take_turns(const gy_cuda *h);
bool gy_resident_takes_turns(const gy_cuda *h);
/* Decides if it is, once its programs are made. `varies`: arguments are others in each start. */
gantry_status gy_resident_series_choose(gy_cuda *h, bool varies, gantry_error *err);
uint64_t gy_resident_series_end(gy_cuda *h); /* so many starts it was */
/* Finds the op that brings the buffer `until` to the host. */
void gy_resident_find_ask(gy_cuda *h, uint32_t turn);
/* The word of the GPU for verdicts; that of the host behind the last device. */
CUdeviceptr gy_resident_verdict(const gy_cuda *h, uint32_t device);
gy_resident_series gy_resident_series_on(const gy_cuda *h, uint32_t device); /* with the addresses for that GPU */
/* Appends what there is to say of series. */
void gy_resident_tell_series(const gy_cuda *h, char *to, size_t size);

/* ---- watch.c ---- */

/* Ends what was begun and cannot end by itself, then counters are 0 again. Does nothing if nothing was begun. `whole`:
 * all that was begun before the last start ends by itself, and is waited for first. */
void gy_resident_end(gy_cuda *h, bool whole);
/* Ends what can end while kernels of NCCL may hang: whoever aborts NCCL waits for the others. */
void gy_resident_let_go(gy_cuda *h);
gantry_status gy_resident_clear(gy_cuda *h, gantry_error *err); /* counters */
/* Sees how far workers are, if it has not just done so: true if any of them has moved. *op is then the first op that a
 * worker has begun and not ended, GY_NONE if there is none. */
bool gy_resident_look(gy_cuda *h, uint32_t *op);

/* ---- stuck.c ---- */

/* Appends which counter it is that the first of all that wait in the turn waits for, lanes and values; its op, if it is
 * another one than `op`. */
void gy_resident_tell(gy_cuda *h, uint32_t turn, uint32_t op, char *to, size_t size);

#endif
