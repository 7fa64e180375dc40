/* SPDX-License-Identifier: Apache-2.0 */
/* Regions as rows and as text, tiles as bytes, launches as kernels see them, costs. */
#include "graph/build/build.h"
#include "graph/flow/flow.h"
#include "kernel/identity.h"
#include "kernels.h"
#include <math.h>
#include <string.h>

static gantry_graph *g;

static void set_up(void)
{
    g = gantry_graph_new("regions");
}

static void tear_down(void)
{
    gantry_graph_free(g);
}

static gy_constant number(double value)
{
    return (gy_constant){ .real = value };
}

static void must_check(void)
{
    gantry_error err;
    ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
}

static const gy_access *access_at(gantry_node n, uint32_t k)
{
    ck_assert_uint_lt(k, g->nodes.at[n.id].accesses);
    return &g->access.at[g->nodes.at[n.id].access + k];
}

static void assert_text(const gy_access *a, const char *expected)
{
    gy_text text = { 0 };
    gy_access_text(&text, g, a);
    ck_assert_str_eq(text.at, expected);
    gy_text_free(&text);
}

/* ---- parts ---- */

/* floor(i n / p), also where i n does not fit into 64 bits. */
START_TEST(part_bounds)
{
    for (int n = 0; n < 40; n++) {
        for (int p = 1; p < 50; p++)
            for (int i = 0; i <= p; i++)
                ck_assert_int_eq(gy_part_bound(n, p, i), i * n / p);
    }
    /* By Python: (2**31 - 3) * (2**63 - 1) // (2**31 - 2) and 12345 * (10**18 + 7) // 54321. */
    ck_assert_int_eq(gy_part_bound(INT64_MAX, 2147483646, 2147483645), INT64_C(9223372032559808506));
    ck_assert_int_eq(gy_part_bound(INT64_C(1000000000000000007), 54321, 12345), INT64_C(227260175622687360));
}
END_TEST

typedef struct row_case {
    gantry_region region;
    int first, last, before, after;
    const char *text;
} row_case;

/* 10 rows in 4 parts: 0-1, 2-4, 5-6, 7-9. */
START_TEST(rows_of_regions)
{
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 2, SHAPE(10, 3));
    gantry_buffer s = gantry_graph_buffer(g, "s", GANTRY_F32, 1, SHAPE(2));
    gantry_buffer_split(g, x, 4);
    gantry_buffer_split(g, s, 3); /* more parts than rows: 0-0 empty, 0, 1 */
    const row_case cases[] = {
        { gantry_all(x), 0, 10, 0, 0, "x" },
        { gantry_part(x, 0), 0, 2, 0, 0, "x[0]" },
        { gantry_part(x, 3), 7, 10, 0, 0, "x[3]" },
        { gantry_parts(x, 1, 3), 2, 7, 0, 0, "x[1:3]" },
        { gantry_parts(x, 0, 4), 0, 10, 0, 0, "x[0:4]" },
        { gantry_parts(x, 2, 2), 5, 5, 0, 0, "x[2:2]" },
        { gantry_rows(x, 3, 8), 3, 8, 0, 0, "x{3:8}" },
        { gantry_rows(x, 0, 10), 0, 10, 0, 0, "x" },
        { gantry_rows(x, 4, 4), 4, 4, 0, 0, "x{4:4}" },
        { gantry_halo(gantry_part(x, 1), 1, 1), 1, 6, 1, 1, "x[1]~1" },
        { gantry_halo(gantry_part(x, 1), 9, 0), 0, 5, 2, 0, "x[1]~2:0" },
        { gantry_halo(gantry_part(x, 0), 1, 1), 0, 3, 0, 1, "x[0]~0:1" },
        { gantry_halo(gantry_part(x, 3), 2, 2), 5, 10, 2, 0, "x[3]~2:0" },
        { gantry_halo(gantry_part(x, 2), 100, 100), 0, 10, 5, 3, "x[2]~5:3" },
        { gantry_halo(gantry_rows(x, 4, 6), 1, 2), 3, 8, 1, 2, "x{4:6}~1:2" },
        { gantry_halo(gantry_all(x), 3, 3), 0, 10, 0, 0, "x" },
        { gantry_halo(gantry_rows(x, 4, 4), 1, 1), 4, 4, 0, 0, "x{4:4}" },
        { gantry_part(s, 0), 0, 0, 0, 0, "s[0]" },
        { gantry_part(s, 1), 0, 1, 0, 0, "s[1]" },
        { gantry_halo(gantry_part(s, 0), 1, 1), 0, 0, 0, 0, "s[0]" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gantry_node n = gantry_graph_work(g, NULL);
        gantry_node_write(g, n, cases[i].region);
        ck_assert_msg(!g->error.status, "%s", g->error.text);
        const gy_access *a = access_at(n, 0);
        ck_assert_int_eq(a->first, cases[i].first);
        ck_assert_int_eq(a->last, cases[i].last);
        ck_assert_int_eq(a->before, cases[i].before);
        ck_assert_int_eq(a->after, cases[i].after);
        ck_assert_int_eq(gy_access_bytes(g, a),
                         a->buffer == x.id ? 12 * (a->last - a->first) : 4 * (a->last - a->first));
        assert_text(a, cases[i].text);
    }
}
END_TEST

/* ---- tiles ---- */

