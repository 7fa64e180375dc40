/* SPDX-License-Identifier: Apache-2.0 */
/* References: what they mean in rows. Expected rows follow from part i of n rows being [i*n//p, (i+1)*n//p). */
#include "suite.h"
#include <stdio.h>
#include <string.h>

/* x: 10 rows in 4 parts, that is [0,2) [2,5) [5,7) [7,10); A: 6 x 9 in 2 x 3 tiles; z is not cut; e: 2 rows in 4 parts.
 */
static gantry_graph *with_reference(const char *reference)
{
    char text[1024];
    snprintf(text, sizeof text,
             "{\"gantry\": 1, \"params\": {\"p\": 4, \"n\": 10}, \"buffers\": {"
             "\"x\": {\"dtype\": \"f32\", \"shape\": [\"n\"], \"split\": \"p\", \"init\": 0},"
             "\"z\": {\"dtype\": \"f32\", \"shape\": [7], \"init\": 0},"
             "\"e\": {\"dtype\": \"f32\", \"shape\": [2], \"split\": \"p\", \"init\": 0},"
             "\"A\": {\"dtype\": \"f32\", \"shape\": [6, 9], \"tiles\": [2, 3], \"init\": 0}},"
             "\"nodes\": [{\"id\": \"w\", \"work\": {}, \"reads\": [\"%s\"]}]}",
             reference);
    return graph_of(text);
}

static void check_rows(const char *reference, int64_t first, int64_t last, int32_t before, int32_t after)
{
    gantry_graph *g = with_reference(reference);
    ck_assert_uint_eq(g->nodes.at[0].accesses, 1);
    const gy_access *a = &g->access.at[0];
    ck_assert_msg(a->first == first && a->last == last && a->before == before && a->after == after,
                  "%s is rows [%lld, %lld) with halo %d, %d; not [%lld, %lld) with %d, %d", reference,
                  (long long)a->first, (long long)a->last, a->before, a->after, (long long)first, (long long)last,
                  before, after);
    check_stable(g);
    gantry_graph_free(g);
}

START_TEST(whole_and_parts)
{
    check_rows("x", 0, 10, 0, 0);
    check_rows(" x ", 0, 10, 0, 0);
    check_rows("z", 0, 7, 0, 0);
    check_rows("x[0]", 0, 2, 0, 0);
    check_rows("x[p-1]", 7, 10, 0, 0);
    check_rows("x[1:3]", 2, 7, 0, 0);
    check_rows("x[ 1 : p ]", 2, 10, 0, 0);
    check_rows("x[min(3, max(1, 2))]", 5, 7, 0, 0);
    check_rows("x[2:2]", 5, 5, 0, 0);
}
END_TEST

START_TEST(rows)
{
    check_rows("x{3:8}", 3, 8, 0, 0);
    check_rows("z{0:7}", 0, 7, 0, 0);
    check_rows("x{n-2:n}", 8, 10, 0, 0);
    check_rows("z{4:4}", 4, 4, 0, 0);
}
END_TEST

START_TEST(halos)
{
    check_rows("x[1]~1", 1, 6, 1, 1);
    check_rows("x[1] ~ 2:1", 0, 6, 2, 1);
    check_rows("x[0]~3", 0, 5, 0, 3);
    check_rows("x[3]~3", 4, 10, 3, 0);
    check_rows("x[1:3]~1", 1, 8, 1, 1);
    check_rows("x{3:5}~n", 0, 10, 3, 5);
    check_rows("x[1]~0:1", 2, 6, 0, 1);
    check_rows("x~5", 0, 10, 0, 0);
    check_rows("e[1]~1", 0, 2, 0, 1);
    check_rows("e[0]~1", 0, 0, 0, 0); /* what is empty stays empty */
    check_rows("e[2]~1", 1, 1, 0, 0);
    check_rows("x[2:2]~3", 5, 5, 0, 0);
}
END_TEST

