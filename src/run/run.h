/* SPDX-License-Identifier: Apache-2.0 */
/* A run object: what the files of this folder share. */
#ifndef GY_RUN_RUN_H
#define GY_RUN_RUN_H

#include "run/backend.h"
#include "run/keeper.h"
#include "run/team.h"
#include "run/trial.h"
#include "run/usercode/usercode.h"
#include "schedule/ranks/ranks.h"
#include <gantry/run.h>
#include <sys/types.h>

/* The binding of a buffer, for the starts to come. `own` and `packed` are the run's. */
typedef struct gy_binding {
    const void *array; /* C order, whole: the user's, or `own`; NULL: not bound */
    void *own;         /* read from a file */
    void *packed;      /* made from `init`, or from `array` of a tiled buffer that persists */
    void *result;      /* where the user wants an output, C order; NULL: in memory of the run */
    bool used;         /* an instance of the schedule begins with its contents */
    bool placed;       /* its PERSIST instances hold them */
    bool fetches;      /* an instance of space OUTPUT receives it */
    bool fed;          /* each start reads another array: feed/feed.c */
    bool of_first;     /* of several ranks rank 0 alone has what is in `array` */
} gy_binding;

/* The binding of a buffer as the starts of one turn have it: bindings may change while these are in flight. The last
 * three members are the run's, made when needed. */
typedef struct gy_turn {
    const void *array; /* that the start reads for an input; NULL: none of the user's */
    void *result;      /* of the user, that the start writes; NULL: none */
    void *packed;      /* `array` of a tiled buffer, or what it is fed with */
    void *fetched;     /* an output in packed form */
    void *unpacked;    /* the same in C order, of a tiled buffer without `result` */
} gy_turn;

typedef struct gy_feed gy_feed;

/* Starts first .. last failed with `error`; `told` once a caller has seen it. */
typedef struct gy_failure {
    uint64_t first, last;
    bool told;
    gantry_error error;
} gy_failure;

/* ranks/own.c: what of inputs and outputs this rank has itself, of a run with a network. */
typedef struct gy_run_apart {
    uint8_t *own;       /* see gy_part; NULL: there is no network */
    bool alike;         /* all ranks bind the same contents */
    gy_own_list left;   /* rows of outputs, where they are after a start */
    uint64_t collected; /* the start whose outputs rank 0 has whole */
} gy_run_apart;

struct gantry_run {
    pid_t process; /* that made it: threads and GPUs are not there in a child of it */
    bool in_use;   /* a function of the API is at work on it; atomic */
    gantry_schedule *schedule;
    gantry_graph *graph; /* the schedule's */
    const gy_backend *backend;
    gy_module module;  /* that the back end is in, if any */
    gy_backend phased; /* the table that `backend` points to where the schedule has phases (phases.h) */
    void *state;       /* the back end's */
    gy_job job;
    gy_callee *function;
    gy_constant *scalar;
    const void **input;
    uint32_t *bound; /* per buffer: how often it was bound */
    void **output;
    gy_binding *binding;     /* per buffer */
    gy_turn *turn;           /* per turn and buffer */
    uint64_t *turn_version;  /* per turn: of the bindings that it has */
    uint64_t version;        /* of the bindings; counts changes */
    GY_VEC(void *) retired;  /* memory that starts in flight may still read; freed when none is */
    GY_VEC(gy_feed *) feeds; /* of inputs that each start finds filled anew: feed/feed.c */
    int64_t fed_wait_ns;     /* that starts have waited for these */
    gy_teams *teams;         /* NULL: nothing is computed by the CPU, or by one thread each */
    gy_user_code code;
    gy_formulas formulas;
    bool unplaced;              /* contents of states or constants have to be set up before the next start */
    bool changed;               /* pointers or scalars changed: `rebind` of the back end must be called */
    bool repack;                /* tiled inputs are packed anew at every start */
    bool edge;                  /* outputs need work after a start */
    bool results;               /* an output is bound to memory of the user */
    uint64_t started, finished; /* numbers of starts */
    uint64_t completed;         /* starts that ended well */
    uint64_t waited;            /* the start that the last gantry_run_wait was for */
    gy_failure failure;
    double last_us;
    gy_keeper keeper;
    gy_run_apart apart;
    gy_lead_trial trial;
    struct gy_samples *samples; /* times of starts, for a calibration: samples.h; NULL: none */