/* 5 x 7 in 2 x 3 tiles: heights 2 and 3, widths 2, 2 and 3. */
START_TEST(shapes_of_tiles)
{
    gantry_buffer A = gantry_graph_buffer(g, "A", GANTRY_F64, 2, SHAPE(5, 7));
    gantry_buffer_tiles(g, A, 2, 3);
    const gy_buffer *b = &g->buffers.at[A.id];
    const int shapes[6][2] = { { 2, 2 }, { 2, 2 }, { 2, 3 }, { 3, 2 }, { 3, 2 }, { 3, 3 } };
    int64_t offset = 0;
    ck_assert_int_eq(b->rows, 6);
    for (int t = 0; t < 6; t++) {
        ck_assert_int_eq(gy_tile_shape(b, t)[0], shapes[t][0]);
        ck_assert_int_eq(gy_tile_shape(b, t)[1], shapes[t][1]);
        ck_assert_int_eq(gy_buffer_offset(b, t), offset);
        offset += 8 * shapes[t][0] * shapes[t][1];
    }
    ck_assert_int_eq(gy_buffer_offset(b, 6), 8 * 35);
    ck_assert_uint_eq(b->bytes, 8 * 35);
}
END_TEST

/* Any shape: tiles cover the array, each at its place. Also more tiles than rows, and one tile. */
START_TEST(tiles_cover)
{
    int made = 0;
    for (int h = 0; h < 8; h++) {
        for (int t = 1; t < 10; t++) {
            char name[16];
            snprintf(name, sizeof name, "T%d", made++);
            gantry_buffer T = gantry_graph_buffer(g, name, GANTRY_I8, 2, SHAPE(h, 13));
            gantry_buffer_tiles(g, T, t, 4);
            const gy_buffer *b = &g->buffers.at[T.id];
            for (int i = 0; i < t; i++) {
                for (int j = 0; j < 4; j++) {
                    ck_assert_int_eq(gy_tile_shape(b, i * 4 + j)[0], (i + 1) * h / t - i * h / t);
                    ck_assert_int_eq(gy_tile_shape(b, i * 4 + j)[1], (j + 1) * 13 / 4 - j * 13 / 4);
                }
            }
            ck_assert_int_eq(gy_buffer_offset(b, 4 * t), h * 13);
        }
    }
}
END_TEST

/* Which accesses regions of tiles become depends on who gets them. */
START_TEST(lists_of_tiles)
{
    gantry_buffer A = gantry_graph_buffer(g, "A", GANTRY_F32, 2, SHAPE(6, 8));
    gantry_buffer_tiles(g, A, 3, 4);
    gantry_buffer_init_value(g, A, 0);
    gantry_node w = gantry_graph_work(g, "w"), l = gantry_graph_launch(g, "l", do_nothing, NULL);
    gantry_node_read(g, w, gantry_tiles(A, 0, 2, 1, 3)); /* two runs */
    gantry_node_read(g, w, gantry_tiles(A, 1, 3, 0, 4)); /* whole rows: one run */
    gantry_node_read(g, w, gantry_all(A));
    gantry_node_read(g, w, gantry_tiles(A, 1, 1, 0, 4));
    gantry_node_read(g, l, gantry_tiles(A, 0, 2, 1, 3)); /* a list of 4 */
    gantry_node_read(g, l, gantry_tile(A, 2, 2));
    gantry_node_read(g, l, gantry_tiles(A, 0, 2, 3, 3));
    must_check();
    const int runs[5][2] = { { 1, 3 }, { 5, 7 }, { 4, 12 }, { 0, 12 }, { 0, 0 } };
    ck_assert_uint_eq(g->nodes.at[w.id].accesses, 5);
    for (uint32_t k = 0; k < 5; k++) {
        ck_assert_int_eq(access_at(w, k)->first, runs[k][0]);
        ck_assert_int_eq(access_at(w, k)->last, runs[k][1]);
        ck_assert_int_eq(access_at(w, k)->is_list, 0);
    }
    assert_text(access_at(w, 0), "A[0][1:3]");
    assert_text(access_at(w, 2), "A[1:3][0:4]");
    const int tiles[6] = { 1, 2, 5, 6, 10, 0 };
    ck_assert_uint_eq(g->nodes.at[l.id].accesses, 6);
    for (uint32_t k = 0; k < 6; k++) {
        ck_assert_int_eq(access_at(l, k)->first, tiles[k]);
        ck_assert_int_eq(access_at(l, k)->last, k < 5 ? tiles[k] + 1 : 0);
        ck_assert_int_eq(access_at(l, k)->is_list, k != 4);
        ck_assert_uint_eq(access_at(l, k)->arg, k < 4 ? 0 : k - 3);
    }
    gy_text text = { 0 };
    ck_assert_uint_eq(gy_access_list_text(&text, g, access_at(l, 0), 6), 4);
    ck_assert_str_eq(text.at, "A[0:2][1:3]");
    text.length = 0;
    ck_assert_uint_eq(gy_access_list_text(&text, g, access_at(l, 4), 2), 1);
    ck_assert_str_eq(text.at, "A[2][2]");
    text.length = 0;
    ck_assert_uint_eq(gy_access_list_text(&text, g, access_at(l, 5), 1), 1);
    ck_assert_str_eq(text.at, "A[0:0][0:0]");
    gy_text_free(&text);
}
END_TEST

/* ---- names of rows ---- */

static void assert_named(const gy_named_rows *n, int64_t first, int64_t last, const char *expected)
{
    gy_text text = { 0 };
    gy_named_rows_text(&text, n, first, last);
    ck_assert_str_eq(text.at, expected);
    gy_text_free(&text);
}

