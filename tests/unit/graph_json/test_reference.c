/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graphs/reference against the published numbers as another program wrote them down: "name n p m", then n rows of
 * costs, then m edges "from to bytes", counted from 0.
 */
#include "suite.h"
#include <stdio.h>
#include <string.h>

static char shared[512];
static size_t compared;

static void check_costs(FILE *file, const gantry_graph *g, uint32_t node, int devices)
{
    const gy_node_extra *x = gy_node_extra_of(g, node);
    ck_assert_uint_eq(x->time.count, (size_t)devices);
    for (int p = 0; p < devices; p++) {
        double us;
        char device[16];
        ck_assert_int_eq(fscanf(file, "%lf", &us), 1);
        snprintf(device, sizeof device, "P%d", p + 1);
        ck_assert_str_eq(x->time.at[p].device, device);
        ck_assert(x->time.at[p].us == us);
    }
}

/* The buffer that is written by `from` and read by `to` and nobody else, of so many bytes. */
static void check_edge(const gantry_graph *g, uint32_t from, uint32_t to, uint64_t bytes)
{
    size_t found = 0;
    for (size_t b = 0; b < g->buffers.count; b++) {
        uint32_t writer = GY_NONE, reader = GY_NONE, uses = 0;
        for (uint32_t n = 0; n < g->nodes.count; n++) {
            for (uint32_t k = 0; k < g->nodes.at[n].accesses; k++) {
                const gy_access *a = &g->access.at[g->nodes.at[n].access + k];
                if (a->buffer == b) {
                    uses++;
                    *(a->mode == GANTRY_WRITE ? &writer : &reader) = n;
                }
            }
        }
        found += writer == from && reader == to && uses == 2 && g->buffers.at[b].bytes == bytes;
    }
    ck_assert_msg(found == 1, "%s: T%u-T%u %llu", g->name, from + 1, to + 1, (unsigned long long)bytes);
}

static void check_graph(FILE *file, const gantry_graph *g, int nodes, int devices, int edges)
{
    ck_assert_uint_eq(g->nodes.count, (size_t)nodes);
    ck_assert_uint_eq(g->buffers.count, (size_t)edges);
    for (int i = 0; i < nodes; i++) {
        char id[16];
        snprintf(id, sizeof id, "T%d", i + 1);
        ck_assert_str_eq(g->nodes.at[i].id, id);
        check_costs(file, g, (uint32_t)i, devices);
    }
    for (int i = 0; i < edges; i++) {
        unsigned from, to;
        double bytes;
        ck_assert_int_eq(fscanf(file, "%u %u %lf", &from, &to, &bytes), 3);
        check_edge(g, from, to, (uint64_t)bytes);
    }
    compared++;
}

static void check_file(const char *name)
{
    char path[1024], graph[64];
    int nodes, devices, edges;
    snprintf(path, sizeof path, "%s/data/examples/%s", shared, name);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (fscanf(file, "%60s %d %d %d", graph, &nodes, &devices, &edges) == 4) {
        gantry_graph *g = NULL;
        gantry_error err;
        snprintf(path, sizeof path, GANTRY_SOURCE_DIR "/graphs/reference/%s.json", graph);
        if (gantry_graph_load(&g, path, NULL, &err) == GANTRY_OK) {
            check_graph(file, g, nodes, devices, edges);
            gantry_graph_free(g);
        } else { /* an example that the project does not have */
            for (int i = 0; i < nodes * devices + 3 * edges; i++)
                ck_assert_int_eq(fscanf(file, "%*s"), 0);
        }
    }
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(published)
{
    compared = 0;
    check_file("canon.txt");
    check_file("look.txt");
    ck_assert_uint_ge(compared, 3);
}
END_TEST

int main(void)
{
    const TTest *const cases[] = { published };
    const char *folder = getenv("GANTRY_SHARED");
    snprintf(shared, sizeof shared, "%s", folder ? folder : "");
    char path[600];
    snprintf(path, sizeof path, "%s/data/examples/canon.txt", shared);
    FILE *file = fopen(path, "r");
    if (!file) {
        printf("skipped: no data/examples/canon.txt in the folder that GANTRY_SHARED names\n");
        return 77;
    }
    (void)fclose(file);
    return RUN_CASES("published graphs", cases);
}
