/* SPDX-License-Identifier: Apache-2.0 */
/* The back end that starts phases, one after the other, on another back end. */
#include "run/phases.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"
#include "run/number.h"
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define LOOK_NS INT64_C(20000000)

/* One phase on the real back end. */
typedef struct stage {
    gy_job job;
    void *state;
    const void **input;
    void **output;
    uint32_t *bound;
    uint8_t *own; /* of the job */
    uint64_t version, started;
    bool changed;     /* pointers or scalars changed: `rebind` of the back end must be called */
    int64_t offset;   /* when its last start began */
    uint64_t ran_in;  /* the last whole start in which it ran */
    uint64_t carried; /* starts of the phase, where one of the back end may be several */
    double flag;      /* room for what `until` is: any dtype fits */
    gy_lead_trial trial;
    uint64_t piece; /* at most so many starts come next, as the trial says */
} stage;

typedef struct phased {
    const gy_job *job;
    const gy_backend *inner;
    gy_hand_overs over;
    stage *stage;
    size_t opened;
    uint64_t *room;              /* largest slab of each memory, then staging */
    _Atomic uint64_t iterations; /* what `progress` of a run tells: read by another thread */
    _Atomic double watched;
    int64_t began;
    uint64_t since;        /* iterations since the last checkpoint */
    gy_checkpoint resumed; /* what the next start goes on from; amid a start only, and then it is wanted once */

    bool threaded;
    pthread_t thread;
    pthread_mutex_t lock; /* for what follows */
    pthread_cond_t moved;
    uint64_t begun, ended;
    bool quit;
    gantry_status status; /* of start `ended` */
    gantry_error error;
    int64_t elapsed_ns;
} phased;

/* ---- one phase ---- */

/* A name that no phase before gives another meaning is what it is when a start begins. */
static bool is_moved(const phased *p, size_t i, uint32_t name)
{
    bool moved = false;
    for (size_t k = 0; k < i; k++) {
        const gy_phase_context *x = p->over.at[k].graph->phase;
        for (uint32_t n = 0; n < x->moves; n++)
            moved = moved || x->move[n].name == name;
    }
    return moved;
}

/* Has each rank what the name means in phase i, as it is an input or a constant of the graph? Else rank 0 has it. */
static bool is_own(const phased *p, size_t i, uint32_t name)
{
    return p->job->own && (p->job->own[name] & GY_OWN_INPUT) && !is_moved(p, i, name);
}

/* Contents for what persists, and pointers to inputs. */
static gantry_status bring(phased *p, size_t i, gantry_error *err)
{
    stage *st = &p->stage[i];
    const gy_hand_over *o = &p->over.at[i];
    const gy_phase_context *x = o->graph->phase;
    gantry_status status = GANTRY_OK;
    for (uint32_t b = 0; b < o->graph->buffers.count; b++) {
        const void *from = p->over.where[x->source[b]];
        if (o->graph->buffers.at[b].cls == GANTRY_INPUT && st->input[b] != from) {
            st->input[b] = from;
            st->changed = true;
        }
    }
    for (uint32_t k = 0; k < o->persists && !status; k++) {
        const gy_instance *in = &o->phase->schedule->instances.at[o->persist[k]];
        const char *from = p->over.where[x->source[in->value]];
        if (from && (!x->defined[in->value] || x->defineds[in->value] > 0)) {
            const gy_buffer *b = &o->graph->buffers.at[in->value];
            st->job.alike = is_own(p, i, x->source[in->value]);
            status = p->inner->put(st->state, o->persist[k], from + gy_buffer_offset(b, in->first), err);
            st->job.alike = false;
        }
    }
    if (!status && st->changed) {
        st->version++;
        status = p->inner->rebind(st->state, err);
        st->changed = status != GANTRY_OK;
    }
    return status;
}