START_TEST(names_of_rows)
{
    gy_named_rows plain = { .name = "x", .rows = 10 };
    assert_named(&plain, 0, 10, "x");
    assert_named(&plain, 0, 9, "x{0:9}");
    assert_named(&plain, 4, 4, "x{4:4}");
    gy_named_rows later = { .name = "x", .generation = 2, .rows = 10 };
    assert_named(&later, 0, 10, "x@2");
    assert_named(&later, 1, 10, "x@2{1:10}");
    const int64_t bounds[] = { 0, 3, 3, 6, 10 }; /* part 1 has no rows */
    gy_named_rows split = { .name = "x", .rows = 10, .parts = 4, .part_first = bounds };
    assert_named(&split, 0, 10, "x");
    assert_named(&split, 0, 3, "x[0]");
    assert_named(&split, 3, 6, "x[2]");
    assert_named(&split, 3, 10, "x[2:4]");
    assert_named(&split, 0, 6, "x[0:3]");
    assert_named(&split, 2, 6, "x{2:6}");
    assert_named(&split, 3, 7, "x{3:7}");
    assert_named(&split, 3, 3, "x{3:3}");
    gy_named_rows tiled = { .name = "A", .rows = 12, .axes = 2, .tiles = (int64_t[]){ 3, 4, 1, 1 } };
    assert_named(&tiled, 0, 12, "A");
    assert_named(&tiled, 5, 6, "A[1][1]");
    assert_named(&tiled, 5, 8, "A[1][1:4]");
    assert_named(&tiled, 4, 12, "A[1:3][0:4]");
    assert_named(&tiled, 3, 6, "A[0][3]..[1][1]");
    assert_named(&tiled, 3, 5, "A[0][3]..[1][0]"); /* two tiles of two rows, of a box of 2 x 4 */
    gy_named_rows column = { .name = "A", .generation = 1, .rows = 3, .axes = 2, .tiles = (int64_t[]){ 3, 1, 1, 1 } };
    assert_named(&column, 1, 3, "A@1[1:3][0]");
}
END_TEST

/* A run of tiles is a box where it has as many tiles as the box around them, counted tile by tile. */
START_TEST(runs_of_tiles)
{
    int64_t tiles[GANTRY_TILE_AXES] = { 2, 3, 2, 2 };
    gy_named_rows n = { .name = "A", .rows = 24, .axes = 4, .tiles = tiles };
    for (int64_t first = 0; first < 24; first++) {
        for (int64_t last = first + 1; last <= 24 && last - first < 24; last++) {
            int64_t low[4] = { 9, 9, 9, 9 }, high[4] = { 0 }, inside = 0;
            for (int64_t t = 0; t < 24; t++) {
                const int64_t at[4] = { t / 12, t / 4 % 3, t / 2 % 2, t % 2 };
                for (int k = 0; k < 4 && t >= first && t < last; k++) {
                    low[k] = at[k] < low[k] ? at[k] : low[k];
                    high[k] = at[k] > high[k] ? at[k] : high[k];
                }
            }
            for (int64_t t = 0; t < 24; t++) {
                const int64_t at[4] = { t / 12, t / 4 % 3, t / 2 % 2, t % 2 };
                bool in = true;
                for (int k = 0; k < 4; k++)
                    in = in && at[k] >= low[k] && at[k] <= high[k];
                inside += in;
            }
            gy_text text = { 0 };
            gy_named_rows_text(&text, &n, first, last);
            ck_assert_msg((strstr(text.at, "..") == NULL) == (inside == last - first), "%d to %d: %s", (int)first,
                          (int)last, text.at);
            gy_text_free(&text);
        }
    }
}
END_TEST

/* ---- launches ---- */

START_TEST(launch_of_kernel)
{
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 2, SHAPE(10, 3));
    gantry_buffer y = gantry_graph_buffer(g, "y", GANTRY_F32, 2, SHAPE(10, 3));
    gantry_buffer_split(g, x, 4);
    gantry_buffer_init_value(g, x, 1);
    gantry_node n = gantry_graph_kernel(g, "n", "t_scale");
    gantry_node_arg(g, n, "y", gantry_all(y));
    gantry_node_arg(g, n, "x", gantry_halo(gantry_part(x, 1), 1, 1)); /* rows 1 to 5, own 2 to 4 */
    gantry_node m = gantry_graph_kernel(g, "m", "t_scale");
    gantry_node_arg(g, m, "x", gantry_part(x, 0));
    gantry_node_arg_as(g, m, "y", gantry_all(y), GANTRY_SUM);
    gantry_node_scalar(g, m, "a", 4);
    gantry_node_cost(g, m, 5, 6);
    gantry_node_scratch(g, m, 7);
    must_check();
    gantry_launch l;
    gantry_arg args[3];
    ck_assert_uint_eq(gy_launch_args(g, n.id), 3);
    ck_assert_int_eq(gy_launch_describe(g, n.id, 0, &l, args, NULL), GANTRY_OK);
    ck_assert_int_eq(l.args, 3);
    ck_assert_str_eq(l.node, "n");
    ck_assert_ptr_eq(l.arg, args);
    ck_assert_str_eq(args[0].name, "a");
    ck_assert(args[0].number == 2.5 && args[0].integer == 0 && args[0].access == 0 && args[0].rank == 0);
    ck_assert_str_eq(args[1].name, "x");
    ck_assert_int_eq(args[1].access, GANTRY_READ);
    ck_assert_int_eq(args[1].dtype, GANTRY_F32);
    ck_assert(args[1].rank == 2 && args[1].shape[0] == 10 && args[1].shape[1] == 3);
    ck_assert(args[1].first_row == 1 && args[1].rows == 5 && args[1].own_first == 2 && args[1].own_rows == 3);
    ck_assert(args[1].row_bytes == 12 && args[1].count == 1 && !args[1].items && args[1].tile[0] == -1);
    ck_assert_ptr_null(args[1].data);
    ck_assert_int_eq(args[2].access, GANTRY_WRITE);
    ck_assert_ptr_eq(gy_launch_arg_of(g, n.id, args, 0), &args[1]); /* accesses are in the manifest's order */
    ck_assert_ptr_eq(gy_launch_arg_of(g, n.id, args, 1), &args[2]);
    /* flops = x.size + 7 y.count = 15 + 7; bytes = 60 + 120 + 2500; scratch = 8 * 5 + 10 * 3. */
    const gy_node *node = &g->nodes.at[n.id];
    ck_assert(node->flops == 22 && node->bytes == 2680 && node->scratch == 70);
    ck_assert_uint_eq(l.scratch_bytes, 70);
    node = &g->nodes.at[m.id];
    ck_assert(node->flops == 5 && node->bytes == 6 && node->scratch == 7);
    ck_assert_int_eq(gy_launch_describe(g, m.id, 0, &l, args, NULL), GANTRY_OK);
    ck_assert(args[0].number == 4 && args[0].integer == 4 && args[2].access == GANTRY_SUM);
    void *user;
    ck_assert(gy_node_function(g, m.id, &user) == do_nothing);
}
END_TEST

