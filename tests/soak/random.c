/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random graphs of kernels, copies, fills and sums over integers, which wrap, so that results do not depend on an
 * order: on several devices, in both replay modes or in the one that is asked for, by two policies, against one device
 * of the CPU, bit for bit. Loops of some are phases, and some starts are several that are made as one.
 */
#include "soak.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFERS = 5, MOST_NODES = 24, LARGEST = 64 * 1024, STARTS = 3, MOST_PARTS = 5 };

static int64_t draw(uint64_t *state, int64_t below)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (int64_t)((*state * UINT64_C(0x2545F4914F6CDD1D) >> 33) % (uint64_t)below);
}

/* ---- a graph ---- */

typedef struct world {
    uint64_t seed, random;
    gantry_graph *g;
    gantry_dtype dtype;
    int64_t rows, width, parts, bytes;
    gantry_buffer buffer[BUFFERS], total;
    bool bound[BUFFERS], output[BUFFERS];
    int64_t unroll, repeats[STARTS];
    unsigned char input[BUFFERS][LARGEST];
    unsigned char want[STARTS][BUFFERS + 1][LARGEST];
} world;

static gantry_region some_part(world *w, int b)
{
    return draw(&w->random, 5) == 0 ? gantry_all(w->buffer[b]) : gantry_part(w->buffer[b], draw(&w->random, w->parts));
}

static int another(world *w, int than)
{
    return (than + 1 + (int)draw(&w->random, BUFFERS - 1)) % BUFFERS;
}

/* Parts with the same number have as many elements in all buffers. */
static gantry_region part_of(const world *w, int b, int64_t part)
{
    return part == w->parts ? gantry_all(w->buffer[b]) : gantry_part(w->buffer[b], part);
}

static void add_kernel(world *w, const char *kernel)
{
    bool three = strcmp(kernel, "add") == 0 || strcmp(kernel, "mul") == 0;
    int x = (int)draw(&w->random, BUFFERS), y = another(w, x), z = y;
    int64_t part = draw(&w->random, w->parts + 1);
    gantry_node n = gantry_graph_kernel(w->g, NULL, kernel);
    while (z == y)
        z = another(w, x);
    if (strcmp(kernel, "scale") == 0 || strcmp(kernel, "saxpy") == 0)
        gantry_node_scalar(w->g, n, "a", (double)(1 + draw(&w->random, 3)));
    gantry_node_arg(w->g, n, "x", part_of(w, x, part));
    gantry_node_arg(w->g, n, "y", part_of(w, y, part));
    if (three)
        gantry_node_arg(w->g, n, "z", part_of(w, z, part));
}

static void add_sum(world *w)
{
    gantry_node n = gantry_graph_kernel(w->g, NULL, "reduce_sum");
    gantry_node_arg(w->g, n, "x", some_part(w, (int)draw(&w->random, BUFFERS)));
    gantry_node_arg(w->g, n, "out", gantry_all(w->total));
}

static void add_copy(world *w)
{
    int from = (int)draw(&w->random, BUFFERS), to = another(w, from);
    int64_t length = 1 + draw(&w->random, w->rows), first = draw(&w->random, w->rows - length + 1),
            second = draw(&w->random, w->rows - length + 1);
    gantry_graph_copy(w->g, NULL, gantry_rows(w->buffer[from], first, first + length),
                      gantry_rows(w->buffer[to], second, second + length));
}

static void add_collective(world *w)
{
    gantry_region in[MOST_PARTS], out[MOST_PARTS];
    int from = (int)draw(&w->random, BUFFERS), to = another(w, from);
    if (w->parts < 2 || w->rows % w->parts)
        return;
    for (int i = 0; i < (int)w->parts; i++) {
        in[i] = gantry_part(w->buffer[from], i);
        out[i] = gantry_part(w->buffer[to], i);
    }
    gantry_graph_collective(w->g, NULL, GANTRY_ALL_REDUCE, GANTRY_SUM, (size_t)w->parts, in, (size_t)w->parts, out, 0);
}

static void add_node(world *w)
{
    static const char *const kernels[] = { "scale", "saxpy", "copy", "add", "mul", "saxpy", "scale" };
    int64_t what = draw(&w->random, 14);
    if (what < 7)
        add_kernel(w, kernels[what]);
    else if (what < 9)
        add_copy(w);
    else if (what < 11)
        add_sum(w);
    else if (what == 11)
        add_collective(w);
    else if (what == 12)
        gantry_graph_fill(w->g, NULL, some_part(w, (int)draw(&w->random, BUFFERS)), (double)draw(&w->random, 100));
    else
        gantry_graph_fill_iota(w->g, NULL, some_part(w, (int)draw(&w->random, BUFFERS)));
}