/* Fetches the states that are kept; outputs are where they belong already. */
static gantry_status fetch(phased *p, size_t i, gantry_error *err)
{
    const gy_hand_over *o = &p->over.at[i];
    const gy_phase_context *x = o->graph->phase;
    gantry_status status = GANTRY_OK;
    for (uint32_t n = 0; n < o->lefts && o->phase->phase.starts > 1; n++) {
        const gy_left *left = &o->left[n];
        const void *from = p->over.where[x->source[left->buffer]];
        if (!left->whole && from)
            memcpy(left->at, from, o->graph->buffers.at[left->buffer].bytes);
    }
    for (uint32_t k = 0; k < o->persists && o->phase->phase.starts > 1 && !status; k++) {
        const gy_instance *in = &o->phase->schedule->instances.at[o->persist[k]];
        for (uint32_t n = 0; n < o->lefts && !status; n++) {
            if (o->left[n].buffer == in->value) {
                char *to = (char *)o->left[n].at + gy_buffer_offset(&o->graph->buffers.at[in->value], in->first);
                status = p->inner->get(p->stage[i].state, o->persist[k], to, err);
            }
        }
    }
    return status;
}

static gantry_status check_deadline(const phased *p, size_t i, int64_t *left, gantry_error *err)
{
    *left = p->job->deadline_ns;
    if (p->job->deadline_ns <= 0)
        return GANTRY_OK;
    *left -= gy_now_ns() - p->began;
    if (*left > 0)
        return GANTRY_OK;
    return gy_fail(err, GANTRY_E_TIMEOUT, NULL, "the deadline of %.3f ms passed before a start of phase %zu",
                   (double)p->job->deadline_ns / 1e6, i);
}

/* Starts of a phase until a checkpoint is due. */
static uint64_t until_due(const phased *p, const gy_phase *phase)
{
    const gantry_run *run = p->job->keeper;
    if (!run)
        return UINT64_MAX;
    uint64_t each = (uint64_t)phase->iterations, every = run->keeper.every;
    return every > p->since + each ? (every - p->since + each - 1) / each : 1;
}

/* The starts from number `start` on. */
static gy_series series_from(const phased *p, const gy_hand_over *o, int64_t start)
{
    const gy_phase *phase = &o->phase->phase;
    gy_series series = { .starts = (uint64_t)(phase->starts - start), .until = GY_NONE };
    uint64_t most = gy_series_most(o->phase->schedule), due = until_due(p, phase);
    most = most < due ? most : due;
    series.starts = series.starts < most ? series.starts : most;
    if (!gy_phase_looks(phase))
        return series;
    int64_t done = phase->first + start * phase->iterations;
    series.until = o->graph->phase->until;
    series.every = (uint64_t)(phase->every / phase->iterations);
    series.look = (uint64_t)((phase->every - done % phase->every) / phase->iterations);
    return series;
}

static gantry_status carry_out(phased *p, size_t i, int64_t start, uint64_t *done, gantry_error *err)
{
    stage *st = &p->stage[i];
    int64_t elapsed;
    gy_series series = series_from(p, &p->over.at[i], start);
    series.starts = st->piece < series.starts ? st->piece : series.starts;
    st->started++;
    if (p->inner->series && series.starts > 1)
        return p->inner->series(st->state, st->started, &series, done, &elapsed, err);
    gantry_status status = p->inner->begin(st->state, st->started, err);
    return status ? status : p->inner->finish(st->state, st->started, &elapsed, err);
}

/* Start number `start` of the phase, and as many behind it as the back end carries out together with it: *done. */
static gantry_status start_some(phased *p, size_t i, int64_t start, int64_t *done, gantry_error *err)
{
    stage *st = &p->stage[i];
    const gy_phase *phase = &p->over.at[i].phase->phase;
    uint64_t starts = 1;
    gantry_status status = check_deadline(p, i, &st->job.deadline_ns, err);
    if (!status && gy_job_canceled(p->job))
        status = gy_fail(err, GANTRY_E_CANCELED, NULL, "before its start %lld", (long long)start + 1);
    if (!status && phase->loop != GY_NONE)
        status = p->inner->advance(st->state, phase->first + start * phase->iterations, err);
    if (status)
        return status;
    st->offset = gy_now_ns() - p->began;
    st->ran_in = p->begun;
    status = carry_out(p, i, start, &starts, err);
    st->carried += starts;
    uint64_t iterations = !status && phase->loop != GY_NONE ? (uint64_t)phase->iterations * starts : 0;
    atomic_fetch_add(&p->iterations, iterations);
    p->since += iterations;
    *done = (int64_t)starts;
    return status;
}