/* A region that need not be given: in the middle, so that those behind keep their places, and of a wider dtype than
 * what is computed in. */
START_TEST(launch_without_a_region)
{
    static const gantry_kernel_arg arg[] = {
        { .name = "x", .access = GANTRY_READ, .same = 'T' },
        { .name = "given", .access = GANTRY_READ, .dtypes = GANTRY_DTYPE_BIT(GANTRY_F64), .optional = 1 },
        { .name = "y", .access = GANTRY_WRITE, .same = 'T' },
    };
    static const gantry_kernel kernel = { .struct_size = sizeof kernel,
                                          .name = "t_optional",
                                          GANTRY_KERNEL_ARGS(arg),
                                          .flops = "x.size + 100 * given.rows + given.last0",
                                          .scratch = "given.bytes",
                                          .host = do_nothing };
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, SHAPE(10));
    gantry_buffer y = gantry_graph_buffer(g, "y", GANTRY_F32, 1, SHAPE(10));
    gantry_buffer z = gantry_graph_buffer(g, "z", GANTRY_F64, 1, SHAPE(3));
    gantry_buffer_init_value(g, x, 1);
    gantry_buffer_init_value(g, z, 1);
    gantry_graph_add_kernel(g, &kernel);
    gantry_node node[2];
    for (int i = 0; i < 2; i++) {
        node[i] = gantry_graph_kernel(g, NULL, "t_optional");
        gantry_node_arg(g, node[i], "y", gantry_all(y));
        gantry_node_arg(g, node[i], "x", gantry_all(x));
    }
    gantry_node_arg(g, node[1], "given", gantry_all(z));
    must_check();
    for (int i = 0; i < 2; i++) {
        gantry_launch l;
        gantry_arg args[3];
        memset(args, 0x5a, sizeof args);
        ck_assert_uint_eq(gy_launch_args(g, node[i].id), 3);
        ck_assert_int_eq(gy_launch_describe(g, node[i].id, 0, &l, args, NULL), GANTRY_OK);
        ck_assert_int_eq(l.args, 3);
        ck_assert_str_eq(args[1].name, "given");
        ck_assert(args[1].access == (i ? GANTRY_READ : 0) && args[1].rank == i && args[1].rows == 3 * i);
        ck_assert(!args[1].data && !args[1].items && args[2].access == GANTRY_WRITE);
        ck_assert_ptr_eq(gy_launch_arg_of(g, node[i].id, args, 1), &args[i ? 1 : 2]);
        const gy_node *n = &g->nodes.at[node[i].id];
        ck_assert(n->flops == 10 + 303 * i && n->scratch == 24 * i && n->bytes == 80 + 24 * i);
        ck_assert_int_eq(gy_node_dtype(g, n), GANTRY_F32);
    }
}
END_TEST