/* The carried pair of a loop: the second is written whole in every iteration. */
static void add_loop(world *w)
{
    int prev = (int)draw(&w->random, BUFFERS - 1);
    gantry_graph_repeat(w->g, 1 + draw(&w->random, 5));
    gantry_graph_carry(w->g, w->buffer[prev], w->buffer[prev + 1]);
    for (int64_t i = 0; i < w->parts; i++) {
        gantry_node n = gantry_graph_kernel(w->g, "step", "scale");
        gantry_node_scalar(w->g, n, "a", 3);
        gantry_node_arg(w->g, n, "x", gantry_part(w->buffer[prev], i));
        gantry_node_arg(w->g, n, "y", gantry_part(w->buffer[prev + 1], i));
    }
    gantry_graph_repeat_end(w->g);
}

static void add_buffers(world *w)
{
    char name[16];
    for (int b = 0; b < BUFFERS; b++) {
        snprintf(name, sizeof name, "b%d", b);
        w->buffer[b] = gantry_graph_buffer(w->g, name, w->dtype, 2, ((int64_t[]){ w->rows, w->width }));
        gantry_buffer_split(w->g, w->buffer[b], w->parts);
        gantry_buffer_init_iota(w->g, w->buffer[b]);
        w->bound[b] = draw(&w->random, 2);
        if (!w->bound[b])
            gantry_buffer_set_class(w->g, w->buffer[b], GANTRY_STATE);
        w->output[b] = b == 0 || draw(&w->random, 2);
        if (w->output[b])
            gantry_buffer_output(w->g, w->buffer[b]);
    }
    w->total = gantry_graph_buffer(w->g, "total", w->dtype, 1, (int64_t[]){ 1 });
    gantry_buffer_init_value(w->g, w->total, 0);
    gantry_buffer_output(w->g, w->total);
}

/* Few elements in most graphs, so that there are many of them; tens of thousands in some. */
static void make_world(world *w, uint64_t seed, uint64_t starts_at_end)
{
    static const gantry_dtype types[] = { GANTRY_I32, GANTRY_I64, GANTRY_U8 };
    w->seed = seed;
    w->random = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    w->dtype = types[draw(&w->random, 3)];
    w->parts = 1 + draw(&w->random, MOST_PARTS);
    w->rows = w->parts * (1 + draw(&w->random, draw(&w->random, 4) ? 6 : 120)) +
              (draw(&w->random, 2) ? draw(&w->random, 3) : 0);
    w->width = 1 + draw(&w->random, draw(&w->random, 4) ? 5 : LARGEST / 8 / w->rows);
    w->bytes = w->rows * w->width * (int64_t)gantry_dtype_size(w->dtype);
    w->g = gantry_graph_new("random");
    add_buffers(w);
    for (int64_t n = 2 + draw(&w->random, MOST_NODES - 2); n > 0; n--)
        add_node(w);
    if (draw(&w->random, 3) == 0)
        add_loop(w);
    uint64_t starts = seed * UINT64_C(0xD1342543DE82EF95) + 1; /* apart: a seed means one graph */
    for (int i = 0; i < STARTS; i++)
        w->repeats[i] = draw(&starts, 2) ? 1 : 2 + draw(&starts, 6);
    if (starts_at_end)
        w->repeats[STARTS - 1] = (int64_t)starts_at_end;
    w->unroll = draw(&starts, 2) ? 1 : 0;
    for (int b = 0; b < BUFFERS; b++)
        for (int64_t i = 0; i < w->bytes; i++)
            w->input[b][i] = (unsigned char)(i * 31 + b * 7 + (int64_t)seed);
}

/* ---- running it ---- */

static bool bind_all(world *w, gantry_run *run)
{
    gantry_error err = { 0 };
    for (int b = 0; b < BUFFERS; b++)
        if (w->bound[b] && told(gantry_run_bind(run, w->buffer[b], w->input[b], (uint64_t)w->bytes, &err), &err))
            return false;
    return true;
}

/* Keeps the output, or compares it; false after a message. */
static bool take_output(world *w, gantry_run *run, int b, int start, bool keep, bool *differs)
{
    gantry_error err = { 0 };
    const void *host;
    uint64_t bytes;
    unsigned char *want = w->want[start][b];
    if (told(gantry_run_output(run, b == BUFFERS ? w->total : w->buffer[b], &host, &bytes, &err), &err))
        return false;
    if (keep)
        memcpy(want, host, bytes);
    else if (memcmp(want, host, bytes) != 0)
        *differs = true;
    return true;
}