    atomic_bool canceled;            /* set by any thread, or by a signal handler */
    gantry_run_progress_fn progress; /* of the options; NULL: none */
    void *user;
    int64_t looked_ns; /* when it was called last */
};

/* use.c: every function of the API that takes a run begins and ends with these. E_INVALID for NULL, in a child process,
 * and while another thread is in one: `function` is its name. `leave` returns `status`. */
gantry_status gy_run_enter(const gantry_run *run, const char *function, gantry_error *err);
gantry_status gy_run_leave(const gantry_run *run, gantry_status status);
/* The function does its work between the two; `run` is its parameter. */
#define GY_USE_RUN(run, work, err)                                                                                     \
    do {                                                                                                               \
        GY_TRY(gy_run_enter((run), __func__, (err)));                                                                  \
        return gy_run_leave((run), (work));                                                                            \
    } while (0)

/* functions.c: fills run->function; refuses nodes without one. */
gantry_status gy_run_find_functions(gantry_run *run, bool allow_code, gantry_error *err);

/* bind.c: the buffer begins with a whole array in C order, which is the run's own or NULL is. */
gantry_status gy_run_set_array(gantry_run *run, uint32_t id, const void *array, void *own, gantry_error *err);
/* The same from a file, for all starts to come. */
gantry_status gy_run_bind_file(gantry_run *run, gantry_buffer buffer, const char *path, gantry_error *err);
/*
 * feed/feed.c: inputs that each start finds filled anew. What a start reads is a place of the ring of its feed
 * (feed/ahead.h), or a copy of it in the memory of its turn, where that is tiled or the back end wants addresses that
 * stay (`steady`).
 */
/* Waits until each feed has made its next array, or has failed, or the run is cancelled. */
void gy_run_feeds_wait(gantry_run *run);
/* The start to come, of that turn, reads the next arrays. Why there is none is returned. */
gantry_status gy_run_feeds_bring(gantry_run *run, uint32_t turn, gantry_error *err);
/*
 * Constants that are fed: their arrays are put anew for each start while none is in flight, or land, that is, come to
 * memory of devices beside the start before theirs (`land` of the back end), where there is memory for two.
 */
/* Brings next arrays that are made and that have not landed; beside a start, too. */
void gy_run_feeds_land(gantry_run *run);
/* Are there such constants? Then a start is made when none is in flight. */
bool gy_run_feeds_put(const gantry_run *run);
/* The start to come has the next arrays: they have landed, or are bound, and to be put. */
gantry_status gy_run_feeds_place(gantry_run *run, gantry_error *err);
/* Bytes of landings in memories of devices. *why: some constant is put, for that reason, which is the run's; NULL. */
uint64_t gy_run_feeds_landings(const gantry_run *run, const char **why);
/* That start was made: it has its arrays. */
void gy_run_feeds_take(gantry_run *run);
/* Starts have ended, and nothing of them is at work: their arrays may be made anew. */
void gy_run_feeds_return(gantry_run *run);
/* The buffer is bound to something else now, while idle. */
void gy_run_feed_end(gantry_run *run, uint32_t buffer);
/* Feeds of `from`, which is idle, go on in a run of the same graph that has not been started. */
gantry_status gy_run_feeds_hand_over(gantry_run *run, gantry_run *from, gantry_error *err);
/* The next start has that array. */
gantry_status gy_run_feeds_go_on(gantry_run *run, uint64_t first, gantry_error *err);
/* The threads are gone; their memory, which a hung start may read, is not. */
void gy_run_feeds_stop(gantry_run *run);
void gy_run_feeds_free(gantry_run *run);