START_TEST(launch_with_lists)
{
    gantry_buffer A = gantry_graph_buffer(g, "A", GANTRY_F64, 2, SHAPE(5, 7));
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F64, 1, SHAPE(4));
    gantry_buffer_tiles(g, A, 2, 3);
    gantry_buffer_init_value(g, A, 1);
    gantry_buffer_init_value(g, x, 1);
    gantry_node n = gantry_graph_kernel(g, NULL, "t_gather");
    gantry_node_read(g, n, gantry_rows(x, 1, 3)); /* further regions follow the named ones, in the order given */
    gantry_node_scalar_dynamic(g, n, "n", 3);
    gantry_node_arg(g, n, "to", gantry_tile(A, 0, 0));
    gantry_node_read(g, n, gantry_tiles(A, 1, 2, 0, 2));
    gantry_node_arg(g, n, "tiles", gantry_tiles(A, 0, 2, 1, 3));
    gantry_node none = gantry_graph_kernel(g, NULL, "t_gather");
    gantry_node_arg(g, none, "tiles", gantry_tiles(A, 0, 2, 1, 1));
    gantry_node_arg(g, none, "to", gantry_tile(A, 1, 2));
    gantry_node_scalar(g, none, "n", 3);
    must_check();
    ck_assert_str_eq(gantry_graph_node_id(g, n), "t_gather");
    ck_assert_str_eq(gantry_graph_node_id(g, none), "t_gather#1");
    gantry_launch l;
    gantry_arg args[16];
    ck_assert_uint_eq(gy_launch_args(g, n.id), 5 + 4 + 2);
    ck_assert_int_eq(gy_launch_describe(g, n.id, 0, &l, args, NULL), GANTRY_OK);
    ck_assert_int_eq(l.args, 5);
    /* Tiles (0,1), (0,2), (1,1), (1,2): heights 2 2 3 3, widths 2 3 2 3. */
    const int shape[4][2] = { { 2, 2 }, { 2, 3 }, { 3, 2 }, { 3, 3 } };
    ck_assert_int_eq(args[0].count, 4);
    ck_assert_str_eq(args[0].name, "tiles");
    ck_assert_int_eq(gy_arg_bytes(&args[0]), 8 * (4 + 6 + 6 + 9));
    for (int i = 0; i < 4; i++) {
        const gantry_arg *t = &args[0].items[i];
        ck_assert(t->shape[0] == shape[i][0] && t->shape[1] == shape[i][1] && t->rows == shape[i][0]);
        ck_assert(t->row_bytes == 8 * shape[i][1] && t->tile[0] == i / 2 && t->tile[1] == 1 + i % 2);
        ck_assert(t->first_row == 0 && t->own_first == 0 && t->own_rows == t->rows && t->count == 1);
        ck_assert_ptr_eq(gy_launch_arg_of(g, n.id, args, (uint32_t)i), t);
    }
    ck_assert(args[1].tile[0] == 0 && args[1].tile[1] == 0 && !args[1].items && args[1].access == GANTRY_READWRITE);
    ck_assert(args[2].number == 3 && args[2].integer == 3);
    ck_assert_str_eq(args[3].name, "x");
    ck_assert(args[3].first_row == 1 && args[3].rows == 2);
    ck_assert_str_eq(args[4].name, "A");
    ck_assert_int_eq(args[4].count, 2);
    ck_assert(args[4].items[1].tile[0] == 1 && args[4].items[1].tile[1] == 1);
    ck_assert_ptr_eq(gy_launch_arg_of(g, n.id, args, 4), &args[1]);
    ck_assert_ptr_eq(gy_launch_arg_of(g, n.id, args, 5), &args[3]);
    ck_assert_ptr_eq(gy_launch_arg_of(g, n.id, args, 7), &args[4].items[1]);
    ck_assert(g->nodes.at[n.id].flops == 12);
    ck_assert(g->scalar.at[g->nodes.at[n.id].scalar].dynamic);
    /* An empty list is a list. */
    ck_assert_uint_eq(gy_launch_args(g, none.id), 3);
    ck_assert_int_eq(gy_launch_describe(g, none.id, 0, &l, args, NULL), GANTRY_OK);
    ck_assert(args[0].count == 0 && args[0].items && g->nodes.at[none.id].flops == 0);
}
END_TEST

START_TEST(launch_in_loop)
{
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 2, SHAPE(10, 3));
    gantry_buffer y = gantry_graph_buffer(g, "y", GANTRY_F32, 2, SHAPE(10, 3));
    gantry_buffer_init_value(g, x, 1);
    const gy_expr *e;
    ck_assert_int_eq(gy_expr_parse(&e, &g->arena, "it / 4", 6, GANTRY_E_GRAPH, NULL, NULL), GANTRY_OK);
    gantry_graph_repeat(g, 4);
    gantry_node n = gantry_graph_kernel(g, "n", "t_scale");
    gantry_node_arg(g, n, "x", gantry_all(x));
    gantry_node_arg(g, n, "y", gantry_all(y));
    gy_node_scalar_expr(g, n, "a", e, true);
    gantry_graph_repeat_end(g);
    must_check();
    for (int it = 0; it < 4; it++) {
        gantry_launch l;
        gantry_arg args[3];
        ck_assert_int_eq(gy_launch_describe(g, n.id, it, &l, args, NULL), GANTRY_OK);
        ck_assert(args[0].number == it / 4.0 && l.iteration == it);
    }
}
END_TEST

/* Without a manifest: 0 flops, the bytes of all regions; nothing for work. */
START_TEST(default_costs)
{
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, SHAPE(10));
    gantry_buffer y = gantry_graph_buffer(g, "y", GANTRY_F32, 1, SHAPE(10));
    gantry_node f = gantry_graph_fill(g, NULL, gantry_rows(x, 0, 10), 0);
    gantry_node c = gantry_graph_copy(g, NULL, gantry_rows(x, 0, 5), gantry_rows(y, 5, 10));
    int seven = 7;
    gantry_node l = gantry_graph_host(g, NULL, do_nothing, &seven);
    gantry_node_readwrite(g, l, gantry_all(x));
    gantry_node w = gantry_graph_work(g, NULL);
    gantry_node_read(g, w, gantry_all(x));
    must_check();
    ck_assert(g->nodes.at[f.id].bytes == 40 && g->nodes.at[f.id].flops == 0);
    ck_assert(g->nodes.at[c.id].bytes == 40);
    ck_assert(g->nodes.at[l.id].bytes == 40);
    ck_assert(g->nodes.at[w.id].bytes == 0);
    void *user;
    ck_assert(gy_node_function(g, l.id, &user) == do_nothing && user == &seven);
    ck_assert(!gy_node_function(g, w.id, &user) && !user);
    ck_assert(gy_fill_is_identity(g, f.id, GANTRY_SUM));
    ck_assert(!gy_fill_is_identity(g, f.id, GANTRY_PROD) && !gy_fill_is_identity(g, c.id, GANTRY_SUM));
    ck_assert_str_eq(gantry_graph_node_id(g, f), "fill");
    ck_assert_str_eq(gantry_graph_node_id(g, l), "host");
}
END_TEST

