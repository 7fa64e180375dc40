/* SPDX-License-Identifier: Apache-2.0 */
#include "run/team.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"
#include "run/at_work.h"

enum { SHARES = 4 }; /* ranges for each thread: one that comes late, or is slow, finds less left to do */

/* Work that is being cut. Helpers read it under the lock as they come. */
typedef struct work {
    const gantry_launch *launch;
    gantry_piece_fn piece;
    void *data;
    int64_t items, step;
    const gy_job *job; /* the op, for who has to tell of a crash */
    uint32_t op;
} work;

typedef struct team {
    atomic_bool taken; /* by the thread whose work is carried out */
    pthread_mutex_t lock;
    pthread_cond_t opened, emptied;
    pthread_t *helper;
    uint32_t helpers, begun; /* wanted; made, 0 until there is work */
    bool tried, open, quit;
    uint64_t works;  /* so far; a helper comes to each once */
    uint32_t inside; /* helpers that are at work */
    work work;
    _Atomic int64_t next; /* the first item that nobody has taken */
    int64_t failed_first; /* of the lowest range that failed */
    gantry_status failed;
} team;

struct gy_teams {
    uint32_t devices;
    void **of;         /* per device: its team; NULL: it has one thread */
    uint32_t *threads; /* per device; 0: it computes nothing */
};

/* ---- working ---- */

static void note_failure(team *t, int64_t first, gantry_status status)
{
    pthread_mutex_lock(&t->lock);
    if (!t->failed || first < t->failed_first) {
        t->failed = status;
        t->failed_first = first;
    }
    pthread_mutex_unlock(&t->lock);
}

static void take_ranges(team *t)
{
    const work *w = &t->work;
    for (int64_t first; (first = atomic_fetch_add(&t->next, w->step)) < w->items;) {
        int64_t last = w->items - first < w->step ? w->items : first + w->step;
        gantry_status status = w->piece(w->launch, w->data, first, last);
        if (status)
            note_failure(t, first, status);
    }
}

