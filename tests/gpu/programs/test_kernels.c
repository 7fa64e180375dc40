/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kernel of the library that has a CUDA version, in every element type and many shapes (recipes.c), against its
 * host version: with arguments that are whole buffers, that lie inside buffers at addresses that are multiples of
 * nothing but the element, and in three parts, some of them empty. What lies around results must stay as it is.
 * On real GPUs, and on the fake driver with the kernels' source on the CPU. Exit code 77 without a GPU; kernels that
 * have no CUDA version are named.
 *
 *   GANTRY_GPU_KERNELS="scale,gemm"   only these
 *   GANTRY_GPU_EVERY="4,gemm:9"       one in so many of the problems; of these kernels other numbers
 *   GANTRY_GPU_SMALL=1                few of the problems and no large ones, for compute-sanitizer
 */
#include "../../unit/cuda/suite.h"
#include "problems.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum placing { WHOLE, INSIDE, PARTS, LARGE } placing;
static const char *const placings[] = { "whole", "inside", "parts", "large" };
enum { PLACINGS = sizeof placings / sizeof *placings };
/* The time that nodes declare. A run's patience follows from predicted times; tools and emulation take their time. */
#define SLOW_US 1e5
enum { PIECES = 3, PADS = 2 }; /* rows in front of and behind what lies inside */

/* A buffer that a problem writes to, or reads its numbers from. */
typedef struct bound_buffer {
    gantry_buffer in, out; /* id GANTRY_NONE: none */
    void *data;
    uint64_t bytes;
    operand operand;
    bound bound;
    int64_t before, after; /* elements around the operand */
    char what[96];
} bound_buffer;

/* Many problems of one kernel as one graph. */
typedef struct batch {
    gantry_graph *g;
    placing placing;
    unsigned long seen;
    int problems;
    bound_buffer *buffer;
    size_t buffers, room;
} batch;

static bool is_whole(const batch *b)
{
    return b->placing == WHOLE || b->placing == LARGE;
}

static bool writes(gantry_access a)
{
    return a != GANTRY_READ;
}

static bool reads(gantry_access a)
{
    return a != GANTRY_WRITE;
}

/* ---- making a graph ---- */

static gantry_buffer none(void)
{
    return (gantry_buffer){ .id = GANTRY_NONE };
}

/* Adds a buffer that the nodes work on. Inside and in parts, a copy or a fill of all of it comes first, so that there
 * is one array. */
static gantry_buffer add_buffer(batch *b, const problem *p, const operand *o)
{
    char name[64];
    int64_t shape[4], row = o->shape[0] ? elements_of(o) / o->shape[0] : 0, pad = b->placing == INSIDE ? PADS : 0;
    bound_buffer made = { .in = none(), .out = none(), .operand = *o, .bound = p->bound };
    memcpy(shape, o->shape, sizeof shape);
    shape[0] += 2 * pad - (pad ? 1 : 0); /* one row in front, two behind */
    made.before = pad ? row : 0;
    made.after = pad ? (2 * pad - 2) * row : 0;
    snprintf(made.what, sizeof made.what, "%s, %s, problem %d, \"%s\" (%s)", p->kernel->name, placings[b->placing],
             b->problems, o->arg->name, gantry_dtype_name(o->dtype));
    made.bytes = (uint64_t)(made.before + elements_of(o) + made.after) * gantry_dtype_size(o->dtype);
    snprintf(name, sizeof name, "%s%d", o->arg->name, b->problems);
    gantry_buffer work = gantry_graph_buffer(b->g, name, o->dtype, o->rank, shape), in = work;
    if (b->placing == PARTS && !o->whole)
        gantry_buffer_split(b->g, work, PIECES);
    if (!is_whole(b) && reads(o->access)) {
        snprintf(name, sizeof name, "%s%d_in", o->arg->name, b->problems);
        in = gantry_graph_buffer(b->g, name, o->dtype, o->rank, shape);
        gantry_node_on(b->g, gantry_graph_copy(b->g, NULL, gantry_all(in), gantry_all(work)), "gpu0");
    } else if (!is_whole(b)) {
        gantry_node_on(b->g, gantry_graph_fill(b->g, NULL, gantry_all(work), 3), "gpu0");
    }
    if (reads(o->access)) {
        gantry_buffer_set_class(b->g, in, GANTRY_INPUT);
        made.in = in;
        made.data = malloc(made.bytes + 1);
        fill_operand(o, made.data, made.before, made.after, (uint64_t)b->problems * 8 + b->buffers % 8 + 1);
    }
    if (writes(o->access)) {
        gantry_buffer_output(b->g, work);
        made.out = work;
    }
    if (b->buffers == b->room) {
        b->room = b->room ? 2 * b->room : 64;
        b->buffer = realloc(b->buffer, b->room * sizeof *b->buffer);
    }
    b->buffer[b->buffers++] = made;
    return work;
}

