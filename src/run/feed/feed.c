/* SPDX-License-Identifier: Apache-2.0 */
#include "run/run.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"
#include "run/edge.h"
#include "run/feed/ahead.h"
#include "run/feed/files.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LOOK_NS     INT64_C(50000000)
#define AHEAD_BYTES UINT64_C(33554432)
enum { MORE = 2, MOST = 8 };

struct gy_feed {
    const gy_buffer *buffer;
    uint32_t id;
    gantry_feed_fn fill;  /* the program's; NULL: `files` */
    void *user;           /* of `fill` */
    gy_feed_files *files; /* the feed's */
    uint32_t parts;       /* of each array, that threads read at once */
    gy_ahead *ahead;      /* NULL: the back end executes nothing */
    uint64_t since;       /* starts that there were before it */
    uint64_t first;       /* number of the array that the start behind those has */
    bool lands;           /* arrays of a constant come beside the start before theirs */
    uint64_t landed;      /* those with lower numbers have come, or are under way */
    char why[200];        /* they do not land */
};

/* A program may say nothing but a status. */
static gantry_status make(void *of, uint64_t number, uint32_t part, void *to, gantry_error *err)
{
    const gy_feed *f = of;
    if (!f->fill)
        return gy_feed_files_make(f->files, number, part, f->parts, to, err);
    gantry_error said = { 0 };
    gantry_status status = f->fill(f->user, number, to, f->buffer->bytes, &said);
    if (!status)
        return GANTRY_OK;
    return gy_fail(err, status, NULL, "array %" PRIu64 " of buffer \"%s\" could not be made: %s", number,
                   f->buffer->name, *said.text ? said.text : gantry_status_text(status));
}

/* ---- landing ---- */

static bool persists(const gy_feed *f)
{
    return f->buffer->cls == GANTRY_CONST;
}

/* Bytes that landings of the feed need in a memory of devices, one for each instance there. */
static uint64_t bytes_in(const gantry_run *run, const gy_feed *f, uint32_t memory)
{
    const gantry_schedule *s = run->schedule;
    uint64_t bytes = 0;
    for (size_t i = 0; i < s->instances.count; i++) {
        const gy_instance *in = &s->instances.at[i];
        bool mine = in->role == GY_ROLE_PERSIST && in->value == f->id && in->memory == memory && memory != 0;
        bytes += mine ? (uint64_t)gy_buffer_span(f->buffer, in->first, in->last) : 0;
    }
    return bytes;
}

static uint64_t landings_in(const gantry_run *run, uint32_t memory)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < run->feeds.count; i++)
        bytes += run->feeds.at[i]->lands ? bytes_in(run, run->feeds.at[i], memory) : 0;
    return bytes;
}

/* Has each memory room for two of what the feed brings? */
static bool has_room(const gantry_run *run, gy_feed *f)
{
    const gantry_machine *m = run->schedule->machine;
    for (uint32_t i = 1; i < m->memories && i < run->schedule->slab.count; i++) {
        uint64_t more = bytes_in(run, f, i), used = run->schedule->slab.at[i] + landings_in(run, i);
        uint64_t room = m->memory[i].capacity - m->memory[i].reserved;
        char wants[32], has[32];
        if (!more || (used <= room && more <= room - used))
            continue;
        snprintf(f->why, sizeof f->why, "a second array of %s takes %s in memory \"%.60s\", where %s are left",
                 f->buffer->name, gy_bytes_text(wants, sizeof wants, more), m->memory[i].id,
                 gy_bytes_text(has, sizeof has, used < room ? room - used : 0));
        return false;
    }
    return true;
}

static bool can_land(const gantry_run *run, gy_feed *f)
{
    const char *why = run->schedule->phases.count ? "the graph runs in phases"
                      : !run->backend->land       ? "the back end computes where arrays are put"
                      : run->job.turns > 1        ? "starts overlap"
                      : f->buffer->tile_offset    ? "the buffer is kept as tiles"
                                                  : NULL;
    if (why)
        snprintf(f->why, sizeof f->why, "%s", why);
    return !why && has_room(run, f);
}