/* *set: the loop ends. */
static gantry_status look_at_flag(phased *p, size_t i, bool *set, gantry_error *err)
{
    const gy_hand_over *o = &p->over.at[i];
    uint32_t until = o->graph->phase->until;
    if (p->job->network) /* outputs are on rank 0, and all go on alike */
        GY_TRY(p->inner->share(p->stage[i].state, p->stage[i].output[until],
                               gantry_dtype_size(o->graph->buffers.at[until].dtype), err));
    double flag = gy_element_load(p->stage[i].output[until], o->graph->buffers.at[until].dtype, 0);
    atomic_store_explicit(&p->watched, flag, memory_order_relaxed);
    *set = flag != 0;
    return GANTRY_OK;
}

/* Before start number `start` of the phase, if it is time. */
static gantry_status keep(phased *p, size_t i, int64_t start, gantry_error *err)
{
    const gantry_run *run = p->job->keeper;
    if (!run || run->keeper.forgot || p->since < run->keeper.every)
        return GANTRY_OK;
    const gy_moment moment = { .starts = run->keeper.starts + run->completed,
                               .inside = true,
                               .iterations = atomic_load(&p->iterations),
                               .phase = (uint32_t)i,
                               .shape = p->over.at[i].phase->phase,
                               .done = start };
    p->since = 0;
    return gy_hand_overs_keep(&p->over, p->stage[i].state, &moment, err);
}

/* The same with the condition behind them, and what the trial wants to know of them. *stops: the loop ends here. */
static gantry_status start_piece(phased *p, size_t i, int64_t start, int64_t *done, bool *stops, gantry_error *err)
{
    stage *st = &p->stage[i];
    const gy_phase *phase = &p->over.at[i].phase->phase;
    st->piece = gy_trial_next(&st->trial, (uint64_t)(phase->starts - start), !gy_phase_looks(phase));
    int64_t began = gy_now_ns();
    gantry_status status = start_some(p, i, start, done, err);
    *stops = false;
    if (!status && gy_phase_looks_after(phase, start + *done - 1))
        status = look_at_flag(p, i, stops, err);
    if (status)
        gy_trial_fail(&st->trial, err);
    else
        gy_trial_note(&st->trial, (uint64_t)*done, gy_now_ns() - began);
    return status;
}

/* From start number `first` on; *stops: the loop ends here. */
static gantry_status run_phase(phased *p, size_t i, int64_t first, bool *stops, gantry_error *err)
{
    const gy_phase *phase = &p->over.at[i].phase->phase;
    gantry_status status = bring(p, i, err);
    if (!status && first > 0)
        status = gy_hand_overs_put_next(&p->over, i, p->stage[i].state, &p->resumed, err);
    *stops = false;
    for (int64_t s = first, done = 1; s < phase->starts && !status && !*stops; s += done) {
        status = keep(p, i, s, err);
        status = status ? status : start_piece(p, i, s, &done, stops, err);
    }
    status = status ? status : fetch(p, i, err);
    if (!status)
        gy_hand_overs_move(&p->over, i);
    return status;
}

/* Says how far the loops came, behind what the phase says. */
static gantry_status fail_canceled(phased *p, size_t i, gantry_error *err)
{
    gantry_error inner = *err;
    return gy_fail(err, GANTRY_E_CANCELED, NULL, "in phase %zu after %llu iterations, %.160s", i,
                   (unsigned long long)atomic_load(&p->iterations), inner.text);
}

