/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random graphs, scheduled for 1 to 8 devices and run, against an interpreter that executes the nodes in adding order
 * on plain arrays. All numbers are small whole ones, so that sums are the same in any order: results must be equal, bit
 * for bit. Every other case is repeated in checking mode.
 */
#include "build.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* tests/unit/cuda runs the same on GPUs. */
#ifdef RANDOM_ON_GPUS
#include "random_on_gpus.h"
#else
#define RANDOM_BACKEND                 "host"
#define RANDOM_REPLAY(seed)            NULL
#define RANDOM_MACHINE(devices, seed)  virtual_machine(devices)
#define RANDOM_QUEUE(launch, function) GANTRY_E_KERNEL
#define RANDOM_SCHEDULE(schedule)      ((void)(schedule))
static gantry_machine *virtual_machine(int devices)
{
    gantry_machine *m = NULL;
    MUST(gantry_machine_virtual(&m, devices, MUST_ERR));
    return m;
}
#endif

enum { FLAGS = 4 }; /* rows of a buffer that is bound beside the others */
enum { BUFFERS = 6, MOST_NODES = 24, MOST_ROWS = 48, MOST_ELEMENTS = MOST_ROWS * 3, STARTS = 3 };

static uint64_t state;
static int64_t draw(int64_t below)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (int64_t)((state * UINT64_C(0x2545F4914F6CDD1D) >> 33) % (uint64_t)below);
}

/* ---- what nodes do: on arguments that only know pointer, rows and bytes ---- */

static double total_of(const gantry_arg *a)
{
    double sum = 0;
    int64_t elements = a->rows * a->row_bytes / 8;
    for (int64_t i = 0; i < elements; i++)
        sum += ((const double *)a->data)[i] * (double)(i % 5 + 1);
    return sum;
}

static double modulo(double x)
{
    return (double)((int64_t)x % 1009);
}

static void change(const gantry_arg *a, double from)
{
    double *x = a->data;
    for (int64_t i = 0; i < a->rows * a->row_bytes / 8; i++) {
        double mine = modulo(from + (double)i * 7);
        switch (a->access) {
        case GANTRY_WRITE:
            x[i] = mine;
            break;
        case GANTRY_READWRITE:
            x[i] = modulo(3 * x[i] + mine);
            break;
        case GANTRY_SUM:
            x[i] += mine;
            break;
        case GANTRY_MIN:
            x[i] = x[i] < mine - 500 ? x[i] : mine - 500;
            break;
        case GANTRY_MAX:
            x[i] = x[i] > mine + 500 ? x[i] : mine + 500;
            break;
        default:
            break;
        }
    }
}

/* Counts down; the call that reaches 0 fails. */
static atomic_int trouble = -1;

static gantry_status mix(const gantry_launch *l)
{
    if (l->stream)
        return RANDOM_QUEUE(l, mix);
    if (atomic_fetch_sub(&trouble, 1) == 0)
        return GANTRY_E_KERNEL;
    double from = (double)l->iteration;
    for (int32_t i = 0; i < l->args; i++)
        from += l->arg[i].access == GANTRY_READ ? total_of(&l->arg[i]) : 0;
    for (int32_t i = 0; i < l->args; i++)
        change(&l->arg[i], from);
    return GANTRY_OK;
}

/* ---- one random case ---- */

typedef enum { LAUNCH, HOST, COPY, FILL, ALL_REDUCE, ALL_GATHER } kind;

typedef struct region {
    int buffer;
    int64_t first, last;
    gantry_access access;
} region;

typedef struct node {
    kind kind;
    region use[10];
    int uses, ins;
    bool loops, has_flag;
    region flag; /* buffer BUFFERS: a row of the flags, else an element of a buffer */
} node;

typedef struct world {
    int64_t rows, width;               /* of every buffer: all are alike, so that all can be joined */
    int parts, nodes, repeat, carried; /* carried: buffers carried, carried + 1 form a pair; -1: none */
    gantry_access reduction;           /* one a case: contributions of two kinds may not mix */
    bool is_state[BUFFERS], is_output[BUFFERS];
    node node[MOST_NODES];
    double array[BUFFERS][MOST_ELEMENTS], flags[FLAGS];
    bool has_flags;
    double *now[BUFFERS]; /* what a name means */
    gantry_graph *g;
} world;

static int64_t bound_of(const world *w, int64_t part)
{
    return w->rows * part / w->parts;
}