/* The next array comes to all instances of the feed. What cannot be brought this way is put from now on. */
static void land(gantry_run *run, gy_feed *f, const char *array)
{
    const gantry_schedule *s = run->schedule;
    gantry_status status = GANTRY_OK;
    gantry_error why = { 0 };
    for (uint32_t i = 0; i < s->instances.count && !status; i++) {
        const gy_instance *in = &s->instances.at[i];
        if (in->role == GY_ROLE_PERSIST && in->value == f->id)
            status = run->backend->land(run->state, i, array + gy_buffer_offset(f->buffer, in->first), &why);
    }
    f->landed += !status;
    f->lands = !status;
    if (status)
        snprintf(f->why, sizeof f->why, "%.190s", why.text);
}

void gy_run_feeds_land(gantry_run *run)
{
    for (size_t i = 0; i < run->feeds.count; i++) {
        gy_feed *f = run->feeds.at[i];
        const void *array;
        if (f->lands && f->landed == gy_ahead_taken(f->ahead) && gy_ahead_ready(f->ahead) &&
            !gy_ahead_next(f->ahead, &array, NULL))
            land(run, f, array);
    }
}

bool gy_run_feeds_put(const gantry_run *run)
{
    bool some = false;
    for (size_t i = 0; i < run->feeds.count; i++)
        some |= persists(run->feeds.at[i]) && run->backend->executes;
    return some;
}

gantry_status gy_run_feeds_place(gantry_run *run, gantry_error *err)
{
    for (size_t i = 0; i < run->feeds.count; i++) {
        gy_feed *f = run->feeds.at[i];
        gy_binding *binding = &run->binding[f->id];
        const void *array;
        if (!persists(f))
            continue;
        GY_TRY(gy_ahead_next(f->ahead, &array, err));
        if (f->lands && f->landed == gy_ahead_taken(f->ahead))
            land(run, f, array);
        binding->placed = f->landed > gy_ahead_taken(f->ahead);
        binding->array = binding->placed ? NULL : array;
        run->unplaced |= !binding->placed;
    }
    return GANTRY_OK;
}

uint64_t gy_run_feeds_landings(const gantry_run *run, const char **why)
{
    uint64_t bytes = 0;
    *why = NULL;
    for (size_t i = 0; i < run->feeds.count; i++)
        if (persists(run->feeds.at[i]) && run->feeds.at[i]->ahead && !run->feeds.at[i]->lands)
            *why = run->feeds.at[i]->why;
    for (uint32_t i = 1; i < run->schedule->machine->memories; i++)
        bytes += landings_in(run, i);
    return bytes;
}

/* True: starts read places of the ring. False: copies, so that a place is free again once the start is made. */
static bool reads_places(const gantry_run *run, const gy_feed *f)
{
    return persists(f) || (!run->backend->steady && !f->buffer->tile_offset);
}

/* Arrays beyond those that starts have: one that is ready and one that is being made, and more of files where they are
 * small, so that one that comes late is made up for. */
static uint32_t more_places(const gy_feed *f)
{
    uint64_t fit = f->buffer->bytes ? AHEAD_BYTES / f->buffer->bytes : MOST;
    return f->fill || fit < MORE ? MORE : fit < MOST ? (uint32_t)fit : MOST;
}

/* Half of the processors, which have more to do, and two where there are few, since one may wait for a disk. What a
 * program makes is asked for by one thread. */
static gy_ahead_work share_work(gy_feed *f)
{
    uint32_t most = gy_thread_processors() / 2, threads = 1;
    most = most < 2 ? 2 : most < GY_AHEAD_THREADS ? most : GY_AHEAD_THREADS;
    f->parts = 1;
    if (!f->fill)
        gy_feed_files_share(f->files, most, &f->parts, &threads);
    return (gy_ahead_work){ .make = make, .user = f, .parts = f->parts, .threads = threads };
}

static gantry_status begin(gantry_run *run, gy_feed *f, gantry_error *err)
{
    uint32_t held = reads_places(run, f) ? run->job.turns : 0, places = held + more_places(f);
    const gy_ahead_memory pinned = { run->backend->pinned, run->backend->unpin, run->state };
    gantry_error no_room = { 0 };
    f->since = run->started;
    f->landed = f->first;
    if (!run->backend->executes)
        return GANTRY_OK;
    const gy_ahead_work work = share_work(f);
    f->lands = persists(f) && can_land(run, f);
    if (f->lands && !gy_ahead_start(&f->ahead, &pinned, places, f->buffer->bytes, f->first, &work, &no_room))
        return GANTRY_OK;
    if (f->lands)
        snprintf(f->why, sizeof f->why, "%.190s", no_room.text);
    f->lands = false;
    return gy_ahead_start(&f->ahead, NULL, places, f->buffer->bytes, f->first, &work, err);
}