static gantry_status run_all(phased *p, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    uint32_t over = GY_NONE; /* the loop that has ended early */
    atomic_store(&p->iterations, 0);
    atomic_store(&p->watched, (double)NAN);
    p->began = gy_now_ns();
    gy_hand_overs_begin(&p->over);
    const gy_moment from = p->resumed.moment;
    if (from.inside) {
        gy_hand_overs_restore(&p->over, &p->resumed);
        atomic_store(&p->iterations, from.iterations);
    }
    for (size_t i = from.phase; i < p->over.count && !status; i++) {
        bool stops = false;
        uint32_t loop = p->over.at[i].phase->phase.loop;
        if (loop != GY_NONE && loop == over)
            continue;
        status = run_phase(p, i, i == from.phase ? from.done : 0, &stops, err);
        status = status == GANTRY_E_CANCELED ? fail_canceled(p, i, err) : status;
        over = stops ? loop : over;
    }
    if (!status) {
        gy_hand_overs_end(&p->over);
        p->elapsed_ns = gy_now_ns() - p->began;
    }
    gy_checkpoint_free(&p->resumed);
    return status;
}

/* ---- the thread ---- */

static void *drive(void *context)
{
    phased *p = context;
    pthread_mutex_lock(&p->lock);
    while (!p->quit) {
        if (p->ended == p->begun) {
            pthread_cond_wait(&p->moved, &p->lock);
            continue;
        }
        pthread_mutex_unlock(&p->lock);
        gantry_error error = { 0 };
        gantry_status status = run_all(p, &error);
        pthread_mutex_lock(&p->lock);
        p->status = status;
        p->error = error;
        p->ended = p->begun;
        pthread_cond_broadcast(&p->moved);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static gantry_status start_thread(phased *p, gantry_error *err)
{
    int code = gy_thread_create(&p->thread, drive, p);
    p->threaded = code == 0;
    return p->threaded
               ? GANTRY_OK
               : gy_fail(err, GANTRY_E_DEVICE, NULL, "cannot start the thread that starts phases (error %d)", code);
}

/* ---- opening ---- */

/* Arrays by the buffers of the phase's graph. A phase that is started once writes what it leaves to where that goes. */
static bool make_arrays(phased *p, size_t i)
{
    stage *st = &p->stage[i];
    const gy_hand_over *o = &p->over.at[i];
    size_t buffers = o->graph->buffers.count;
    st->input = gy_calloc(buffers, sizeof *st->input);
    st->output = gy_calloc(buffers, sizeof *st->output);
    st->bound = gy_calloc(buffers, sizeof *st->bound);
    st->own = gy_calloc(buffers + 1, 1);
    if (!st->input || !st->output || !st->bound || !st->own)
        return false;
    for (uint32_t n = 0; n < o->lefts && o->phase->phase.starts == 1; n++)
        st->output[o->left[n].buffer] = o->left[n].at;
    uint32_t until = o->graph->phase->until;
    if (until != GY_NONE && !st->output[until])
        st->output[until] = &st->flag;
    for (uint32_t b = 0; b < buffers; b++)
        st->own[b] = o->graph->buffers.at[b].cls == GANTRY_INPUT && is_own(p, i, o->graph->phase->source[b]);
    return true;
}

/* The run's job with the graph, schedule and arrays of the phase, in the memory of the first. */
static gy_job job_of(phased *p, size_t i)
{
    stage *st = &p->stage[i];
    gy_job job = *p->job;
    job.own = st->own;
    job.look = NULL;
    job.schedule = p->over.at[i].phase->schedule;
    job.graph = p->over.at[i].graph;
    job.turns = 1;
    job.input = st->input;
    job.output = st->output;
    job.version = &st->version;
    job.bound = st->bound;
    job.room = p->room;
    job.beside = i > 0 ? p->stage[0].state : NULL;
    job.whole = p->job;
    return job;
}

static gantry_status open_stage(phased *p, size_t i, gantry_error *err)
{
    stage *st = &p->stage[i];
    if (!make_arrays(p, i))
        return gy_fail_nomem(err);
    st->job = job_of(p, i);
    st->changed = true;
    GY_TRY(p->inner->open(&st->state, &st->job, err));
    p->opened++;
    gy_trial_make(&st->trial, p->inner, st->state, &st->job);
    return GANTRY_OK;
}

static bool make_room(phased *p)
{
    const gantry_schedule *s = p->job->schedule;
    p->room = gy_calloc(s->slab.count + 1, sizeof *p->room);
    for (size_t m = 0; p->room && m < s->slab.count; m++)
        p->room[m] = s->slab.at[m];
    if (p->room)
        p->room[s->slab.count] = s->staging;
    return p->room != NULL;
}

static bool phased_close(void *state)
{
    phased *p = state;
    bool closed = true;
    if (p->threaded) {
        pthread_mutex_lock(&p->lock);
        p->quit = true;
        pthread_cond_broadcast(&p->moved);
        pthread_mutex_unlock(&p->lock);
        pthread_join(p->thread, NULL);
        p->threaded = false;
    }
    while (closed && p->opened > 0) { /* the first has the memory: it goes last */
        closed = p->inner->close(p->stage[p->opened - 1].state);
        p->opened -= closed;
    }
    if (!closed)
        return false;
    for (size_t i = 0; p->stage && i < p->over.count; i++) {
        gy_free((void *)p->stage[i].input);
        gy_free((void *)p->stage[i].output);
        gy_free(p->stage[i].bound);
        gy_free(p->stage[i].own);
        gy_trial_free(&p->stage[i].trial);
    }
    gy_free(p->stage);
    gy_free(p->room);
    gy_checkpoint_free(&p->resumed);
    gy_hand_overs_free(&p->over);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->moved);
    gy_free(p);
    return true;
}

static void make_locks(phased *p)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->moved, &monotonic);
    pthread_condattr_destroy(&monotonic);
    atomic_init(&p->watched, (double)NAN);
}