/* ---- late accesses ---- */

/* Accesses, scalars and afters given in any order to any node: the same graph as in node order. */
static uint64_t build_in_order(bool shuffled, uint64_t seed)
{
    enum { N = 20, K = 6 };
    gantry_graph *h = gantry_graph_new("late");
    gantry_buffer x = gantry_graph_buffer(h, "x", GANTRY_F32, 1, SHAPE(N * K));
    gantry_buffer_init_value(h, x, 0);
    gantry_node n[N];
    for (int i = 0; i < N && shuffled; i++)
        n[i] = gantry_graph_work(h, "n");
    int next[N] = { 0 };
    for (int step = 0; step < N * K; step++) {
        int i = shuffled ? (int)(next_random(&seed) % N) : step / K;
        while (next[i] == K)
            i = (i + 1) % N;
        if (!shuffled && next[i] == 0)
            n[i] = gantry_graph_work(h, "n");
        gantry_node_read(h, n[i], gantry_rows(x, i * K + next[i], i * K + next[i] + 1));
        if (i > 0 && next[i] % 2)
            gantry_node_after(h, n[i], n[i - 1 - (next[i] % i)]);
        next[i]++;
    }
    gantry_error err;
    ck_assert_msg(gantry_graph_check(h, &err) == GANTRY_OK, "%s", err.text);
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < K; k++) {
            const gy_access *a = &h->access.at[h->nodes.at[n[i].id].access + (uint32_t)k];
            ck_assert_int_eq(a->first, i * K + k);
            ck_assert_uint_eq(a->arg, (uint32_t)k);
        }
    }
    uint64_t hash = h->hash;
    gantry_graph_free(h);
    return hash;
}

START_TEST(late_accesses)
{
    uint64_t expected = build_in_order(false, 1);
    for (uint64_t seed = 1; seed <= 50; seed++)
        ck_assert_uint_eq(build_in_order(true, seed), expected);
}
END_TEST

/* ---- ids ---- */

START_TEST(numbered_ids)
{
    gantry_node a = gantry_graph_work(g, "gemm"), b = gantry_graph_work(g, "gemm#2"), c = gantry_graph_work(g, "gemm");
    gantry_node d = gantry_graph_work(g, "gemm"), e = gantry_graph_work(g, "gemm#2");
    ck_assert_str_eq(gantry_graph_node_id(g, a), "gemm");
    ck_assert_str_eq(gantry_graph_node_id(g, b), "gemm#2");
    ck_assert_str_eq(gantry_graph_node_id(g, c), "gemm#1");
    ck_assert_str_eq(gantry_graph_node_id(g, d), "gemm#3");
    ck_assert_str_eq(gantry_graph_node_id(g, e), "gemm#2#1");
    ck_assert_uint_eq(gantry_graph_find_node(g, "gemm#3").id, d.id);
    ck_assert_uint_eq(gantry_graph_find_node(g, "none").id, GANTRY_NONE);
    ck_assert_uint_eq(gantry_graph_find_buffer(g, "none").id, GANTRY_NONE);
    ck_assert_uint_eq(gantry_graph_node_count(g), 5);
    ck_assert_ptr_null(gantry_graph_node_id(g, (gantry_node){ .id = 5 }));
}
END_TEST

/* ---- where ---- */

START_TEST(places_of_nodes)
{
    const struct {
        const char *on;
        bool is_expr;
    } cases[] = { { "gpu0", false },       { "nvidia-h200", false }, { "cpu", false }, { "3", true },
                  { "devices - 1", true }, { "7 % devices", true },  { "P1", false },  { "GPU (big)", false } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gantry_node n = gantry_graph_work(g, NULL);
        gantry_node_on(g, n, cases[i].on);
        const gy_node_extra *e = gy_node_extra_of(g, n.id);
        ck_assert_int_eq(e->on_expr != NULL, cases[i].is_expr);
        ck_assert_int_eq(e->on != NULL, !cases[i].is_expr);
    }
    must_check();
}
END_TEST

/* ---- identities ---- */