static void end(gy_feed *f)
{
    if (f->ahead)
        gy_ahead_stop(f->ahead);
    gy_ahead_free(f->ahead);
    f->ahead = NULL;
}

static void free_feed(gy_feed *f)
{
    end(f);
    gy_feed_files_free(f->files);
    gy_free(f);
}

/* ---- starts ---- */

void gy_run_feeds_wait(gantry_run *run)
{
    int64_t began = run->feeds.count ? gy_now_ns() : 0;
    for (size_t i = 0; i < run->feeds.count; i++)
        while (!gy_job_canceled(&run->job) && !gy_ahead_wait(run->feeds.at[i]->ahead, LOOK_NS))
            gy_run_look(run);
    run->fed_wait_ns += run->feeds.count ? gy_now_ns() - began : 0;
}

static gantry_status copy_into_turn(void **memory, const void *array, const gy_buffer *b, gantry_error *err)
{
    if (!*memory && !(*memory = gy_alloc_array(b->bytes)))
        return gy_fail_nomem(err);
    if (b->tile_offset)
        gy_tiles_pack(*memory, array, b);
    else
        memcpy(*memory, array, b->bytes);
    return GANTRY_OK;
}

gantry_status gy_run_feeds_bring(gantry_run *run, uint32_t turn, gantry_error *err)
{
    for (size_t i = 0; i < run->feeds.count; i++) {
        const gy_feed *f = run->feeds.at[i];
        const void *array, **input = &run->input[gy_job_index(&run->job, turn, f->id)];
        void **memory = &gy_run_turn(run, turn, f->id)->packed;
        GY_TRY(gy_ahead_next(f->ahead, &array, err));
        if (!run->binding[f->id].used || persists(f))
            continue;
        if (!reads_places(run, f)) {
            GY_TRY(copy_into_turn(memory, array, f->buffer, err));
            array = *memory;
        }
        if (*input != array) {
            *input = array;
            run->changed |= run->job.turns == 1;
        }
    }
    return GANTRY_OK;
}

void gy_run_feeds_take(gantry_run *run)
{
    for (size_t i = 0; i < run->feeds.count; i++)
        if (run->feeds.at[i]->ahead)
            gy_ahead_take(run->feeds.at[i]->ahead);
    gy_run_feeds_return(run);
}

/* Each start since the feed began has one array. */
void gy_run_feeds_return(gantry_run *run)
{
    for (size_t i = 0; i < run->feeds.count; i++) {
        const gy_feed *f = run->feeds.at[i];
        uint64_t ended = run->finished > f->since ? run->finished - f->since : 0;
        if (f->ahead)
            gy_ahead_give_back(f->ahead, reads_places(run, f) ? f->first + ended : gy_ahead_taken(f->ahead));
    }
}

/* ---- beginning and ending ---- */

void gy_run_feed_end(gantry_run *run, uint32_t buffer)
{
    for (size_t i = 0; i < run->feeds.count; i++) {
        if (run->feeds.at[i]->id != buffer)
            continue;
        free_feed(run->feeds.at[i]);
        run->feeds.at[i] = *gy_vec_last(&run->feeds);
        run->feeds.count--;
        break;
    }
    run->binding[buffer].fed = false;
}

gantry_status gy_run_feeds_go_on(gantry_run *run, uint64_t first, gantry_error *err)
{
    for (size_t i = 0; i < run->feeds.count; i++) {
        end(run->feeds.at[i]);
        run->feeds.at[i]->first = first;
        GY_TRY(begin(run, run->feeds.at[i], err));
    }
    return GANTRY_OK;
}

void gy_run_feeds_stop(gantry_run *run)
{
    for (size_t i = 0; i < run->feeds.count; i++)
        if (run->feeds.at[i]->ahead)
            gy_ahead_stop(run->feeds.at[i]->ahead);
}

void gy_run_feeds_free(gantry_run *run)
{
    for (size_t i = 0; i < run->feeds.count; i++)
        free_feed(run->feeds.at[i]);
    gy_vec_free(&run->feeds);
}