static gantry_status phased_open(void **state, const gy_job *job, gantry_error *err)
{
    phased *p = gy_calloc(1, sizeof *p);
    if (!p)
        return gy_fail_nomem(err);
    p->job = job;
    p->inner = job->inner;
    make_locks(p);
    gantry_status status = gy_hand_overs_make(&p->over, job, err);
    if (!status) {
        p->stage = gy_calloc(p->over.count, sizeof *p->stage);
        status = p->stage && make_room(p) ? GANTRY_OK : gy_fail_nomem(err);
    }
    for (size_t i = 0; i < p->over.count && !status; i++)
        status = open_stage(p, i, err);
    if (!status && p->inner->executes)
        status = start_thread(p, err);
    if (status) {
        phased_close(p);
        return status;
    }
    *state = p;
    return GANTRY_OK;
}

/* ---- the table ---- */

static gantry_status phased_put(void *state, uint32_t buffer, const void *rows, gantry_error *err)
{
    (void)err;
    phased *p = state;
    uint64_t bytes = p->job->graph->buffers.at[buffer].bytes;
    if (p->over.own[buffer] && bytes)
        memcpy(p->over.own[buffer], rows, bytes);
    return GANTRY_OK;
}

static gantry_status phased_get(void *state, uint32_t buffer, void *rows, gantry_error *err)
{
    (void)err;
    phased *p = state;
    uint64_t bytes = p->job->graph->buffers.at[buffer].bytes;
    if (p->over.own[buffer] && bytes)
        memcpy(rows, p->over.own[buffer], bytes);
    return GANTRY_OK;
}

static gantry_status phased_rebind(void *state, gantry_error *err)
{
    (void)err;
    phased *p = state;
    for (size_t i = 0; i < p->over.count; i++)
        p->stage[i].changed = true;
    return GANTRY_OK;
}

static gantry_status phased_begin(void *state, uint64_t start, gantry_error *err)
{
    (void)err;
    phased *p = state;
    pthread_mutex_lock(&p->lock);
    p->begun = start;
    p->ended = p->threaded ? p->ended : start;
    pthread_cond_broadcast(&p->moved);
    pthread_mutex_unlock(&p->lock);
    return GANTRY_OK;
}

static uint64_t most_iterations(const phased *p)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < p->over.count; i++) {
        const gy_phase *phase = &p->over.at[i].phase->phase;
        sum += phase->loop == GY_NONE ? 0 : (uint64_t)gy_phase_turns(phase);
    }
    return sum;
}

/* The caller holds the lock. It is let go while `look` is called, which may take long; the thread that starts phases
 * never calls it. */