static region random_region(const world *w, int buffer, gantry_access access)
{
    int64_t part = draw(w->parts);
    region r = { buffer, bound_of(w, part), bound_of(w, part + 1), access };
    if (draw(4) == 0) {
        r.first = 0;
        r.last = w->rows;
    } else if (draw(4) == 0) { /* any rows */
        r.first = draw(w->rows);
        r.last = r.first + 1 + draw(w->rows - r.first);
    } else if (access == GANTRY_READ && draw(2) == 0) { /* a halo */
        r.first = r.first > 0 ? r.first - 1 : 0;
        r.last = r.last < w->rows ? r.last + 1 : w->rows;
    }
    return r;
}

static void make_launch(const world *w, node *n)
{
    int target = (int)draw(BUFFERS), reads = (int)draw(3);
    n->kind = draw(6) == 0 ? HOST : LAUNCH;
    for (int i = 0; i < reads; i++) {
        int from = (int)draw(BUFFERS);
        if (from != target)
            n->use[n->uses++] = random_region(w, from, GANTRY_READ);
    }
    gantry_access access = draw(6) < 4 ? w->reduction : draw(2) ? GANTRY_WRITE : GANTRY_READWRITE;
    n->use[n->uses++] = random_region(w, target, access);
}

static void make_copy(const world *w, node *n)
{
    int from = (int)draw(BUFFERS), to = (from + 1 + (int)draw(BUFFERS - 1)) % BUFFERS;
    n->kind = COPY;
    n->use[0] = random_region(w, from, GANTRY_READ);
    int64_t length = n->use[0].last - n->use[0].first, first = draw(w->rows - length + 1);
    n->use[1] = (region){ to, first, first + length, GANTRY_WRITE };
    n->uses = 2;
}

/* Equal parts only: the rows must divide. */
static void make_collective(const world *w, node *n, kind which)
{
    int in = (int)draw(BUFFERS), out = (in + 1 + (int)draw(BUFFERS - 1)) % BUFFERS;
    n->kind = which;
    n->ins = w->parts;
    for (int i = 0; i < w->parts; i++) {
        n->use[i] = (region){ in, bound_of(w, i), bound_of(w, i + 1), GANTRY_READ };
        n->use[w->parts + i] = (region){ out, bound_of(w, i), bound_of(w, i + 1), GANTRY_WRITE };
    }
    if (which == ALL_GATHER) { /* of single rows into whole parts: one row from each */
        for (int i = 0; i < w->parts; i++) {
            n->use[i].last = n->use[i].first + 1;
            n->use[w->parts + i].last = n->use[w->parts + i].first + w->parts;
        }
    }
    n->uses = 2 * w->parts;
}

static void make_node(const world *w, node *n)
{
    int64_t what = draw(12);
    bool even = w->rows % w->parts == 0 && w->parts > 1 && w->parts <= 4;
    if (what == 0 && even) {
        make_collective(w, n, ALL_REDUCE);
    } else if (what == 1 && even && w->rows / w->parts >= w->parts) {
        make_collective(w, n, ALL_GATHER);
    } else if (what == 2) {
        make_copy(w, n);
    } else if (what == 3) {
        n->kind = FILL;
        n->use[n->uses++] = random_region(w, (int)draw(BUFFERS), GANTRY_WRITE);
    } else {
        make_launch(w, n);
    }
}

static bool uses_buffer(const node *n, int buffer)
{
    bool uses = false;
    for (int i = 0; i < n->uses; i++)
        uses = uses || n->use[i].buffer == buffer;
    return uses;
}

/* An element that was computed, where an element is a row, and neither the node nor a loop has its buffer. */
static void give_flag(const world *w, node *n)
{
    int buffer = (int)draw(BUFFERS);
    bool carried = w->carried >= 0 && (buffer == w->carried || buffer == w->carried + 1);
    n->has_flag = draw(2) == 0 && n->kind != ALL_REDUCE && n->kind != ALL_GATHER;
    n->flag = (region){ .buffer = BUFFERS, .first = draw(FLAGS), .access = GANTRY_READ };
    if (w->width == 1 && !carried && !uses_buffer(n, buffer) && draw(2))
        n->flag = (region){ .buffer = buffer, .first = draw(w->rows), .access = GANTRY_READ };
    n->flag.last = n->flag.first + 1;
}

