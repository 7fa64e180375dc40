/* SPDX-License-Identifier: Apache-2.0 */
/* How much of what tiles give to those around them lies together in memory: against walks over all elements of tiles.
 */
#include "base/memory.h"
#include "graph/graph.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AXES = 3 };

typedef struct box {
    int64_t from[AXES], to[AXES];
} box;

/* Elements of the box in a tile of `shape`, and how often the next one is not the one behind the last. */
static void walk(const box *b, const int64_t *shape, double *elements, double *places)
{
    int64_t last = -2;
    for (int64_t i = b->from[0]; i < b->to[0]; i++)
        for (int64_t j = b->from[1]; j < b->to[1]; j++)
            for (int64_t k = b->from[2]; k < b->to[2]; k++) {
                int64_t at = (i * shape[1] + j) * shape[2] + k;
                *elements += 1;
                *places += at != last + 1;
                last = at;
            }
}

static int64_t begin(int64_t extent, int64_t tiles, int64_t i)
{
    return extent * i / tiles;
}

/* A tile at the beginning of each axis gives its last elements to those behind it, in all seven directions. */
START_TEST(first_tile)
{
    static const int64_t shapes[][AXES] = { { 12, 14, 18 }, { 8, 30, 20 }, { 9, 9, 9 } };
    static const int64_t tiles[][AXES] = { { 2, 2, 2 }, { 1, 3, 2 }, { 3, 3, 1 }, { 2, 1, 2 }, { 2, 1, 1 } };
    static const int widths[][AXES] = { { 1, 1, 1 }, { 2, 1, 3 }, { 1, 2, 0 } };
    for (size_t c = 0; c < 3 * 5 * 3; c++) {
        const int64_t *shape = shapes[c % 3], *cut = tiles[c / 3 % 5];
        const int *wide = widths[c / 15];
        char text[800], id[80];
        gantry_graph *g = NULL;
        gantry_error err = { 0 };
        int64_t own[AXES];
        double elements = 0, places = 0;
        for (int k = 0; k < AXES; k++)
            own[k] = begin(shape[k], cut[k], 1);
        for (int way = 1; way < 8; way++) {
            box b;
            for (int k = 0; k < AXES; k++) {
                bool behind = way >> k & 1;
                int64_t gives = !behind ? own[k] : cut[k] > 1 ? wide[k] : 0;
                b.from[k] = own[k] - gives;
                b.to[k] = own[k];
            }
            walk(&b, own, &elements, &places);
        }
        snprintf(text, sizeof text,
                 "{\"gantry\":1,\"buffers\":{\"u\":{\"dtype\":\"f64\",\"shape\":[%d,%d,%d],\"tiles\":[%d,%d,%d],"
                 "\"init\":1}},\"nodes\":[{\"for\":{\"i\":%d},\"nodes\":[{\"for\":{\"j\":%d},\"nodes\":[{\"id\":\"k[i,"
                 "j,l]\","
                 "\"for\":{\"l\":%d},\"work\":{},\"reads\":[\"u[i][j][l]~%d,%d,%d\"]}]}]}]}",
                 (int)shape[0], (int)shape[1], (int)shape[2], (int)cut[0], (int)cut[1], (int)cut[2], (int)cut[0],
                 (int)cut[1], (int)cut[2], wide[0], wide[1], wide[2]);
        ck_assert_msg(gantry_graph_parse(&g, text, strlen(text), "t", NULL, NULL, &err) == GANTRY_OK, "%s", err.text);
        ck_assert_int_eq(gantry_graph_check(g, NULL), GANTRY_OK);
        const gy_node *pack = NULL, *unpack = NULL;
        for (size_t i = 0; i < g->nodes.count; i++) {
            const char *name = g->nodes.at[i].id;
            pack = !strncmp(name, "pack.", 5) && strstr(name, "[0,0,0]") ? &g->nodes.at[i] : pack;
            unpack = !strncmp(name, "unpack.", 7) && strstr(name, "[0,0,0]") ? &g->nodes.at[i] : unpack;
        }
        snprintf(id, sizeof id, "case %zu: %.60s", c, text);
        if (elements > 0) {
            ck_assert_msg(pack && unpack, "%s", id);
            ck_assert_double_eq_tol(pack->contiguous, 8 * elements / places, 1e-9);
            ck_assert_double_eq_tol(pack->bytes, 16 * elements, 1e-9);
            ck_assert_double_eq(unpack->contiguous, 8 * (double)(own[2] + (cut[2] > 1 ? wide[2] : 0)));
        }
        for (size_t i = 0; i < g->nodes.count; i++)
            ck_assert(g->nodes.at[i].kernel != GY_NONE || g->nodes.at[i].contiguous == 0);
        gantry_graph_free(g);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("halo pieces");
    TCase *c = tcase_create("all");
    tcase_add_test(c, first_tile);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
