/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs that each rank reads from what it has bound itself, and outputs that stay where they are computed, told apart
 * from those of rank 0 by contents: each process binds other numbers, of which the result says where they were read.
 * mpirun -n 2 test_own (or more), with each MPI.
 */
#include <gantry/gantry.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1 << 16, SMALL = 64, STARTS = 3 };
#define UNTOUCHED (-7.0)

static int wrong, rank, ranks;

static void expect(int held, const char *what, const gantry_error *err)
{
    char line[1024] = "";
    if (held)
        return;
    gantry_error_format(err, line, sizeof line);
    fprintf(stderr, "rank %d: not held: %s (%s)\n", rank, what, line);
    wrong++;
}

/* y = x + c; `few` is a small output. */
static gantry_status add(const gantry_launch *l)
{
    const gantry_arg *x = gantry_launch_arg(l, 0), *c = gantry_launch_arg(l, 1), *y = gantry_launch_arg(l, 2);
    for (int64_t i = 0; i < y->rows; i++)
        ((double *)y->data)[i] = ((const double *)x->data)[i] + ((const double *)c->data)[i];
    return GANTRY_OK;
}

typedef struct sums {
    gantry_network *network;
    gantry_machine *whole, *machine;
    gantry_graph *graph;
    gantry_schedule *schedule;
    gantry_run *run;
    gantry_buffer x, c, y, few;
} sums;

static gantry_buffer buffer(sums *s, const char *name, int64_t n, gantry_buffer_class cls)
{
    gantry_buffer b = gantry_graph_buffer(s->graph, name, GANTRY_F64, 1, (&n));
    if (cls == GANTRY_INPUT || cls == GANTRY_CONST)
        gantry_buffer_set_class(s->graph, b, cls);
    else
        gantry_buffer_output(s->graph, b);
    gantry_buffer_split(s->graph, b, ranks);
    return b;
}

/* Part i is computed by rank i. */
static void add_parts(sums *s, const char *id, gantry_buffer to)
{
    for (int i = 0; i < ranks; i++) {
        char name[32], device[32];
        snprintf(name, sizeof name, "%s-%d", id, i);
        snprintf(device, sizeof device, "dev%d", i);
        gantry_node t = gantry_graph_launch(s->graph, name, add, NULL);
        int64_t n = to.id == s->few.id ? SMALL : N, first = i * n / ranks, last = (i + 1) * n / ranks;
        gantry_node_read(s->graph, t, gantry_rows(s->x, first, last));
        gantry_node_read(s->graph, t, gantry_rows(s->c, first, last));
        gantry_node_write(s->graph, t, gantry_rows(to, first, last));
        gantry_node_on(s->graph, t, device);
    }
}

static void make(sums *s, uint64_t key, int apart)
{
    gantry_error err = { 0 };
    MPI_Comm world = MPI_COMM_WORLD;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    s->graph = gantry_graph_new("sums");
    s->x = buffer(s, "x", N, GANTRY_INPUT);
    s->c = buffer(s, "c", N, GANTRY_CONST);
    s->y = buffer(s, "y", N, GANTRY_TEMP);
    s->few = buffer(s, "few", SMALL, GANTRY_TEMP);
    add_parts(s, "sum", s->y);
    add_parts(s, "little", s->few);
    expect(gantry_network_from_mpi(&s->network, &world, &err) == GANTRY_OK, "network", &err);
    expect(gantry_machine_virtual(&s->whole, ranks, &err) == GANTRY_OK, "machine", &err);
    expect(gantry_machine_spread(&s->machine, s->whole, (size_t)ranks, &err) == GANTRY_OK, "spread", &err);
    expect(gantry_schedule_new(&s->schedule, s->graph, s->machine, NULL, &err) == GANTRY_OK, "schedule", &err);
    expect(gantry_schedule_check_ranks(s->schedule, &err) == GANTRY_OK, "check", &err);
    options.backend = "host";
    options.network = s->network;
    options.inputs_key = key;
    options.outputs_apart = apart;
    expect(gantry_run_new(&s->run, s->schedule, &options, &err) == GANTRY_OK, "run", &err);
    if (wrong)
        MPI_Abort(MPI_COMM_WORLD, 1);
}