static void make_world(world *w, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    state = seed * 0x9E3779B97F4A7C15u + 1;
    w->reduction = draw(2) ? GANTRY_SUM : draw(2) ? GANTRY_MIN : GANTRY_MAX;
    w->parts = 1 + (int)draw(5);
    w->rows = w->parts * (1 + draw(6)) + (draw(2) ? draw(3) : 0);
    w->width = 1 + draw(3);
    w->nodes = 3 + (int)draw(MOST_NODES - 3);
    w->carried = draw(3) == 0 ? (int)draw(BUFFERS - 1) : -1;
    w->repeat = w->carried >= 0 ? 1 + (int)draw(4) : 0;
    for (int b = 0; b < BUFFERS; b++) {
        w->is_state[b] = draw(4) == 0;
        w->is_output[b] = draw(3) != 0;
    }
    int first = w->nodes / 3, last = 2 * w->nodes / 3;
    for (int i = 0; i < w->nodes; i++) {
        make_node(w, &w->node[i]);
        w->node[i].loops = w->repeat && i >= first && i < last;
    }
    if (w->repeat && last > first) { /* `next` is unwritten in every iteration but the first: write it all */
        w->node[first] = (node){ .kind = FILL, .uses = 1, .loops = true };
        w->node[first].use[0] = (region){ w->carried + 1, 0, w->rows, GANTRY_WRITE };
    } else {
        w->repeat = 0;
        w->carried = -1;
    }
    w->has_flags = seed % 3 == 1;
    for (int i = 0; i < w->nodes && w->has_flags; i++)
        if (!w->repeat || i != first)
            give_flag(w, &w->node[i]);
}

/* ---- as a graph ---- */

static gantry_region as_region(const region *r)
{
    return gantry_rows((gantry_buffer){ .id = (uint32_t)r->buffer }, r->first, r->last);
}

static void add_use(gantry_graph *g, gantry_node id, const region *r)
{
    if (r->access == GANTRY_READ)
        gantry_node_read(g, id, as_region(r));
    else if (r->access == GANTRY_WRITE)
        gantry_node_write(g, id, as_region(r));
    else if (r->access == GANTRY_READWRITE)
        gantry_node_readwrite(g, id, as_region(r));
    else
        gantry_node_reduce(g, id, as_region(r), r->access);
}

static gantry_node add_node(const world *w, const node *n)
{
    gantry_graph *g = w->g;
    gantry_region regions[10];
    for (int i = 0; i < n->uses; i++)
        regions[i] = as_region(&n->use[i]);
    size_t ins = (size_t)n->ins;
    switch (n->kind) {
    case COPY:
        return gantry_graph_copy(g, "copy", regions[0], regions[1]);
    case FILL:
        return gantry_graph_fill_iota(g, "fill", regions[0]);
    case ALL_REDUCE:
        return gantry_graph_collective(g, "sum", GANTRY_ALL_REDUCE, GANTRY_SUM, ins, regions, ins, regions + ins, 0);
    case ALL_GATHER:
        return gantry_graph_collective(g, "gather", GANTRY_ALL_GATHER, 0, ins, regions, ins, regions + ins, 0);
    default:
        break;
    }
    gantry_node id =
        n->kind == HOST ? gantry_graph_host(g, "host", mix, NULL) : gantry_graph_launch(g, "mix", mix, NULL);
    for (int i = 0; i < n->uses; i++)
        add_use(g, id, &n->use[i]);
    return id;
}

static void add_buffers(world *w)
{
    for (int b = 0; b < BUFFERS; b++) {
        char name[16];
        snprintf(name, sizeof name, "b%d", b);
        gantry_buffer id = gantry_graph_buffer(w->g, name, GANTRY_F64, 2, ((int64_t[]){ w->rows, w->width }));
        gantry_buffer_split(w->g, id, w->parts);
        gantry_buffer_init_uniform(w->g, id, (uint64_t)b, 0, 1); /* bound over: see bind_all */
        gantry_buffer_set_class(w->g, id, w->is_state[b] ? GANTRY_STATE : GANTRY_INPUT);
        if (w->is_output[b])
            gantry_buffer_output(w->g, id);
    }
    if (w->has_flags) {
        gantry_buffer flags = gantry_graph_buffer(w->g, "flags", GANTRY_F64, 1, ((int64_t[]){ FLAGS }));
        gantry_buffer_split(w->g, flags, FLAGS);
        gantry_buffer_set_class(w->g, flags, GANTRY_INPUT);
    }
}