static gantry_region region_of(const batch *b, const operand *o, gantry_buffer buffer, int piece)
{
    gantry_region r = b->placing == INSIDE      ? gantry_rows(buffer, 1, 1 + o->shape[0])
                      : is_whole(b) || o->whole ? gantry_all(buffer)
                                                : gantry_part(buffer, piece);
    return o->halo && !is_whole(b) ? gantry_halo(r, o->halo, o->halo) : r;
}

static unsigned long every(const char *kernel)
{
    char own[80];
    const char *text = getenv("GANTRY_GPU_EVERY"), *at = NULL;
    snprintf(own, sizeof own, ",%s:", kernel);
    if (text)
        at = strstr(text, own);
    unsigned long number = at ? strtoul(at + strlen(own), NULL, 10) : text ? strtoul(text, NULL, 10) : 0;
    return number ? number : getenv("GANTRY_GPU_SMALL") ? 5 : 1;
}

static void add_problem(void *user, const problem *p)
{
    batch *b = user;
    gantry_buffer buffer[MOST_OPERANDS];
    char id[64];
    if (p->large != (b->placing == LARGE) || (b->placing == PARTS && !p->parts))
        return;
    if (b->seen++ % every(p->kernel->name) != 0)
        return;
    for (int i = 0; i < p->operands; i++)
        buffer[i] = add_buffer(b, p, &p->operand[i]);
    for (int piece = 0; piece < (b->placing == PARTS ? PIECES : 1); piece++) {
        snprintf(id, sizeof id, "%s_%d_%d", p->kernel->name, b->problems, piece);
        gantry_node node = gantry_graph_kernel(b->g, id, p->kernel->name);
        gantry_node_on(b->g, node, "gpu0");
        gantry_node_time(b->g, node, NULL, SLOW_US);
        for (int i = 0; i < p->operands; i++) {
            const operand *o = &p->operand[i];
            gantry_node_arg_as(b->g, node, o->arg->name, region_of(b, o, buffer[i], piece), o->access);
        }
        for (int i = 0; i < p->scalars; i++)
            gantry_node_scalar(b->g, node, p->scalar[i].name, p->scalar[i].value);
    }
    b->problems++;
}

/* ---- running it ---- */

static void bind_all(const batch *b, gantry_run *run)
{
    for (size_t i = 0; i < b->buffers; i++) {
        const bound_buffer *x = &b->buffer[i];
        if (x->in.id != GANTRY_NONE)
            MUST(gantry_run_bind(run, x->in, x->data, x->bytes, MUST_ERR));
    }
}

static void start_and_wait(gantry_run *run)
{
    uint64_t ticket = 0;
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    MUST(gantry_run_wait(run, ticket, MUST_ERR));
}

static void compare_one(const bound_buffer *x, const char *got, const char *want)
{
    static const bound equal;
    gantry_dtype d = x->operand.dtype;
    size_t size = gantry_dtype_size(d);
    int64_t n = elements_of(&x->operand), at;
    size_t first = (size_t)x->before * size, last = (size_t)(x->before + n) * size;
    ck_assert_msg(first_wrong(got, want, d, x->before, equal) < 0, "%s: what is in front was changed", x->what);
    ck_assert_msg(first_wrong(got + last, want + last, d, x->after, equal) < 0, "%s: what is behind was changed",
                  x->what);
    at = first_wrong(got + first, want + first, d, n, x->bound);
    ck_assert_msg(at < 0, "%s: element %lld of %lld is %.17g and should be %.17g (within %.3g relative, %.3g absolute)",
                  x->what, (long long)at, (long long)n, element_at(got + first, d, at), element_at(want + first, d, at),
                  x->bound.relative, x->bound.absolute);
}

static void compare(const batch *b, gantry_run *host, gantry_run *run)
{
    for (size_t i = 0; i < b->buffers; i++) {
        const bound_buffer *x = &b->buffer[i];
        const void *got = NULL, *want = NULL;
        uint64_t bytes = 0;
        if (x->out.id != GANTRY_NONE) {
            MUST(gantry_run_output(host, x->out, &want, &bytes, MUST_ERR));
            ck_assert_uint_eq(bytes, x->bytes);
            MUST(gantry_run_output(run, x->out, &got, &bytes, MUST_ERR));
            compare_one(x, got, want);
        }
    }
}