static void take_down(sums *s)
{
    gantry_error err = { 0 };
    expect(gantry_network_leave(s->network, &err) == GANTRY_OK, "leave", &err);
    gantry_run_free(s->run);
    gantry_schedule_free(s->schedule);
    gantry_machine_free(s->machine);
    gantry_machine_free(s->whole);
    gantry_graph_free(s->graph);
    gantry_network_free(s->network);
}

/* Element i of y after a start in which rank r had x = 100 r + n and c = 1000 r everywhere. */
static double expected(int i, int n, int start, int own)
{
    int r = own ? (int)((int64_t)i * ranks / n) : 0;
    return 100.0 * r + start + 1000.0 * r;
}

/* Rows [first, last) are there, the others as they were. */
static int holds(const double *y, int n, int first, int last, int start, int own)
{
    int held = 1;
    for (int i = 0; i < n; i++)
        held = held && y[i] == (i >= first && i < last ? expected(i, n, start, own) : UNTOUCHED);
    return held;
}

static void start_once(sums *s, double *x, int start)
{
    gantry_error err = { 0 };
    uint64_t ticket;
    for (int i = 0; i < N; i++)
        x[i] = 100.0 * rank + start;
    int fine =
        gantry_run_start(s->run, &ticket, &err) == GANTRY_OK && gantry_run_wait(s->run, ticket, &err) == GANTRY_OK;
    expect(fine, "start", &err);
    if (!fine)
        MPI_Abort(MPI_COMM_WORLD, 1);
}

static void look(sums *s, const double *y, const double *few, int start, int own, int apart)
{
    gantry_error err = { 0 };
    const void *at;
    int mine = apart ? rank * N / ranks : 0, next = apart ? (rank + 1) * N / ranks : rank ? 0 : N;
    expect(holds(y, N, mine, next, start, own), "y before it is collected", &err);
    if (rank == 0) {
        expect(holds(few, SMALL, 0, SMALL, start, own), "a small output is always on rank 0", &err);
        gantry_status status = gantry_run_output(s->run, s->y, &at, NULL, &err);
        expect(status == (apart ? GANTRY_E_INVALID : GANTRY_OK), "y is refused before it is collected", &err);
        expect(!apart || strstr(err.text, "call gantry_run_collect first"), "the remedy", &err);
    }
    if (start % 2) /* not after each start */
        return;
    expect(gantry_run_collect(s->run, &err) == GANTRY_OK, "collected", &err);
    expect(gantry_run_collect(s->run, &err) == GANTRY_OK, "collected again, which does nothing", &err);
    if (rank > 0)
        return;
    expect(gantry_run_output(s->run, s->y, &at, NULL, &err) == GANTRY_OK && at == y, "y is where it was bound", &err);
    expect(holds(y, N, 0, N, start, own), "y when it is collected", &err);
}

/* `own`: all ranks give the same key, so each reads what it has bound. */
static void try(uint64_t key, int own, int apart)
{
    gantry_error err = { 0 };
    sums s = { 0 };
    double *x = calloc(3 * N + SMALL, sizeof *x), *c = x + N, *y = c + N, *few = y + N;
    make(&s, key, apart);
    for (int i = 0; i < N; i++)
        c[i] = 1000.0 * rank;
    expect(gantry_run_bind(s.run, s.x, x, N * sizeof *x, &err) == GANTRY_OK, "bind x", &err);
    expect(gantry_run_bind(s.run, s.c, c, N * sizeof *c, &err) == GANTRY_OK, "bind c", &err);
    expect(gantry_run_bind_output(s.run, s.y, y, N * sizeof *y, &err) == GANTRY_OK, "bind y", &err);
    expect(gantry_run_bind_output(s.run, s.few, few, SMALL * sizeof *few, &err) == GANTRY_OK, "bind few", &err);
    for (int start = 1; start <= STARTS; start++) {
        for (int i = 0; i < N + SMALL; i++)
            y[i] = UNTOUCHED;
        start_once(&s, x, start);
        look(&s, y, few, start, own, apart);
    }
    take_down(&s);
    free(x);
}

int main(int argc, char **argv)
{
    int given, all = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int apart = 0; apart < 2; apart++) {
        try(0, 0, apart);
        try(5, 1, apart);
        try(5 + (uint64_t)(rank == ranks - 1), 0, apart); /* one has other files */
        try(rank ? 5 : 0, 0, apart);
    }
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return wrong || all;
}
