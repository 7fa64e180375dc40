/* SPDX-License-Identifier: Apache-2.0 */
/* A program with an MPI of its own: it begins it, cuts its processes in two halves, and gives the communicator of each
 * half to runs, which carry out another graph there: heat on rods of two lengths. Meanwhile each process goes on with
 * messages of its own to one of the other half. mpirun -n 4 example_own_mpi; works with any even number of processes.
 */
#include <gantry/gantry.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 96, PARTS = 4, STEPS = 40, LETTERS = 100 };

static gantry_status step(const gantry_launch *l)
{
    const gantry_arg *old = gantry_launch_arg(l, 0), *new = gantry_launch_arg(l, 1);
    const double *from = old->data;
    double *to = new->data;
    for (int64_t row = new->first_row; row < new->first_row + new->rows; row++) {
        int64_t i = row - old->first_row;
        int inside = row > 0 && row < new->shape[0] - 1;
        to[row - new->first_row] = inside ? from[i] + 0.25 * (from[i - 1] - 2 * from[i] + from[i + 1]) : from[i];
    }
    return GANTRY_OK;
}

static gantry_graph *build(int64_t n, gantry_buffer *heat)
{
    gantry_graph *g = gantry_graph_new("rod");
    *heat = gantry_graph_buffer(g, "heat", GANTRY_F64, 1, (&n));
    gantry_buffer next = gantry_graph_buffer(g, "next", GANTRY_F64, 1, (&n));
    gantry_buffer_set_class(g, *heat, GANTRY_INPUT);
    gantry_buffer_output(g, *heat);
    gantry_buffer_split(g, *heat, PARTS);
    gantry_buffer_split(g, next, PARTS);
    gantry_graph_repeat(g, STEPS);
    gantry_graph_carry(g, *heat, next);
    for (int i = 0; i < PARTS; i++) {
        gantry_node t = gantry_graph_launch(g, "step", step, NULL);
        gantry_node_read(g, t, gantry_halo(gantry_part(*heat, i), 1, 1));
        gantry_node_write(g, t, gantry_part(next, i));
    }
    gantry_graph_repeat_end(g);
    return g;
}

static void plain_loop(double *heat, int n)
{
    double next[MOST];
    for (int s = 0; s < STEPS; s++) {
        for (int i = 0; i < n; i++)
            next[i] = i > 0 && i < n - 1 ? heat[i] + 0.25 * (heat[i - 1] - 2 * heat[i] + heat[i + 1]) : heat[i];
        for (int i = 0; i < n; i++)
            heat[i] = next[i];
    }
}

/* Letters to and from the process of the same place in the other half, while the run goes on; the number that came in
 * a wrong order. */
static int exchange_letters(int rank)
{
    int wrong = 0;
    for (int i = 0; i < LETTERS; i++) {
        int mine = 1000 * rank + i, theirs = -1, other = rank ^ 1;
        MPI_Sendrecv(&mine, 1, MPI_INT, other, 7, &theirs, 1, MPI_INT, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        wrong += theirs != 1000 * other + i;
    }
    return wrong;
}

typedef struct rod {
    gantry_network *network; /* NULL: the half has one process */
    gantry_machine *whole, *machine;
    gantry_schedule *schedule;
    gantry_run *run;
    gantry_graph *graph;
    gantry_buffer heat;
} rod;

/* Four devices in all, dealt out to the processes of the half: each makes the same schedule of them. */
static gantry_status make(rod *r, MPI_Comm half, int n, gantry_error *err)
{
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    r->graph = build(n, &r->heat);
    gantry_status status = gantry_network_from_mpi(&r->network, &half, err);
    size_t ranks = (size_t)gantry_network_ranks(r->network);
    options.backend = "host";
    options.network = r->network;
    status = status ? status : gantry_machine_virtual(&r->whole, PARTS, err);
    status = status ? status : gantry_machine_spread(&r->machine, r->whole, ranks, err);
    status = status ? status : gantry_schedule_new(&r->schedule, r->graph, r->machine, NULL, err);
    return status ? status : gantry_run_new(&r->run, r->schedule, &options, err);
}

/* The same calls on all; inputs are those of rank 0 of the half, and outputs are there. */
static gantry_status run_once(rod *r, const double *start, double *result, size_t bytes, int rank, int *wrong,
                              gantry_error *err)
{
    uint64_t ticket;
    gantry_status status = gantry_run_bind(r->run, r->heat, start, bytes, err);
    status = status ? status : gantry_run_bind_output(r->run, r->heat, result, bytes, err);
    status = status ? status : gantry_run_start(r->run, &ticket, err);
    *wrong = status ? 0 : exchange_letters(rank);
    status = status ? status : gantry_run_wait(r->run, ticket, err);
    return status ? status : gantry_network_leave(r->network, err);
}

static void take_down(rod *r)
{
    gantry_run_free(r->run);
    gantry_schedule_free(r->schedule);
    gantry_machine_free(r->machine);
    gantry_machine_free(r->whole);
    gantry_graph_free(r->graph);
    gantry_network_free(r->network); /* MPI stays */
}

int main(int argc, char **argv)
{
    int given, rank, wrong = 0, all_wrong = 0;
    double start[MOST] = { 0 }, result[MOST], expected[MOST] = { 0 };
    gantry_error err;
    rod r = { 0 };
    MPI_Comm half;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given); /* messages of the run have a thread of their own */
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    int n = rank % 2 ? MOST : MOST / 2;
    start[n / 3] = expected[n / 3] = 100;
    plain_loop(expected, n);
    if (make(&r, half, n, &err) || run_once(&r, start, result, (size_t)n * sizeof *result, rank, &wrong, &err)) {
        char line[1024];
        gantry_error_format(&err, line, sizeof line);
        fprintf(stderr, "%s\n", line);
        MPI_Abort(MPI_COMM_WORLD, 1); /* others wait for this process */
    }
    for (int i = 0; i < n && gantry_network_rank(r.network) == 0; i++)
        wrong += result[i] != expected[i];
    take_down(&r);
    MPI_Comm_free(&half);
    MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("hottest after %d steps: %.4f; %d wrong\n", STEPS, result[n / 3], all_wrong);
    MPI_Finalize();
    return rank == 0 && all_wrong ? 1 : 0;
}