static void free_batch(batch *b)
{
    for (size_t i = 0; i < b->buffers; i++)
        free(b->buffer[i].data);
    free(b->buffer);
    gantry_graph_free(b->g);
}

static void hold_starts(const batch *b, gantry_schedule *s, gantry_run *run)
{
    gantry_run *host = open_run(s, "host");
    bind_all(b, host);
    bind_all(b, run);
    for (int start = 0; start < 2; start++) {
        start_and_wait(host);
        start_and_wait(run);
        compare(b, host, run);
    }
    gantry_run_free(host);
}

/* False: the kernel has no CUDA version, or needs what is not here. */
static bool hold(const recipe *r, placing how, gantry_error *why)
{
    batch b = { .g = gantry_graph_new(r->kernel), .placing = how };
    problems_of(r, add_problem, &b);
    bool there = true;
    if (b.problems) {
        gantry_machine *m = shared_machine(1, 1);
        const char *replay = getenv("GANTRY_GPU_REPLAY");
        gantry_schedule *s = make_schedule(b.g, m, replay ? replay : how == INSIDE ? "graph" : "stream", NULL);
        gantry_run *run = NULL;
        there = open_cuda(&run, s, why);
        if (there) {
            hold_starts(&b, s, run);
            gantry_run_free(run);
        }
        gantry_schedule_free(s);
        gantry_machine_free(m);
    }
    free_batch(&b);
    return there;
}

static bool is_wanted(const char *kernel)
{
    const char *only = getenv("GANTRY_GPU_KERNELS"), *at = only ? strstr(only, kernel) : NULL;
    size_t length = strlen(kernel);
    while (at && ((at > only && at[-1] != ',') || (at[length] && at[length] != ',')))
        at = strstr(at + 1, kernel);
    return !only || at;
}

START_TEST(kernel)
{
    const char *name = gantry_kernel_at((size_t)_i)->name;
    const recipe *r = recipe_find(name);
    gantry_error why = { 0 };
    if (strncmp(name, "halo_", 5) == 0) /* of tiles: test_gpu's graphs */
        return;
    ck_assert_msg(r != NULL, "kernel \"%s\" has no recipe in tests/gpu/programs/recipes.c", name);
    for (int p = 0; p < (getenv("GANTRY_GPU_SMALL") ? LARGE : PLACINGS); p++) {
        if (!hold(r, (placing)p, &why)) {
            printf("skipped: kernel %s: %s\n", name, why.text);
            fflush(stdout);
            return;
        }
    }
    printf("held: kernel %s\n", name);
    fflush(stdout);
}
END_TEST

/* ---- that problems are what they are said to be ---- */

/* Every region of the problems' kernels: the remainder of its address. Nothing is queued. */
static gantry_status note_addresses(const gantry_launch *l)
{
    int *odd = l->user;
    for (int32_t i = 0; i < l->args; i++)
        *odd += (uintptr_t)l->arg[i].data % 16 != 0;
    return GANTRY_OK;
}

START_TEST(addresses)
{
    for (int p = INSIDE; p <= PARTS; p++) {
        int odd = 0;
        problem saxpy = { .kernel = gantry_kernel_find("saxpy") };
        batch b = { .g = gantry_graph_new("addresses"), .placing = (placing)p };
        recipe_find("saxpy")->make(&saxpy, GANTRY_F32, 7);
        for (int i = 0; i < 2; i++) {
            const operand *o = &saxpy.operand[i];
            gantry_buffer buffer = add_buffer(&b, &saxpy, o);
            gantry_node node = gantry_graph_launch(b.g, NULL, note_addresses, &odd);
            gantry_node_on(b.g, node, "gpu0");
            gantry_node_readwrite(b.g, node, region_of(&b, o, buffer, 1));
            b.problems++;
        }
        gantry_machine *m = shared_machine(1, 1);
        gantry_schedule *s = make_schedule(b.g, m, "stream", NULL);
        gantry_run *run = open_run(s, "cuda");
        bind_all(&b, run);
        start_and_wait(run);
        ck_assert_msg(odd >= 2, "%s: %d of 2 addresses are no multiples of 16", placings[p], odd);
        gantry_run_free(run);
        gantry_schedule_free(s);
        gantry_machine_free(m);
        free_batch(&b);
    }
}
END_TEST

int main(void)
{
    if (!has_gpu()) {
        printf("skipped: no GPU, see \"gantry machine\"\n");
        return 77;
    }
    Suite *suite = suite_create("kernels on GPUs");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, addresses);
    for (int i = 0; i < (int)gantry_kernel_count(); i++)
        if (is_wanted(gantry_kernel_at((size_t)i)->name))
            tcase_add_loop_test(tests, kernel, i, i + 1);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