START_TEST(identities)
{
    union {
        float f;
        double d;
        int8_t i8;
        uint8_t u8;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        uint16_t bits;
    } v;
#define IDENTITY(type, op, member, expected)                                                                           \
    do {                                                                                                               \
        memset(&v, 0x55, sizeof v);                                                                                    \
        ck_assert(gy_identity(type, op, &v));                                                                          \
        ck_assert(v.member == (expected));                                                                             \
    } while (0)
    IDENTITY(GANTRY_F32, GANTRY_SUM, f, 0);
    IDENTITY(GANTRY_F32, GANTRY_PROD, f, 1);
    IDENTITY(GANTRY_F32, GANTRY_MIN, f, INFINITY);
    IDENTITY(GANTRY_F32, GANTRY_MAX, f, -INFINITY);
    IDENTITY(GANTRY_F64, GANTRY_PROD, d, 1);
    IDENTITY(GANTRY_F64, GANTRY_MIN, d, INFINITY);
    IDENTITY(GANTRY_F64, GANTRY_MAX, d, -INFINITY);
    IDENTITY(GANTRY_F16, GANTRY_PROD, bits, 0x3C00); /* NumPy: float16(1).view('u2'), and of inf, -inf */
    IDENTITY(GANTRY_F16, GANTRY_MIN, bits, 0x7C00);
    IDENTITY(GANTRY_F16, GANTRY_MAX, bits, 0xFC00);
    IDENTITY(GANTRY_BF16, GANTRY_PROD, bits, 0x3F80); /* the upper halves of f32 */
    IDENTITY(GANTRY_BF16, GANTRY_MIN, bits, 0x7F80);
    IDENTITY(GANTRY_BF16, GANTRY_MAX, bits, 0xFF80);
    IDENTITY(GANTRY_I8, GANTRY_MIN, i8, INT8_MAX);
    IDENTITY(GANTRY_I8, GANTRY_MAX, i8, INT8_MIN);
    IDENTITY(GANTRY_U8, GANTRY_MIN, u8, UINT8_MAX);
    IDENTITY(GANTRY_U8, GANTRY_MAX, u8, 0);
    IDENTITY(GANTRY_I32, GANTRY_MIN, i32, INT32_MAX);
    IDENTITY(GANTRY_I32, GANTRY_MAX, i32, INT32_MIN);
    IDENTITY(GANTRY_U32, GANTRY_MIN, u32, UINT32_MAX);
    IDENTITY(GANTRY_U32, GANTRY_PROD, u32, 1);
    IDENTITY(GANTRY_I64, GANTRY_MIN, i64, INT64_MAX);
    IDENTITY(GANTRY_I64, GANTRY_MAX, i64, INT64_MIN);
    IDENTITY(GANTRY_U64, GANTRY_MIN, u64, UINT64_MAX);
    IDENTITY(GANTRY_U64, GANTRY_MAX, u64, 0);
    ck_assert(!gy_identity(GANTRY_F32, GANTRY_READWRITE, &v));
    ck_assert(gy_is_identity(GANTRY_I32, GANTRY_MIN, number(INT32_MAX)) &&
              !gy_is_identity(GANTRY_I32, GANTRY_MAX, number(INT32_MAX)));
    ck_assert(gy_is_identity(GANTRY_U8, GANTRY_MAX, number(0)) && gy_is_identity(GANTRY_I8, GANTRY_MAX, number(-128)));
    ck_assert(gy_is_identity(GANTRY_F16, GANTRY_MIN, number(INFINITY)) &&
              !gy_is_identity(GANTRY_F16, GANTRY_MIN, number(65504)));
    ck_assert(gy_is_identity(GANTRY_I64, GANTRY_MAX, number(-0x1p63)) &&
              !gy_is_identity(GANTRY_I64, GANTRY_MIN, number(0x1p63)));
    ck_assert(gy_is_identity(GANTRY_F32, GANTRY_SUM, number(0)) && gy_is_identity(GANTRY_F32, GANTRY_PROD, number(1)));
    ck_assert(!gy_is_identity(GANTRY_F32, GANTRY_WRITE, number(0)));
    ck_assert(gy_is_identity(GANTRY_I64, GANTRY_MIN, gy_constant_whole(INT64_MAX)));
    ck_assert(!gy_is_identity(GANTRY_I64, GANTRY_MIN, gy_constant_whole(INT64_MAX - 1)));
    ck_assert(!gy_is_identity(GANTRY_U64, GANTRY_MIN, gy_constant_whole(-1)));
    static const gantry_dtype whole[] = { GANTRY_I8, GANTRY_I32, GANTRY_I64, GANTRY_U8, GANTRY_U32, GANTRY_U64 };
    static const gantry_access kinds[] = { GANTRY_SUM, GANTRY_PROD, GANTRY_MIN, GANTRY_MAX };
    for (size_t i = 0; i < 4 * sizeof whole / sizeof *whole; i++)
        ck_assert(gy_is_identity(whole[i / 4], kinds[i % 4], gy_identity_constant(whole[i / 4], kinds[i % 4])));
    ck_assert(gy_identity_constant(GANTRY_U64, GANTRY_MIN).real == 0x1p64); /* half as many are no identity */
    ck_assert(gy_is_identity(GANTRY_F16, GANTRY_PROD, gy_identity_constant(GANTRY_F16, GANTRY_PROD)));
}
END_TEST

/* ---- hash ---- */

typedef enum change {
    NO_CHANGE,
    SHAPE_OF_X,
    DTYPE_OF_X,
    NAME_OF_X,
    PARTS,
    OUTPUT,
    CLASS,
    ID,
    ROWS,
    HALO,
    MODE,
    AFTER,
    WITH,
    ON,
    TIME,
    PRIORITY,
    SHARE,
    COST,
    SCRATCH,
    COUNT,
    CARRY,
    UNTIL,
    FILL,
    EXTRA_NODE,
    CHANGES,
    SCALAR = CHANGES,
    GRAPH_NAME,
    SEED,
    ALL_CHANGES
} change;