static void *help(void *data)
{
    team *t = data;
    pthread_mutex_lock(&t->lock);
    for (uint64_t seen = 0; !t->quit;) {
        if (!t->open || t->works == seen) {
            pthread_cond_wait(&t->opened, &t->lock);
            continue;
        }
        seen = t->works;
        t->inside++;
        pthread_mutex_unlock(&t->lock);
        gy_at_work_begin(t->work.job, t->work.op);
        take_ranges(t);
        gy_at_work_end();
        pthread_mutex_lock(&t->lock);
        if (--t->inside == 0)
            pthread_cond_signal(&t->emptied);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* Where there are none to be had, those that are there do all of it. */
static void begin_helpers(team *t)
{
    while (!t->tried && t->begun < t->helpers && gy_thread_create(&t->helper[t->begun], help, t) == 0)
        t->begun++;
    t->tried = true;
}

static void open_work(team *t, work w)
{
    int64_t others = (w.items - 1) / w.step; /* ranges beside the first */
    pthread_mutex_lock(&t->lock);
    t->work = w;
    t->failed = GANTRY_OK;
    atomic_store(&t->next, 0);
    t->open = true;
    t->works++;
    for (uint32_t i = 0; i < t->begun && i < others; i++)
        pthread_cond_signal(&t->opened);
    pthread_mutex_unlock(&t->lock);
}

/* A helper that has not come by now is not waited for. */
static gantry_status close_work(team *t)
{
    pthread_mutex_lock(&t->lock);
    t->open = false;
    while (t->inside)
        pthread_cond_wait(&t->emptied, &t->lock);
    gantry_status status = t->failed;
    pthread_mutex_unlock(&t->lock);
    return status;
}

/* Of whole grains, so that ranges begin where the caller says. */
static int64_t step_of(int64_t items, int64_t grain, uint32_t threads)
{
    int64_t grains = (items - 1) / grain + 1, shares = (int64_t)threads * SHARES;
    return ((grains - 1) / shares + 1) * grain;
}

gantry_status gy_team_cut(const gantry_launch *launch, int64_t items, int64_t grain, gantry_piece_fn piece, void *data)
{
    team *t = launch->team;
    grain = grain < 1 ? 1 : grain > items ? items : grain;
    if (atomic_exchange(&t->taken, true)) /* by another op of the device, or the one that this is a piece of */
        return piece(launch, data, 0, items);
    begin_helpers(t);
    work w = {
        .launch = launch, .piece = piece, .data = data, .items = items, .step = step_of(items, grain, t->begun + 1)
    };
    gy_at_work_now(&w.job, &w.op);
    open_work(t, w);
    take_ranges(t);
    gantry_status status = close_work(t);
    atomic_store(&t->taken, false);
    return status;
}

/* ---- how many ---- */

static bool computes(const gantry_schedule *s, const gantry_network *network, uint32_t device)
{
    if (s->machine->device[device].gpu || (network && gy_device_rank(s->machine, device) != network->rank))
        return false;
    for (size_t i = 0; i < s->ops.count; i++)
        if (gy_op_calls(&s->ops.at[i]) && gy_op_device(s, &s->ops.at[i], 0) == device)
            return true;
    return false;
}

/* A device whose memory is of a NUMA node shares the cores of that with those of the same. */
static uint32_t share_of_cores(const gantry_machine *m, const bool *is_used, uint32_t device)
{
    int node = m->memory[m->device[device].memory].numa;
    uint32_t cores = gy_thread_processors_of(node), among = 0;
    for (uint32_t d = 0; d < m->devices; d++)
        among += is_used[d] && m->memory[m->device[d].memory].numa == node;
    return cores > among ? cores / among : 1;
}

static team *make_team(uint32_t threads)
{
    team *t = gy_calloc(1, sizeof *t);
    pthread_t *helper = t ? gy_calloc(threads - 1, sizeof *helper) : NULL;
    if (!helper) {
        gy_free(t);
        return NULL;
    }
    t->helper = helper;
    t->helpers = threads - 1;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->opened, NULL);
    pthread_cond_init(&t->emptied, NULL);
    return t;
}

static void free_team(team *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    t->quit = true;
    pthread_cond_broadcast(&t->opened);
    pthread_mutex_unlock(&t->lock);
    for (uint32_t i = 0; i < t->begun; i++)
        pthread_join(t->helper[i], NULL);
    pthread_cond_destroy(&t->opened);
    pthread_cond_destroy(&t->emptied);
    pthread_mutex_destroy(&t->lock);
    gy_free(t->helper);
    gy_free(t);
}

static bool make_all(gy_teams *teams, const gantry_schedule *s, const bool *is_used, int32_t asked)
{
    const gantry_machine *m = s->machine;
    for (uint32_t d = 0; d < m->devices; d++) {
        if (!is_used[d])
            continue;
        uint32_t threads = asked                  ? (uint32_t)asked
                           : m->device[d].threads ? m->device[d].threads
                                                  : share_of_cores(m, is_used, d);
        teams->threads[d] = threads;
        if (threads > 1 && !(teams->of[d] = make_team(threads)))
            return false;
    }
    return true;
}

gantry_status gy_teams_make(gy_teams **teams, const gantry_schedule *s, const gantry_network *network, int32_t asked,
                            gantry_error *err)
{
    uint32_t devices = s->machine->devices;
    gy_teams *made = gy_calloc(1, sizeof *made);
    bool *is_used = gy_calloc(devices, sizeof *is_used);
    if (made) {
        made->devices = devices;
        made->of = gy_calloc(devices, sizeof *made->of);
        made->threads = gy_calloc(devices, sizeof *made->threads);
    }
    bool room = made && is_used && made->of && made->threads;
    for (uint32_t d = 0; room && d < devices; d++)
        is_used[d] = computes(s, network, d);
    room = room && make_all(made, s, is_used, asked);
    gy_free(is_used);
    if (!room) {
        gy_teams_free(made);
        return gy_fail_nomem(err);
    }
    *teams = made;
    return GANTRY_OK;
}

void gy_teams_free(gy_teams *teams)
{
    if (!teams)
        return;
    for (uint32_t d = 0; teams->of && d < teams->devices; d++)
        free_team(teams->of[d]);
    gy_free(teams->of);
    gy_free(teams->threads);
    gy_free(teams);
}

void **gy_teams_of(const gy_teams *teams)
{
    return teams ? teams->of : NULL;
}

uint32_t gy_teams_threads(const gy_teams *teams, uint32_t device)
{
    return teams ? teams->threads[device] : 0;
}
