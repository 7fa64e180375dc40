/* SPDX-License-Identifier: Apache-2.0 */
/* A communicator of the program becomes a network, or is refused: mpirun -n 2 test_comm, with each MPI. */
#include <gantry/gantry.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int wrong;

static void expect(int held, const char *what, const gantry_error *err)
{
    char line[1024] = "";
    if (held)
        return;
    gantry_error_format(err, line, sizeof line);
    fprintf(stderr, "not held: %s (%s)\n", what, line);
    wrong++;
}

static void refused(const void *comm, gantry_status status, const char *says)
{
    gantry_network *network = NULL;
    gantry_error err = { 0 };
    expect(gantry_network_from_mpi(&network, comm, &err) == status && !network, says, &err);
    expect(strstr(err.text, says) != NULL, says, &err);
}

/* Two processes: one network, then a second one when it is freed; a process alone has none. */
static void made(int rank)
{
    gantry_network *network = NULL, *second = NULL;
    gantry_error err = { 0 };
    MPI_Comm turned, alone, world = MPI_COMM_WORLD, none = MPI_COMM_NULL;
    refused(&none, GANTRY_E_INVALID, "the communicator is MPI_COMM_NULL");
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &alone);
    expect(gantry_network_from_mpi(&network, &turned, &err) == GANTRY_OK, "made", &err);
    MPI_Comm_free(&turned);
    expect(gantry_network_rank(network) == 1 - rank && gantry_network_ranks(network) == 2, "its ranks", &err);
    refused(&world, GANTRY_E_INVALID, "in a network already");
    expect(gantry_network_open(&second, &err) == GANTRY_E_INVALID && !second, "the launcher's beside it", &err);
    expect(gantry_network_leave(network, &err) == GANTRY_OK, "left before a run", &err);
    gantry_network_free(network);
    expect(gantry_network_from_mpi(&second, &alone, &err) == GANTRY_OK && !second, "alone", &err);
    expect(gantry_network_from_mpi(&second, &world, &err) == GANTRY_OK, "made again", &err);
    expect(gantry_network_rank(second) == rank, "its rank", &err);
    gantry_network_free(second);
    MPI_Comm_free(&alone);
}

int main(int argc, char **argv)
{
    int given, rank, all = 0, over = 1;
    MPI_Comm world = MPI_COMM_WORLD;
    int many = argc > 1 && strcmp(argv[1], "many") == 0;
    refused(&world, GANTRY_E_INVALID, "MPI was not begun");
    MPI_Init_thread(&argc, &argv, many ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (many)
        made(rank);
    else if (given < MPI_THREAD_MULTIPLE)
        refused(&world, GANTRY_E_UNSUPPORTED, "begin it by MPI_Init_thread");
    MPI_Finalized(&over);
    wrong += over; /* it is the program's to end */
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    refused(&world, GANTRY_E_INVALID, "MPI is over");
    return wrong || all;
}