static bool run_starts(world *w, gantry_run *run, bool keep, bool *differs)
{
    gantry_error err = { 0 };
    uint64_t ticket;
    for (int start = 0; start < STARTS; start++) {
        if (w->repeats[start] > 1
                ? told(gantry_run_repeat(run, (uint64_t)w->repeats[start], &err), &err)
                : told(gantry_run_start(run, &ticket, &err), &err) || told(gantry_run_wait(run, ticket, &err), &err))
            return false;
        for (int b = 0; b <= BUFFERS; b++)
            if ((b == BUFFERS || w->output[b]) && !take_output(w, run, b, start, keep, differs))
                return false;
    }
    return true;
}

typedef struct way {
    const char *backend, *replay, *policy;
    gantry_machine *machine;
} way;

static bool go(world *w, const way *how, bool keep, bool *differs)
{
    gantry_error err = { 0 };
    gantry_schedule *s = NULL;
    gantry_run *run = NULL;
    gantry_schedule_options options = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_run_options run_options = GANTRY_RUN_OPTIONS_INIT;
    options.policy = how->policy;
    options.effort = 0; /* many graphs */
    options.replay = how->replay;
    options.unroll = w->unroll;
    run_options.backend = how->backend;
    bool fine = !told(gantry_schedule_new(&s, w->g, how->machine, &options, &err), &err) &&
                !told(gantry_run_new(&run, s, &run_options, &err), &err) && bind_all(w, run) &&
                run_starts(w, run, keep, differs);
    if (!fine) { /* ahead of what follows, which may wait for a GPU that hangs */
        printf("seed %" PRIu64 ": failed with replay %s, policy %s\n", w->seed, how->replay ? how->replay : "auto",
               how->policy ? how->policy : "auto");
        fflush(stdout);
    }
    gantry_run_free(run);
    gantry_schedule_free(s);
    return fine;
}

typedef struct tally {
    uint64_t graphs, runs, refused, wrong;
} tally;

static bool try_graph(world *w, uint64_t seed, uint64_t starts_at_end, const way *one, const way *ways, int count,
                      tally *t)
{
    gantry_error err = { 0 };
    bool fine = true;
    make_world(w, seed, starts_at_end);
    if (gantry_graph_check(w->g, &err) == GANTRY_OK) {
        bool differs = false;
        fine = go(w, one, true, &differs);
        for (int i = 0; i < count && fine; i++) {
            fine = go(w, &ways[i], false, &differs);
            t->runs++;
        }
        t->graphs++;
        t->wrong += differs || !fine;
        if (fine && differs)
            printf("seed %" PRIu64 ": results differ\n", seed);
    } else {
        t->refused++;
    }
    gantry_graph_free(w->g);
    return fine;
}

static int make_ways(const settings *s, way *ways)
{
    static const char *const replays[] = { "stream", "graph" }, *const policies[] = { NULL, "round-robin" };
    int count = 0;
    for (int devices = 1; devices <= s->devices; devices++) {
        gantry_machine *m = make_machine(s, devices);
        for (int k = 0; k < 4 && m; k++)
            ways[count++] = (way){ s->backend, s->replay ? s->replay : replays[k % 2], policies[k / 2], m };
    }
    return count;
}

int soak_random(const settings *s)
{
    static world w;
    static adder kept; /* contexts of GPUs stay while a run is open */
    way ways[4 * MOST_GPUS], one = { "host", NULL, NULL, NULL };
    settings cpu = { .backend = "host", .devices = 1 };
    tally t = { 0 };
    trend flat = { 0 };
    double begin = seconds_now(), part;
    one.machine = make_machine(&cpu, 1);
    int count = make_ways(s, ways);
    bool fine = one.machine && count == 4 * s->devices && adder_make(&kept, s, 8, s->devices);
    for (uint64_t seed = s->seed; fine && (part = part_done(seed - s->seed, begin, s)) < 1; seed++) {
        still_moving("random graphs");
        try_graph(&w, seed, s->starts, &one, ways, count, &t);
        look_at(&flat, part, s);
    }
    printf("random: %" PRIu64 " graphs from seed %" PRIu64 ", %" PRIu64
           " runs of %d starts on 1 to %d devices (%s), %" PRIu64 " refused by the check, %.1f s, %" PRIu64 " wrong\n",
           t.graphs, s->seed, t.runs, STARTS, s->devices, s->backend, t.refused, seconds_now() - begin, t.wrong);
    bool level = s->shared || is_flat(&flat, s);
    adder_free(&kept);
    for (int i = 0; i < count; i += 4)
        gantry_machine_free(ways[i].machine);
    gantry_machine_free(one.machine);
    return fine && level && !t.wrong && t.graphs > t.refused ? EXIT_SUCCESS : EXIT_WRONG;
}