START_TEST(clamps)
{
    check_rows("clamp(x[-1])", 0, 2, 0, 0);
    check_rows("clamp(x[p])", 7, 10, 0, 0);
    check_rows("clamp(x[-1:2])", 0, 5, 0, 0);
    check_rows("clamp(x[2:9])", 5, 10, 0, 0);
    check_rows("x[clamp(2:9)]", 5, 10, 0, 0);
    check_rows("x[clamp(-5, 0, p-1)]", 0, 2, 0, 0);
    check_rows("clamp(x{-3:4})", 0, 4, 0, 0);
    check_rows("x{clamp(8:40)}", 8, 10, 0, 0);
    check_rows("clamp(x[7:9])", 10, 10, 0, 0);
    check_rows("x[clamp(p+1)]", 7, 10, 0, 0);
    check_rows("x[clamp(-1)]", 0, 2, 0, 0);
    check_rows("x[ clamp( min(1, 9) ) ]~1", 1, 6, 1, 1);
    check_rows("x[clamp(clamp(9, 0, 5))]", 7, 10, 0, 0);
    check_rows("x[clamp(1, 0, 2):min(9, 3)]", 2, 7, 0, 0);
    check_rows("x[clamp(0, 1, 2) + (1)]", 5, 7, 0, 0);
    check_rows("clamp( x[0:1]~1 )", 0, 3, 0, 1);
}
END_TEST

/* Rows of a tiled buffer are its tiles, row by row: 2 x 3 of them. */
START_TEST(tiles)
{
    check_rows("A", 0, 6, 0, 0);
    check_rows("A[0][0]", 0, 1, 0, 0);
    check_rows("A[1][2]", 5, 6, 0, 0);
    check_rows("A[1][*]", 3, 6, 0, 0);
    check_rows("A[*][*]", 0, 6, 0, 0);
    check_rows("A[0:2][0:3]", 0, 6, 0, 0);
    check_rows("A[0][1:3]", 1, 3, 0, 0);
    check_rows("clamp(A[5][-1])", 3, 4, 0, 0);
    check_rows("A[clamp(0:9)][*]", 0, 6, 0, 0);
    check_rows("A[1][clamp(3)]", 5, 6, 0, 0);
    check_rows("A[clamp(-2)][1]", 1, 2, 0, 0);
}
END_TEST

/* A list of tiles of a kernel is one access a tile. */
START_TEST(tile_lists)
{
    gantry_graph *g =
        graph_of("{\"gantry\": 1, \"kernels\": {\"k\": {\"args\": [{\"name\": \"x\", \"access\": \"read\", "
                 "\"list\": true}]}}, \"buffers\": {\"A\": {\"dtype\": \"f32\", \"shape\": [6, 9], \"tiles\": [2, 3], "
                 "\"init\": 0}}, \"nodes\": ["
                 "{\"id\": \"column\", \"kernel\": \"k\", \"args\": {\"x\": \"A[*][1]\"}},"
                 "{\"id\": \"none\", \"kernel\": \"k\", \"args\": {\"x\": \"A[1][2:2]\"}},"
                 "{\"id\": \"one\", \"kernel\": \"k\", \"args\": {\"x\": \"A[1][2]\"}}]}");
    const gy_node *column = NODE(g, "column");
    ck_assert_uint_eq(column->accesses, 2);
    ck_assert_int_eq(g->access.at[column->access].first, 1);
    ck_assert_int_eq(g->access.at[column->access + 1].first, 4);
    check_stable(g);
    gantry_graph_free(g);
}
END_TEST

START_TEST(indices_of_blocks)
{
    static const int64_t first[] = { 0, 1, 3, 4 }, last[] = { 2, 6, 9, 10 };
    gantry_graph *g = graph_of(
        "{\"gantry\": 1, \"params\": {\"p\": 4}, \"buffers\": {\"x\": {\"dtype\": \"f32\", \"shape\": [10], "
        "\"split\": \"p\", \"init\": 0}}, \"nodes\": [{\"id\": \"w[i]\", \"for\": {\"i\": \"p\"}, \"work\": {}, "
        "\"reads\": [\"x[i]~i\"]}]}");
    ck_assert_uint_eq(g->nodes.count, 4);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(g->access.at[i].first, first[i]);
        ck_assert_int_eq(g->access.at[i].last, last[i]);
    }
    check_stable(g);
    gantry_graph_free(g);
}
END_TEST

/* Names may hold what no reference needs. */
START_TEST(odd_names)
{
    gantry_graph *g =
        graph_of("{\"gantry\": 1, \"buffers\": {\"net/w.0-a\": {\"dtype\": \"f32\", \"shape\": [4], \"split\": 2, "
                 "\"init\": 0}}, \"nodes\": [{\"id\": \"w\", \"work\": {}, \"reads\": [\"net/w.0-a[1]\"]}]}");
    ck_assert_int_eq(g->access.at[0].first, 2);
    check_stable(g);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    const TTest *const cases[] = {
        whole_and_parts, rows, halos, clamps, tiles, tile_lists, indices_of_blocks, odd_names
    };
    return RUN_CASES("references of graph files", cases);
}