static void make_graph(world *w)
{
    w->g = gantry_graph_new("random");
    add_buffers(w);
    bool open = false;
    for (int i = 0; i < w->nodes; i++) {
        if (w->node[i].loops && !open) {
            gantry_graph_repeat(w->g, w->repeat);
            gantry_graph_carry(w->g, (gantry_buffer){ .id = (uint32_t)w->carried },
                               (gantry_buffer){ .id = (uint32_t)w->carried + 1 });
            open = true;
        } else if (!w->node[i].loops && open) {
            gantry_graph_repeat_end(w->g);
            open = false;
        }
        gantry_node id = add_node(w, &w->node[i]);
        if (w->node[i].has_flag)
            gantry_node_when(w->g, id, as_region(&w->node[i].flag));
    }
    if (open)
        gantry_graph_repeat_end(w->g);
}

/* ---- as a program ---- */

static double *at(const world *w, const region *r, int64_t row)
{
    return w->now[r->buffer] + row * w->width;
}

static void interpret_launch(const world *w, const node *n, int iteration)
{
    gantry_arg arg[4] = { { 0 } };
    for (int i = 0; i < n->uses; i++) {
        const region *r = &n->use[i];
        arg[i] = (gantry_arg){
            .access = r->access, .rows = r->last - r->first, .row_bytes = w->width * 8, .data = at(w, r, r->first)
        };
    }
    atomic_store(&trouble, -1);
    gantry_launch l = { .struct_size = sizeof l, .iteration = iteration, .args = n->uses, .arg = arg };
    mix(&l);
}

static void interpret_all_reduce(const world *w, const node *n)
{
    int64_t elements = (n->use[0].last - n->use[0].first) * w->width;
    for (int64_t e = 0; e < elements; e++) {
        double sum = 0;
        for (int i = 0; i < n->ins; i++)
            sum += at(w, &n->use[i], n->use[i].first)[e];
        for (int i = n->ins; i < n->uses; i++)
            at(w, &n->use[i], n->use[i].first)[e] = sum;
    }
}

static void interpret(const world *w, const node *n, int iteration)
{
    const region *r = n->use;
    if (n->has_flag && *(n->flag.buffer == BUFFERS ? &w->flags[n->flag.first] : at(w, &n->flag, n->flag.first)) == 0)
        return;
    switch (n->kind) {
    case COPY:
        memcpy(at(w, &r[1], r[1].first), at(w, &r[0], r[0].first), (size_t)((r->last - r->first) * w->width) * 8);
        break;
    case FILL:
        for (int64_t e = r->first * w->width; e < r->last * w->width; e++)
            w->now[r->buffer][e] = (double)e;
        break;
    case ALL_REDUCE:
        interpret_all_reduce(w, n);
        break;
    case ALL_GATHER:
        for (int i = n->ins; i < n->uses; i++)
            for (int k = 0; k < n->ins; k++)
                memcpy(at(w, &r[i], r[i].first + k), at(w, &r[k], r[k].first), (size_t)w->width * 8);
        break;
    default:
        interpret_launch(w, n, iteration);
    }
}

/* Names of a pair change places before each later iteration; after the loop both mean the last `next`. */
static void interpret_start(world *w, double spare[MOST_ELEMENTS])
{
    int first = 0, last = 0;
    for (int i = 0; i < w->nodes; i++) {
        if (w->node[i].loops) {
            first = last ? first : i;
            last = i + 1;
        }
    }
    for (int i = 0; i < first; i++)
        interpret(w, &w->node[i], 0);
    for (int it = 0; it < w->repeat; it++) {
        if (it > 0) {
            double *old = w->now[w->carried];
            w->now[w->carried] = w->now[w->carried + 1];
            w->now[w->carried + 1] = it == 1 ? spare : old;
        }
        for (int i = first; i < last; i++)
            interpret(w, &w->node[i], it);
    }
    if (w->repeat)
        w->now[w->carried] = w->now[w->carried + 1];
    for (int i = last; i < w->nodes; i++)
        interpret(w, &w->node[i], 0);
}

/* ---- both ---- */

/* After the loop both names mean one thing: nodes behind it that use the two would overlap. */
static bool uses_both(const world *w)
{
    for (int i = 0; i < w->nodes && w->repeat; i++) {
        bool prev = false, next = false;
        for (int k = 0; k < w->node[i].uses; k++) {
            prev |= w->node[i].use[k].buffer == w->carried;
            next |= w->node[i].use[k].buffer == w->carried + 1;
        }
        if (prev && next)
            return true;
    }
    return false;
}

static double start_value(int buffer, int64_t e, int start)
{
    return (double)((buffer * 31 + e * 17 + start * 5) % 100);
}