static void await_moved(phased *p)
{
    const gy_job *job = p->job;
    if (!job->look) {
        pthread_cond_wait(&p->moved, &p->lock);
        return;
    }
    int64_t at = gy_now_ns() + LOOK_NS;
    struct timespec until = { at / 1000000000, at % 1000000000 };
    pthread_cond_timedwait(&p->moved, &p->lock, &until);
    pthread_mutex_unlock(&p->lock);
    job->look(job->look_of);
    pthread_mutex_lock(&p->lock);
}

static gantry_status phased_finish(void *state, uint64_t start, int64_t *elapsed_ns, gantry_error *err)
{
    phased *p = state;
    pthread_mutex_lock(&p->lock);
    while (p->ended < start)
        await_moved(p);
    gantry_status status = p->status;
    if (status && err)
        *err = p->error;
    *elapsed_ns = p->threaded ? p->elapsed_ns : (p->job->schedule->makespan + 500) / 1000;
    if (!p->threaded)
        atomic_store(&p->iterations, most_iterations(p));
    pthread_mutex_unlock(&p->lock);
    return status;
}

static bool phased_idle(void *state)
{
    phased *p = state;
    pthread_mutex_lock(&p->lock);
    bool idle = p->ended == p->begun;
    pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < p->opened && idle; i++)
        idle = p->inner->idle(p->stage[i].state);
    return idle;
}

static const gy_op_time *phased_times(void *state)
{
    phased *p = state;
    return p->opened ? p->inner->times(p->stage[0].state) : NULL;
}

const gy_op_time *gy_phases_times(void *state, size_t i, int64_t *offset_ns)
{
    phased *p = state;
    *offset_ns = p->stage[i].offset;
    bool ran = !p->threaded || (p->stage[i].started > 0 && p->stage[i].ran_in == p->ended);
    return ran ? p->inner->times(p->stage[i].state) : NULL;
}

uint64_t gy_phases_iterations(void *state)
{
    return atomic_load(&((phased *)state)->iterations);
}

bool gy_phases_is_due(void *state)
{
    const phased *p = state;
    return p->job->keeper && p->since >= p->job->keeper->keeper.every;
}

void gy_phases_kept(void *state)
{
    ((phased *)state)->since = 0;
}

void gy_phases_resume(void *state, gy_checkpoint *from)
{
    phased *p = state;
    gy_checkpoint_free(&p->resumed);
    p->resumed = *from;
    *from = (gy_checkpoint){ 0 };
}

void gy_phases_progress(void *state, gantry_run_progress *to)
{
    phased *p = state;
    to->iterations = atomic_load(&p->iterations);
    to->most = most_iterations(p);
    to->watched = atomic_load(&p->watched);
}

/* The phase that was started most often; NULL: something runs that may change it, or there is none. */
static const stage *most_started(phased *p)
{
    const stage *most = p->stage;
    pthread_mutex_lock(&p->lock);
    bool idle = p->ended == p->begun;
    pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < p->opened && idle; i++)
        most = p->stage[i].carried > most->carried ? &p->stage[i] : most;
    return idle && p->opened ? most : NULL;
}

static const char *phased_replay(void *state)
{
    phased *p = state;
    const stage *most = most_started(p);
    return most && p->inner->replay_of ? p->inner->replay_of(most->state)
                                       : gy_backend_replay(p->inner, p->job->schedule);
}

void gy_phases_trial(void *state, gantry_run_info *to)
{
    const stage *most = most_started(state);
    if (most)
        gy_trial_tell(&most->trial, to);
}

gy_backend gy_phases_backend(const gy_backend *inner)
{
    return (gy_backend){ .name = inner->name,
                         .summary = inner->summary,
                         .replay = inner->replay,
                         .replay_of = phased_replay,
                         .executes = inner->executes,
                         .steady = true,
                         .gpu_kernels = inner->gpu_kernels,
                         .open = phased_open,
                         .close = phased_close,
                         .put = phased_put,
                         .get = phased_get,
                         .rebind = phased_rebind,
                         .begin = phased_begin,
                         .finish = phased_finish,
                         .idle = phased_idle,
                         .times = phased_times };
}