/* inputs.c: what a buffer that persists begins with, packed. */
gantry_status gy_run_contents(gantry_run *run, uint32_t id, const void **packed, gantry_error *err);
/* Tells where the init is whose file could not be read, as `status` and `err` say, and what to do if it is not there.
 */
gantry_status gy_run_fail_init(const gantry_graph *graph, const gy_buffer *buffer, gantry_status status,
                               gantry_error *err);
/* E_INVALID: nothing is bound to the buffer, and a start finds what it begins with. */
gantry_status gy_run_fail_unbound(const gantry_graph *graph, const gy_buffer *buffer, gantry_error *err);

/* rebalance.c: what a state holds between two starts, packed; of rank 0. */
gantry_status gy_run_read_state(gantry_run *run, uint32_t id, char *packed, gantry_error *err);
/* phases_memory.c: *whole: every row of the value is in some instance that persists. False: out of memory. */
bool gy_run_persists_whole(const gantry_schedule *s, uint32_t value, int64_t rows, bool *whole);

/* inputs.c: contents of persistent instances, while no start is in flight; pointers of the inputs of a turn. */
gantry_status gy_run_put_states(gantry_run *run, gantry_error *err);
gantry_status gy_run_refresh_inputs(gantry_run *run, uint32_t turn, gantry_error *err);
/* Marks the buffers whose contents a start needs, and those that it fetches. */
gantry_status gy_run_mark_used(gantry_run *run, gantry_error *err);

/* outputs.c: memory for every buffer that is fetched in a turn: the user's where that has the right form, else the
 * run's. */
gantry_status gy_run_refresh_outputs(gantry_run *run, uint32_t turn, gantry_error *err);
/* After a start of the turn: from packed to C order. */
void gy_run_edge_outputs(gantry_run *run, uint32_t turn);
/* The turn has the user's arrays that are bound now. */
void gy_run_take_bindings(gantry_run *run, uint32_t turn);
/* Do starts of the two turns touch the same memory of the user, one of them writing? */
bool gy_run_turns_meet(const gantry_run *run, uint32_t a, uint32_t b);
/* Where a caller sees an output of the start that was waited for, in C order; NULL if the schedule does not fetch it.
 */
const void *gy_run_result(const gantry_run *run, uint32_t buffer);

/* ranks/own.c: all ranks call it, before the back end is opened; the job has a network, or nothing is done. */
gantry_status gy_run_ranks_make(gantry_run *run, const gantry_run_options *options, gantry_error *err);
void gy_run_ranks_free(gantry_run *run);
/* Has each rank what the buffer, which persists, is bound to, or begins with? */
bool gy_run_put_alike(gantry_run *run, uint32_t id);
/* The rows of an input that this process reads: all, but of several ranks. */
void gy_run_rows_wanted(const gantry_run *run, uint32_t id, int64_t *first, int64_t *last);
/* Rank 0 does not have the whole output of the start that was waited for. */
bool gy_run_is_apart(const gantry_run *run, uint32_t buffer);

/* start.c: waits for everything that was started. */
gantry_status gy_run_drain(gantry_run *run, gantry_error *err);
/* Tells the caller how far the run is, if that was long enough ago. `of`: the run. */
void gy_run_look(void *of);
/* E_INVALID while a start is in flight: `what` is the call, "gantry_run_bind". */
gantry_status gy_run_need_idle(gantry_run *run, const char *what, gantry_error *err);
/* E_INVALID: nothing can be bound to such a buffer. */
gantry_status gy_run_check_contents(const gy_buffer *b, gantry_error *err);

/* True if two ranges of bytes share any. */
static inline bool gy_overlap(const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return a && b && x < y + b_bytes && y < x + a_bytes;
}
static inline gy_turn *gy_run_turn(const gantry_run *run, uint32_t turn, uint32_t buffer)
{
    return &run->turn[gy_job_index(&run->job, turn, buffer)];
}

/* The buffer of an id; E_INVALID if there is none. */
gantry_status gy_run_buffer(const gantry_run *run, gantry_buffer id, const gy_buffer **buffer, gantry_error *err);

#endif