static void run_and_compare(world *w, gantry_schedule *s, const char *what, bool check, uint64_t seed)
{
    static double bound[BUFFERS][MOST_ELEMENTS], keep[BUFFERS][MOST_ELEMENTS], spare[MOST_ELEMENTS];
    uint64_t bytes = (uint64_t)(w->rows * w->width) * 8;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = check ? "host" : RANDOM_BACKEND;
    options.check = check;
    options.seed = seed;
    gantry_run *run = NULL;
    MUST(gantry_run_new(&run, s, &options, MUST_ERR));
    for (int start = 0; start < STARTS; start++) {
        for (int b = 0; b < BUFFERS; b++) {
            for (int64_t e = 0; e < w->rows * w->width; e++)
                bound[b][e] = start_value(b, e, start);
            const double *from = w->is_state[b] && start > 0 ? keep[b] : bound[b];
            memcpy(w->array[b], from, bytes);
            w->now[b] = w->array[b];
            if (!w->is_state[b] || start == 0)
                MUST(gantry_run_bind(run, (gantry_buffer){ .id = (uint32_t)b }, bound[b], bytes, MUST_ERR));
        }
        for (int i = 0; i < FLAGS; i++)
            w->flags[i] = (i + start) % 2 ? i - 2.5 : 0;
        if (w->has_flags)
            MUST(gantry_run_bind(run, (gantry_buffer){ .id = BUFFERS }, w->flags, sizeof w->flags, MUST_ERR));
        if (start == 0 && seed % 3 == 0) { /* a start that fails somewhere leaves nothing behind */
            atomic_store(&trouble, (int)(seed % 7));
            gantry_error err = { 0 };
            gantry_status status = run_once(run, &err);
            ck_assert_msg(status == GANTRY_OK || status == GANTRY_E_KERNEL, "%s: %s", what, err.text);
            atomic_store(&trouble, -1);
            for (int b = 0; b < BUFFERS && status == GANTRY_OK; b++) {
                MUST(gantry_run_bind(run, (gantry_buffer){ .id = (uint32_t)b }, bound[b], bytes,
                                     MUST_ERR)); /* states anew */
            }
        }
        interpret_start(w, spare);
        for (int b = 0; b < BUFFERS; b++)
            memcpy(keep[b], w->now[b], bytes);
        MUST(run_once(run, MUST_ERR));
        for (int b = 0; b < BUFFERS; b++) {
            const void *host = NULL;
            uint64_t size = 0;
            if (!w->is_output[b])
                continue;
            MUST(gantry_run_output(run, (gantry_buffer){ .id = (uint32_t)b }, &host, &size, MUST_ERR));
            if (memcmp(host, keep[b], bytes) != 0)
                ck_abort_msg("%s, start %d, buffer b%d differs", what, start, b);
        }
    }
    gantry_run_free(run);
}

static void try_case(uint64_t seed, int devices)
{
    static world w;
    static const char *const policies[] = { NULL, "round-robin", "single" };
    gantry_schedule *s = NULL;
    char what[96];
    make_world(&w, seed);
    if (uses_both(&w))
        return;
    make_graph(&w);
    gantry_schedule_options options = GANTRY_SCHEDULE_OPTIONS_INIT;
    options.policy = devices == 1 ? NULL : policies[seed % 5 == 0 ? 2 : seed % 2];
    snprintf(what, sizeof what, "seed %d, %d devices", (int)seed, devices);
    gantry_error err = { 0 };
    gantry_machine *machine = RANDOM_MACHINE(devices, seed);
    options.replay = RANDOM_REPLAY(seed);
    gantry_status status = gantry_schedule_new(&s, w.g, machine, &options, &err);
    ck_assert_msg(status == GANTRY_OK, "%s: %s: %s", what, gantry_status_name(status), err.text);
    RANDOM_SCHEDULE(s);
    run_and_compare(&w, s, what, false, seed);
    if (seed % 2 == 0)
        run_and_compare(&w, s, what, true, seed);
    gantry_schedule_free(s);
    gantry_machine_free(machine);
    gantry_graph_free(w.g);
}

/* GANTRY_STRESS: how many seeds instead of the usual number. */
static int seeds(void)
{
    const char *text = getenv("GANTRY_STRESS");
    return text ? atoi(text) : 120;
}

START_TEST(random_graphs_give_what_the_program_says)
{
    for (int seed = 1; seed <= seeds(); seed++)
        try_case((uint64_t)seed, 1 + seed % 8);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("random runs");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 120);
    tcase_add_test(all, random_graphs_give_what_the_program_says);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