static uint64_t hash_of(change c)
{
    gantry_graph *h = gantry_graph_new(c == GRAPH_NAME ? "other" : "hash");
    gantry_buffer x = gantry_graph_buffer(h, c == NAME_OF_X ? "z" : "x", c == DTYPE_OF_X ? GANTRY_F64 : GANTRY_F32, 2,
                                          SHAPE(12, c == SHAPE_OF_X ? 4 : 3));
    gantry_buffer y =
        gantry_graph_buffer(h, "y", c == DTYPE_OF_X ? GANTRY_F64 : GANTRY_F32, 2, SHAPE(12, c == SHAPE_OF_X ? 4 : 3));
    gantry_buffer flag = gantry_graph_buffer(h, "flag", GANTRY_I32, 1, SHAPE(1));
    gantry_buffer_split(h, x, c == PARTS ? 3 : 4);
    gantry_buffer_split(h, y, c == PARTS ? 3 : 4);
    gantry_buffer_init_uniform(h, x, c == SEED ? 1 : 2, 0, 1);
    gantry_buffer_init_value(h, y, 0);
    if (c == OUTPUT)
        gantry_buffer_output(h, y);
    if (c == CLASS)
        gantry_buffer_set_class(h, y, GANTRY_STATE);
    gantry_graph_fill(h, "f", gantry_all(flag), c == FILL ? 1 : 0);
    gantry_graph_repeat(h, c == COUNT ? 3 : 2);
    if (c == CARRY)
        gantry_graph_carry(h, x, y);
    if (c == UNTIL)
        gantry_graph_until(h, flag, 1);
    gantry_node a = gantry_graph_kernel(h, c == ID ? "b" : "a", "t_scale");
    gantry_node_arg(h, a, "x", gantry_halo(c == ROWS ? gantry_part(x, 1) : gantry_part(x, 0), 0, c == HALO ? 1 : 0));
    gantry_node_arg_as(h, a, "y", gantry_all(y), c == MODE ? GANTRY_SUM : GANTRY_WRITE);
    gantry_node_scalar(h, a, "a", c == SCALAR ? 4 : 3);
    gantry_node_cost(h, a, 100, c == COST ? 11 : 10);
    gantry_graph_repeat_end(h);
    gantry_node w = gantry_graph_work(h, "w");
    if (c == AFTER)
        gantry_node_after(h, w, a);
    if (c == WITH)
        gantry_node_with(h, w, a);
    if (c == ON)
        gantry_node_on(h, w, "gpu0");
    if (c == TIME)
        gantry_node_time(h, w, NULL, 1);
    if (c == PRIORITY)
        gantry_node_priority(h, w, 1);
    if (c == SHARE)
        gantry_node_share(h, w, 0.5);
    if (c == SCRATCH)
        gantry_node_scratch(h, w, 8);
    if (c == EXTRA_NODE)
        gantry_graph_work(h, "v");
    gantry_error err;
    ck_assert_msg(gantry_graph_check(h, &err) == GANTRY_OK, "%s", err.text);
    uint64_t hash = h->hash;
    gantry_graph_free(h);
    return hash;
}

START_TEST(hashes)
{
    uint64_t hash[ALL_CHANGES];
    for (int i = 0; i < ALL_CHANGES; i++) {
        hash[i] = hash_of((change)i);
        ck_assert_uint_eq(hash_of((change)i), hash[i]);
        for (int k = 0; k < i && i < CHANGES; k++)
            ck_assert_msg(hash[k] != hash[i], "changes %d and %d have one hash", k, i);
    }
    /* A schedule depends on none of these. */
    ck_assert_uint_eq(hash[SCALAR], hash[NO_CHANGE]);
    ck_assert_uint_eq(hash[GRAPH_NAME], hash[NO_CHANGE]);
    ck_assert_uint_eq(hash[SEED], hash[NO_CHANGE]);
}
END_TEST

/* The keys of `time_us` are an object's: in whatever order they come, they say the same. */
START_TEST(hashes_know_no_order_of_times)
{
    static const char *const names[] = { "gpu", "gpu2", "gpu10", "gpu010", "h200", NULL };
    enum { NAMES = sizeof names / sizeof *names };
    uint64_t first = 0;
    for (int turn = 0; turn < 2 * NAMES; turn++) {
        gantry_graph *h = gantry_graph_new("times");
        gantry_node n = gantry_graph_work(h, "n");
        for (int i = 0; i < NAMES; i++) { /* forwards from each of them, and backwards */
            int k = turn < NAMES ? (turn + i) % NAMES : (2 * NAMES - turn + NAMES - i) % NAMES;
            gantry_node_time(h, n, names[k], 1 + k);
        }
        gantry_error err;
        ck_assert_msg(gantry_graph_check(h, &err) == GANTRY_OK, "%s", err.text);
        first = turn ? first : h->hash;
        ck_assert_uint_eq(h->hash, first);
        gantry_graph_free(h);
    }
}
END_TEST

START_TEST(owners)
{
    gantry_graph *h = gantry_graph_new("shared");
    ck_assert_ptr_eq(gy_graph_ref(h), h);
    gantry_graph_free(h);
    ck_assert_str_eq(gantry_graph_name(h), "shared");
    const char *json, *path;
    gy_graph_set_machine(h, "{}", NULL);
    gantry_graph_machine_hint(h, &json, &path);
    ck_assert_str_eq(json, "{}");
    ck_assert_ptr_null(path);
    gantry_graph_free(h);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("graph_regions");
    TCase *c = tcase_create("regions");
    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_test(c, part_bounds);
    tcase_add_test(c, rows_of_regions);
    tcase_add_test(c, shapes_of_tiles);
    tcase_add_test(c, tiles_cover);
    tcase_add_test(c, lists_of_tiles);
    tcase_add_test(c, names_of_rows);
    tcase_add_test(c, runs_of_tiles);
    tcase_add_test(c, launch_of_kernel);
    tcase_add_test(c, launch_without_a_region);
    tcase_add_test(c, launch_with_lists);
    tcase_add_test(c, launch_in_loop);
    tcase_add_test(c, default_costs);
    tcase_add_test(c, late_accesses);
    tcase_add_test(c, numbered_ids);
    tcase_add_test(c, places_of_nodes);
    tcase_add_test(c, identities);
    tcase_add_test(c, hashes);
    tcase_add_test(c, hashes_know_no_order_of_times);
    tcase_add_test(c, owners);
    suite_add_tcase(s, c);
    return run_suite(s);
}