static gantry_status check_feed(gantry_run *run, const gy_buffer *b, const char *call, gantry_error *err)
{
    GY_TRY(gy_run_need_idle(run, call, err));
    if (b->cls == GANTRY_CONST && run->job.network) {
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                       "buffer \"%s\" is a constant, and each start is to read another array: that goes with one "
                       "process; make it an input",
                       b->name);
    }
    if (b->cls != GANTRY_INPUT && b->cls != GANTRY_CONST) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "buffer \"%s\" is %s, and each start is to read another array: only inputs and constants take "
                       "what a start does not make; change its class",
                       b->name, b->cls == GANTRY_STATE ? "a state" : "temporary");
    }
    if (b->external) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "buffer \"%s\" is external, kept in \"%s\" by the program, so it cannot be fed; bind it with "
                       "gantry_run_bind between starts",
                       b->name, b->external);
    }
    return GANTRY_OK;
}

/* Takes over `f`, also when it fails; then the buffer is bound or fed as it was. */
static gantry_status add(gantry_run *run, gy_feed *f, gantry_error *err)
{
    gantry_status status = gy_vec_reserve(&run->feeds, run->feeds.count + 1) ? GANTRY_OK : gy_fail_nomem(err);
    status = status ? status : begin(run, f, err);
    status = status ? status : gy_run_set_array(run, f->id, NULL, NULL, err); /* ends a feed that it has */
    if (status) {
        free_feed(f);
        return status;
    }
    run->feeds.at[run->feeds.count++] = f;
    run->binding[f->id].fed = true;
    return GANTRY_OK;
}

static gantry_status add_new(gantry_run *run, const gy_feed *feed, gantry_error *err)
{
    gy_feed *f = gy_calloc(1, sizeof *f);
    if (!f) {
        gy_feed_files_free(feed->files);
        return gy_fail_nomem(err);
    }
    *f = *feed;
    return add(run, f, err);
}

gantry_status gy_run_feeds_hand_over(gantry_run *run, gantry_run *from, gantry_error *err)
{
    while (from->feeds.count) {
        gy_feed *f = *gy_vec_last(&from->feeds);
        from->feeds.count--;
        from->binding[f->id].fed = false;
        f->first = f->ahead ? gy_ahead_taken(f->ahead) : 0;
        end(f);
        f->buffer = &run->graph->buffers.at[f->id];
        if (f->files)
            gy_feed_files_move(f->files, f->buffer);
        GY_TRY(add(run, f, err));
    }
    return GANTRY_OK;
}

static gantry_status feed(gantry_run *run, gantry_buffer buffer, gantry_feed_fn fill, void *user, gantry_error *err)
{
    const gy_buffer *b;
    GY_TRY(gy_run_buffer(run, buffer, &b, err));
    GY_TRY(check_feed(run, b, "gantry_run_feed", err));
    return add_new(run, &(gy_feed){ .buffer = b, .id = buffer.id, .fill = fill, .user = user }, err);
}

/* A pointer to a function is none to an object, so GY_NEED is not for it. */
gantry_status gantry_run_feed(gantry_run *run, gantry_buffer buffer, gantry_feed_fn fill, void *user, gantry_error *err)
{
    if (!fill)
        return gy_need(NULL, "fill", __func__, err);
    GY_USE_RUN(run, feed(run, buffer, fill, user, err), err);
}

static gantry_status feed_files(gantry_run *run, gantry_buffer buffer, const char *pattern, gantry_feed order,
                                uint64_t *arrays, gantry_error *err)
{
    const gy_buffer *b;
    gy_feed_files *files;
    GY_TRY(gy_run_buffer(run, buffer, &b, err));
    GY_TRY(gy_run_check_contents(b, err));
    if (order < GANTRY_FEED_AUTO || order > GANTRY_FEED_ONCE)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "%d is no gantry_feed; give GANTRY_FEED_AUTO, _CYCLE or _ONCE",
                       (int)order);
    GY_TRY(gy_feed_files_open(&files, b, pattern, order, err));
    if (arrays)
        *arrays = files ? gy_feed_files_arrays(files) : 0;
    if (!files)
        return gy_run_bind_file(run, buffer, pattern, err);
    gantry_status status = check_feed(run, b, "gantry_run_feed_files", err);
    if (status) {
        gy_feed_files_free(files);
        return status;
    }
    return add_new(run, &(gy_feed){ .buffer = b, .id = buffer.id, .files = files }, err);
}

gantry_status gantry_run_feed_files(gantry_run *run, gantry_buffer buffer, const char *pattern, gantry_feed order,
                                    uint64_t *arrays, gantry_error *err)
{
    GY_NEED(pattern, err);
    GY_USE_RUN(run, feed_files(run, buffer, pattern, order, arrays, err), err);
}
