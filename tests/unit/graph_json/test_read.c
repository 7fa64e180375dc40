/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers, blocks, loops, kernels and the graph as a whole. */
#include "graph/derive/specialise.h"
#include "suite.h"
#include <gantry/schedule.h>
#include <stdio.h>
#include <string.h>

#define BUFFERS                                                                                                        \
    "\"buffers\": {\"x\": {\"dtype\": \"f32\", \"shape\": [8], \"split\": 4, \"init\": 0},"                            \
    "\"y\": {\"dtype\": \"f32\", \"shape\": [8], \"split\": 4, \"init\": 0}}"

START_TEST(smallest)
{
    gantry_graph *g = graph_of("{\"gantry\": 1, \"buffers\": {}, \"nodes\": []}");
    ck_assert_str_eq(gantry_graph_name(g), "graph");
    ck_assert_uint_eq(gantry_graph_node_count(g), 0);
    check_stable(g);
    gantry_graph_free(g);
}
END_TEST

START_TEST(buffers)
{
    gantry_graph *g = graph_of(
        "{\"gantry\": 1, \"name\": \"b\", \"params\": {\"n\": 6}, \"buffers\": {"
        "\"a\": {\"dtype\": \"f64\", \"shape\": [\"n\", \"2*n\"], \"class\": \"const\", \"init\": {\"normal\": "
        "{\"seed\": 5, \"mean\": 2, \"deviation\": 0.5}}},"
        "\"b\": {\"dtype\": \"u8\", \"shape\": [\"n\"], \"split\": {\"auto\": 3}, \"init\": \"iota\", \"output\": "
        "true, \"check\": {\"atol\": 0.25}},"
        "\"c\": {\"dtype\": \"i64\", \"shape\": [\"n\"], \"class\": \"state\", \"init\": \"3 - n\", \"output\": false},"
        "\"d\": {\"dtype\": \"f64\", \"shape\": [\"n\", \"n\"], \"tiles\": [\"n // 3\", 3], \"init\": {\"spd\": "
        "{\"seed\": 9}}},"
        "\"e\": {\"dtype\": \"bf16\", \"shape\": [0, 4]},"
        "\"f\": {\"dtype\": \"f32\", \"shape\": [4], \"init\": {\"random\": {\"seed\": -1, \"low\": \"-1/2\", "
        "\"high\": 3}}},"
        "\"g\": {\"dtype\": \"f32\", \"shape\": [4], \"class\": \"input\"},"
        "\"h\": {\"dtype\": \"f32\", \"shape\": [4], \"init\": {\"raw\": \"data/h.bin\"}, \"check\": "
        "{\"equal_nan\": true}}"
        "}, \"nodes\": []}");
    const gy_buffer *b = g->buffers.at;
    ck_assert_uint_eq(g->buffers.count, 8);
    ck_assert(b[0].dtype == GANTRY_F64 && b[0].rank == 2 && b[0].shape[1] == 12 && b[0].cls == GANTRY_CONST);
    ck_assert(b[0].init.kind == GY_INIT_NORMAL && b[0].init.seed == 5 && b[0].init.a.real == 2 &&
              b[0].init.b.real == 0.5);
    ck_assert(b[1].split_auto && b[1].parts == 3 && b[1].output && b[1].cls == GANTRY_INPUT);
    ck_assert(b[1].init.kind == GY_INIT_IOTA && b[1].init.a.real == 0 && b[1].init.b.real == 1);
    ck_assert(b[1].rtol == 0 && b[1].atol == 0.25 && !b[1].equal_nan);
    ck_assert(b[7].rtol < 0 && b[7].atol < 0 && b[7].equal_nan);
    ck_assert(b[2].cls == GANTRY_STATE && !b[2].output && b[2].init.kind == GY_INIT_VALUE && b[2].init.a.real == -3);
    ck_assert(b[3].tiles[0] == 2 && b[3].tiles[1] == 3 && b[3].init.kind == GY_INIT_SPD && b[3].init.seed == 9);
    ck_assert(b[4].bytes == 0 && b[4].cls == GANTRY_TEMP);
    ck_assert(b[5].init.seed == UINT64_MAX && b[5].init.a.real == -0.5 && b[5].init.b.real == 3);
    ck_assert(b[6].cls == GANTRY_INPUT && b[6].init.kind == GY_INIT_NONE);
    ck_assert_str_eq(b[7].init.path, "./data/h.bin");
    check_stable(g);
    gantry_graph_free(g);
}
END_TEST

static void check_ids(const gantry_graph *g, const char *expected)
{
    char all[2048] = "";
    for (size_t i = 0; i < g->nodes.count; i++) {
        strcat(all, i ? " " : "");
        strcat(all, g->nodes.at[i].id);
    }
    ck_assert_str_eq(all, expected);
}

/* Blocks expand in loop order, which is the adding order: this is tiled Cholesky with 3 x 3 tiles. */
START_TEST(blocks)
{
    gantry_graph *g = graph_of(
        "{\"gantry\": 1, \"params\": {\"nt\": 3}, \"buffers\": {}, \"nodes\": [{\"for\": {\"k\": \"nt\"}, \"nodes\": ["
        "{\"id\": \"potrf[k]\", \"work\": {}},"
        "{\"id\": \"trsm[i,k]\", \"for\": {\"i\": \"k+1:nt\"}, \"work\": {}},"
        "{\"for\": {\"i\": \"k+1:nt\"}, \"nodes\": [{\"id\": \"syrk[i][k]\", \"work\": {}},"
        "{\"id\": \"gemm[i, j, k+1]\", \"for\": {\"j\": \"k+1:i\"}, \"work\": {}}]}]}]}");
    check_ids(g,
              "potrf[0] trsm[1,0] trsm[2,0] syrk[1][0] syrk[2][0] gemm[2,1,1] potrf[1] trsm[2,1] syrk[2][1] potrf[2]");
    check_stable(g);
    gantry_graph_free(g);
}
END_TEST

START_TEST(ranges)
{
    gantry_graph *g =
        graph_of("{\"gantry\": 1, \"params\": {\"n\": 7}, \"buffers\": {}, \"nodes\": ["
                 "{\"id\": \"a[i]\", \"for\": {\"i\": 2}, \"work\": {}},"
                 "{\"id\": \"b[i]\", \"for\": {\"i\": \"1:n:3\"}, \"work\": {}},"
                 "{\"id\": \"c[i]\", \"for\": {\"i\": \"3:0:-1\"}, \"work\": {}},"
                 "{\"id\": \"d[i]\", \"for\": {\"i\": \"5:2\"}, \"work\": {}},"
                 "{\"id\": \"e[i]\", \"for\": {\"i\": \"max(1,2) : n-4\"}, \"work\": {}},"
                 "{\"id\": \"f[i]\", \"for\": {\"i\": \"n\"}, \"if\": \"i % 3 == 1 and not i > 5\", \"work\": {}},"
                 "{\"id\": \"g\", \"if\": 0, \"work\": {}}, {\"id\": \"h\", \"if\": \"n > 6\", \"work\": {}},"
                 "{\"if\": \"n < 6\", \"nodes\": [{\"id\": \"i\", \"work\": {}}]},"
                 "{\"id\": \"y[i - 9223372036854775800]\", \"for\": {\"i\": "
                 "\"9223372036854775800:9223372036854775807:5\"}, \"work\": {}},"
                 "{\"id\": \"z[n]\", \"work\": {}}]}");
    check_ids(g, "a[0] a[1] b[1] b[4] c[3] c[2] c[1] e[2] f[1] f[4] h y[0] y[5] z[n]");
    gantry_graph_free(g);
}
END_TEST

START_TEST(loops)
{
    gantry_graph *g =
        graph_of("{\"gantry\": 1, " BUFFERS ", \"nodes\": [{\"id\": \"before\", \"work\": {}, \"writes\": [\"x\"]},"
                 "{\"repeat\": \"2+3\", \"carry\": {\"x\": \"y\"}, \"nodes\": ["
                 "{\"id\": \"a[i]\", \"for\": {\"i\": 2}, \"work\": {}, \"reads\": [\"x[i]\"], \"writes\": "
                 "[\"y[2*i:2*i+2]\"]}]},"
                 "{\"repeat\": 0, \"nodes\": [{\"id\": \"never\", \"work\": {}}]}]}");
    ck_assert_uint_eq(g->loops.count, 2);
    const gy_loop *loop = &g->loops.at[0];
    ck_assert(loop->count == 5 && loop->first_node == 1 && loop->last_node == 3 && loop->until == GY_NONE);
    ck_assert(loop->carry.count == 1 && loop->carry.at[0].prev == 0 && loop->carry.at[0].next == 1);
    check_stable(g);
    gantry_graph_free(g);
}
END_TEST

START_TEST(loop_around_everything)
{
    gantry_graph *g =
        graph_of("{\"gantry\": 1, \"repeat\": 3, \"until\": {\"buffer\": \"f\", \"every\": 2}, \"buffers\": {"
                 "\"f\": {\"dtype\": \"i32\", \"shape\": [1]}}, \"nodes\": [{\"id\": \"a\", \"work\": {}, \"writes\": "
                 "[\"f\"]}]}");
    ck_assert_uint_eq(g->loops.count, 1);
    ck_assert(g->loops.at[0].count == 3 && g->loops.at[0].until == 0 && g->loops.at[0].every == 2);
    check_stable(g);
    gantry_graph_free(g);
}
END_TEST

START_TEST(kernels_of_the_graph)
{
    gantry_graph *g = graph_of(
        "{\"gantry\": 1, \"params\": {\"c\": 3}, \"kernels\": {\"mine\": {\"args\": ["
        "{\"name\": \"x\", \"access\": [\"readwrite\", \"sum\"], \"dtype\": [\"f32\", \"f64\"], \"same\": \"T\"},"
        "{\"name\": \"y\", \"access\": \"read\", \"dtype\": \"i32\", \"list\": true, \"optional\": true},"
        "{\"name\": \"k\", \"type\": \"i64\", \"default\": 4}], \"variadic\": true, \"pure\": true, \"resident\": true,"
        "\"launch\": {\"grid\": [\"ceil_div(x.size, 256)\", 2], \"block\": [256]},"
        "\"cost\": {\"flops\": \"c * x.size\", \"bytes\": 100}, \"scratch\": \"x.bytes\"}}, " BUFFERS
        ", \"nodes\": []}");
    ck_assert_uint_eq(g->kernels.count, 1);
    const gantry_kernel *k = g->kernels.at[0].manifest;
    const gy_kernel_code *code = g->kernels.at[0].code;
    ck_assert(k->args == 3 && k->flags == (GANTRY_KERNEL_VARIADIC | GANTRY_KERNEL_PURE | GANTRY_KERNEL_RESIDENT));
    ck_assert(k->arg[0].access == GANTRY_READWRITE &&
              k->arg[0].accesses == (GANTRY_ACCESS_BIT(GANTRY_READWRITE) | GANTRY_ACCESS_BIT(GANTRY_SUM)));
    ck_assert(k->arg[0].dtypes == (GANTRY_DTYPE_BIT(GANTRY_F32) | GANTRY_DTYPE_BIT(GANTRY_F64)) &&
              k->arg[0].same == 'T');
    ck_assert(k->arg[1].list && !k->arg[0].list && k->arg[2].scalar && k->arg[2].optional && k->arg[2].fallback == 4);
    ck_assert(k->arg[1].optional && !k->arg[0].optional);
    ck_assert(code->types[2] == GANTRY_I64 && code->grid[1] && !code->grid[2] && code->block[0] && !code->cuda &&
              !code->host);
    ck_assert_str_eq(k->flops, "3 * x.size");
    ck_assert_str_eq(k->scratch, "x.bytes");
    check_stable(g);
    gantry_graph_free(g);
}
END_TEST

/* Written and read again, too. */
START_TEST(whole_numbers_keep_every_digit)
{
    gantry_graph *g =
        graph_of("{\"gantry\": 1, \"params\": {\"n\": 9007199254740993}, \"kernels\": {\"mine\": {\"args\": ["
                 "{\"name\": \"x\", \"access\": \"readwrite\"}, {\"name\": \"a\", \"type\": \"i64\"},"
                 "{\"name\": \"b\", \"type\": \"i64\", \"default\": -9007199254740993},"
                 "{\"name\": \"c\", \"type\": \"i64\", \"default\": \"2 * n + 1\"}]}}, \"buffers\": {"
                 "\"x\": {\"dtype\": \"i64\", \"shape\": [4], \"init\": 9223372036854775807}}, \"nodes\": ["
                 "{\"id\": \"k\", \"kernel\": \"mine\", \"args\": {\"x\": \"x\", \"a\": \"n\"}},"
                 "{\"id\": \"f\", \"fill\": {\"to\": \"x\", \"value\": \"-n\"}}]}");
    gantry_launch launch;
    gantry_arg args[4];
    gantry_error err = { 0 };
    ck_assert_msg(gy_launch_describe(g, 0, 0, &launch, args, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_int_eq(args[1].integer, 9007199254740993);
    ck_assert_int_eq(args[2].integer, -9007199254740993);
    ck_assert_int_eq(args[3].integer, 18014398509481987);
    ck_assert_uint_eq(gy_constant_bits(g->buffers.at[0].init.a), INT64_MAX);
    ck_assert_int_eq((int64_t)gy_constant_bits(gy_node_extra_of(g, 1)->fill.a), -9007199254740993);
    check_stable(g);
    gantry_graph_free(g);
}
END_TEST

START_TEST(numbers_of_u64_are_written_in_quotes)
{
    gantry_graph *g = graph_of("{\"gantry\": 1, \"buffers\": {\"x\": {\"dtype\": \"u64\", \"shape\": [4], "
                               "\"init\": \"18446744073709551615\"}, \"y\": {\"dtype\": \"u64\", \"shape\": [4], "
                               "\"init\": 0}}, \"nodes\": ["
                               "{\"id\": \"s\", \"kernel\": \"axpby\", \"args\": "
                               "{\"a\": \"9223372036854775809\", \"b\": 0, \"x\": \"x\", \"y\": \"y\"}},"
                               "{\"id\": \"f\", \"fill\": {\"to\": \"x\", \"value\": \"9223372036854775808\"}}]}");
    ck_assert_uint_eq(gy_constant_bits(g->buffers.at[0].init.a), UINT64_MAX);
    ck_assert_uint_eq(gy_constant_bits(gy_node_extra_of(g, 1)->fill.a), UINT64_C(1) << 63);
    check_stable(g);
    gantry_graph_free(g);
}
END_TEST

START_TEST(the_default_name_of_an_index_may_be_written)
{
    gantry_graph *g = graph_of("{\"gantry\": 1, \"repeat\": 3, \"index\": \"it\", \"buffers\": {\"x\": "
                               "{\"dtype\": \"f32\", \"shape\": [4], \"init\": 1}}, \"nodes\": ["
                               "{\"id\": \"s\", \"map\": {\"x\": \"a * x\"}, "
                               "\"args\": {\"x\": \"x\", \"a\": \"it + 1\"}}]}");
    ck_assert_str_eq(g->loops.at[0].index, "it");
    check_stable(g);
    gantry_graph_free(g);
}
END_TEST

static double scalar_of(const gantry_graph *g, uint32_t node, int arg)
{
    gantry_launch launch;
    gantry_arg args[8];
    gantry_error err = { 0 };
    ck_assert_uint_le(gy_launch_args(g, node), 8);
    ck_assert_msg(gy_launch_describe(g, node, 0, &launch, args, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_int_eq(launch.arg[arg].integer, (int64_t)launch.arg[arg].number);
    return launch.arg[arg].number;
}

/* Sizes that a node does not give follow its regions, also where the parts are cut elsewhere. */
START_TEST(defaults_of_regions)
{
    gantry_graph *g =
        graph_of("{\"gantry\": 1, \"params\": {\"p\": 3, \"w\": 4}, \"kernels\": {\"mine\": {\"args\": ["
                 "{\"name\": \"n\", \"type\": \"i64\", \"default\": \"x.size\"},"
                 "{\"name\": \"x\", \"access\": \"read\"}, {\"name\": \"y\", \"access\": \"write\"},"
                 "{\"name\": \"m\", \"type\": \"i32\", \"default\": \"p * y.rows + x.shape1\"},"
                 "{\"name\": \"w\", \"type\": \"i32\", \"default\": \"2 * w\"},"
                 "{\"name\": \"at\", \"type\": \"i32\", \"default\": \"1000 * x.own_first + 100 * (x.own_first - "
                 "x.first_row) + x.own_rows\"}]}}, \"buffers\": {"
                 "\"x\": {\"dtype\": \"f32\", \"shape\": [10, 7], \"split\": {\"auto\": \"p\"}, \"init\": 0},"
                 "\"y\": {\"dtype\": \"f32\", \"shape\": [10, 7], \"split\": {\"auto\": \"p\"}}}, \"nodes\": ["
                 "{\"id\": \"k[i]\", \"for\": {\"i\": \"p\"}, \"kernel\": \"mine\", \"args\": {\"x\": \"x[i]~1\","
                 "\"y\": \"y[i]\"}}, {\"id\": \"one\", \"kernel\": \"mine\", \"args\": {\"n\": 5, \"x\": \"x\","
                 "\"y\": \"y\"}}]}");
    /* Parts of 3, 3 and 4 rows; the first and the last have a halo on one side only. */
    static const double equal[] = { 3, 3, 4 }, equal_halo[] = { 4, 5, 5 }, at[] = { 3, 3103, 6104 };
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_double_eq(scalar_of(g, i, 0), 7 * equal_halo[i]);
        ck_assert_double_eq(scalar_of(g, i, 3), 3 * equal[i] + 7);
        ck_assert_double_eq(scalar_of(g, i, 4), 8);
        ck_assert_double_eq(scalar_of(g, i, 5), at[i]);
    }
    ck_assert_double_eq(scalar_of(g, 3, 0), 5);
    check_stable(g);
    gantry_graph *cut = NULL;
    gantry_error err = { 0 };
    const int64_t first[] = { 0, 1, 8, 10 };
    const gy_cut cuts[] = { { 0, first }, { 1, first } };
    ck_assert_msg(gy_graph_specialise(&cut, g, cuts, 2, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_double_eq(scalar_of(cut, 0, 0), 7 * 2);
    ck_assert_double_eq(scalar_of(cut, 1, 0), 7 * 9);
    ck_assert_double_eq(scalar_of(cut, 1, 3), 3 * 7 + 7);
    gantry_graph_free(cut);
    gantry_graph_free(g);
}
END_TEST

/* Code is named, and looked at only with leave; this file stands for it. */
START_TEST(kernels_with_code)
{
    static const char text[] =
        "{\"gantry\": 1, \"kernels\": {\"mine\": {\"host\": \"test_read.c\", \"entry\": \"go\", \"args\": []}}, "
        "\"buffers\": {}, \"nodes\": []}";
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    gantry_graph *g = NULL;
    gantry_error err;
    const char *folder = GANTRY_SOURCE_DIR "/tests/unit/graph_json";
    const char *elsewhere = GANTRY_SOURCE_DIR "/tests/unit/graph"; /* without such a file */
    ck_assert_int_eq(gantry_graph_parse(&g, text, strlen(text), "t", elsewhere, &options, &err), GANTRY_OK);
    gantry_graph_free(g);
    options.allow_code = 1;
    ck_assert_int_eq(gantry_graph_parse(&g, text, strlen(text), "t", elsewhere, &options, &err), GANTRY_E_GRAPH);
    ck_assert_ptr_nonnull(strstr(err.text, "test_read.c"));
    ck_assert_int_eq(gantry_graph_parse(&g, text, strlen(text), "t", folder, &options, &err), GANTRY_OK);
    const gy_kernel_code *code = g->kernels.at[0].code;
    ck_assert_str_eq(code->host, GANTRY_SOURCE_DIR "/tests/unit/graph_json/test_read.c");
    ck_assert_str_eq(code->entry, "go");
    ck_assert_uint_eq(g->kernels.at[0].manifest->flags, GANTRY_KERNEL_NO_GPU);
    check_stable(g);
    gantry_graph_free(g);
}
END_TEST

START_TEST(machines)
{
    const char *json, *path;
    gantry_graph *g = graph_of("{\"gantry\": 1, \"buffers\": {}, \"nodes\": [], "
                               "\"machine\": {\"a\": [1, 2.5, true, null, {}, []], \"b\": \"q\\\"\"}}");
    gantry_graph_machine_hint(g, &json, &path);
    ck_assert_str_eq(json, "{\"a\": [1, 2.5, true, null, {}, []], \"b\": \"q\\\"\"}");
    ck_assert_ptr_null(path);
    check_stable(g);
    gantry_graph_free(g);
    g = graph_of("{\"gantry\": 1, \"buffers\": {}, \"nodes\": [], \"machine\": \"machines/one.json\"}");
    gantry_graph_machine_hint(g, &json, &path);
    ck_assert_ptr_null(json);
    ck_assert_str_eq(path, "./machines/one.json");
    check_stable(g);
    gantry_machine *machine = (gantry_machine *)&g;
    gantry_error err;
    ck_assert_int_eq(gantry_graph_machine(&machine, g, &err), GANTRY_E_IO);
    ck_assert_str_eq(err.text,
                     "cannot open ./machines/one.json: No such file or directory; there is no folder \"./machines\"");
    ck_assert_int_eq(gantry_graph_machine(NULL, g, &err), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_graph_machine(&machine, NULL, &err), GANTRY_E_INVALID);
    gantry_graph_free(g);
    g = graph_of("{\"gantry\": 1, \"buffers\": {}, \"nodes\": []}");
    ck_assert_int_eq(gantry_graph_machine(&machine, g, &err), GANTRY_OK);
    ck_assert_ptr_null(machine);
    gantry_graph_free(g);
}
END_TEST

/* Out-parameters are set on success only; an error may be of no interest. */
START_TEST(calls)
{
    gantry_graph *g = (gantry_graph *)&g;
    gantry_error err;
    ck_assert_int_eq(gantry_graph_parse(&g, "{", 1, "t", NULL, NULL, NULL), GANTRY_E_SYNTAX);
    ck_assert_ptr_eq(g, (gantry_graph *)&g);
    ck_assert_int_eq(gantry_graph_parse(&g, "[]", 2, NULL, NULL, NULL, &err), GANTRY_E_GRAPH);
    ck_assert_int_eq(gantry_graph_parse(NULL, "[]", 2, "t", NULL, NULL, &err), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_graph_parse(&g, NULL, 2, "t", NULL, NULL, &err), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_graph_load(&g, NULL, NULL, &err), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_graph_load(&g, "/nowhere/x.json", NULL, &err), GANTRY_E_IO);
    ck_assert_int_eq(gantry_graph_load(&g, GANTRY_SOURCE_DIR "/graphs/reference/daoud.json", NULL, &err), GANTRY_OK);
    ck_assert_ptr_nonnull(g->folder);
    gantry_graph_free(g);
}
END_TEST

/* A file that comes from memory names no others. */
START_TEST(no_folder)
{
    static const char text[] = "{\"gantry\": 1, \"buffers\": {\"x\": {\"dtype\": \"f32\", \"shape\": [1], \"init\": "
                               "{\"npy\": \"x.npy\"}}}, \"nodes\": []}";
    gantry_graph *g = NULL;
    gantry_error err;
    ck_assert_int_eq(gantry_graph_parse(&g, text, strlen(text), "t", NULL, NULL, &err), GANTRY_E_GRAPH);
    ck_assert_str_eq(err.where, "/buffers/x/init/npy");
    ck_assert_ptr_nonnull(strstr(err.text, "not read from a folder"));
}
END_TEST

START_TEST(standard_input)
{
    gantry_graph *g = NULL;
    gantry_error err;
    ck_assert_ptr_nonnull(freopen(GANTRY_SOURCE_DIR "/graphs/reference/daoud.json", "r", stdin));
    ck_assert_int_eq(gantry_graph_load(&g, "-", NULL, &err), GANTRY_OK);
    ck_assert_uint_eq(gantry_graph_node_count(g), 11);
    gantry_graph_free(g);
}
END_TEST

/* A mistake that only the whole shows has its place too, when the text is from memory. */
START_TEST(places_of_checks)
{
    ck_assert_str_eq(
        error_of("{\"gantry\": 1, " BUFFERS ", \"nodes\": [\n {\"id\": \"a\", \"work\": {}, \"after\": \"b\"},\n"
                 " {\"id\": \"b\", \"work\": {}, \"after\": \"a\"}]}"),
        "t:2:2: /nodes/0: nodes wait for each other in a circle: \"a\" -> \"b\" -> \"a\"; drop one `after`");
}
END_TEST

/* Pointers and lists of indices that are longer than an error has room for are cut, and the line is right even so. */
START_TEST(long_places)
{
    static char text[20000], name[600];
    memset(name, 'i', sizeof name - 1);
    snprintf(text, sizeof text,
             "{\"gantry\": 1, \"buffers\": {\"%s\": {\"dtype\": \"f32\",\n\"shape\": [0.5]}}, \"nodes\": []}", name);
    ck_assert_ptr_nonnull(strstr(error_of(text), "t:2:11: ..."));
    size_t length = (size_t)snprintf(text, sizeof text, "{\"gantry\": 1, \"buffers\": {}, \"nodes\": [");
    for (int i = 0; i < 20; i++) {
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "{\"for\": {\"%.40s%d\": 1}, \"nodes\": [", name, i);
    }
    length += (size_t)snprintf(text + length, sizeof text - length, "\n3");
    for (int i = 0; i < 21; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, i < 20 ? "]}" : "]}");
    const char *line = error_of(text);
    ck_assert_msg(strncmp(line, "t:2:1: ...", 10) == 0, "%s", line);
    ck_assert_ptr_nonnull(strstr(line, "must be an object, not an integer (with iiiiiiii"));
}
END_TEST

START_TEST(cuda_kernels)
{
    char folder[] = "/tmp/gantry-test-XXXXXX", path[64];
    static const char text[] =
        "{\"gantry\": 1, \"kernels\": {\"k\": {\"cuda\": \"k.cu\", \"args\": [], \"launch\": {\"block\": [64]}, "
        "\"cost\": {\"bytes\": 2.5}}, \"both\": {\"cuda\": \"k.cu\", \"host\": \"k.c\", \"args\": []}}, "
        "\"buffers\": {}, \"nodes\": []}";
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    gantry_graph *g = NULL;
    gantry_error err;
    options.allow_code = 1;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, i ? "k.cu" : "k.c");
        FILE *file = fopen(path, "w");
        ck_assert_int_eq(fclose(file), 0);
    }
    ck_assert_msg(gantry_graph_parse(&g, text, strlen(text), "t", folder, &options, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_uint_eq(g->kernels.at[0].manifest->flags, GANTRY_KERNEL_NO_CPU);
    ck_assert_uint_eq(g->kernels.at[1].manifest->flags, 0);
    ck_assert_str_eq(g->kernels.at[0].manifest->bytes, "2.5");
    ck_assert_str_eq(g->kernels.at[0].code->entry, "k");
    check_stable(g);
    gantry_graph_free(g);
}
END_TEST

START_TEST(limits)
{
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    options.max_nodes = 3;
    gantry_graph_free(graph_with(
        "{\"gantry\": 1, \"buffers\": {}, \"nodes\": [{\"id\": \"a[i]\", \"for\": {\"i\": 3}, \"work\": {}}]}",
        &options));
    ck_assert_str_eq(
        error_with(
            "{\"gantry\": 1, \"buffers\": {}, \"nodes\": [\n{\"id\": \"a[i]\", \"for\": {\"i\": 4}, \"work\": {}}]}",
            &options),
        "t:2:1: /nodes/0: expands to more than 3 nodes, the limit of a graph: use smaller ranges, or raise the limit "
        "(--limits)");
    ck_assert_str_eq(
        error_with("{\"gantry\": 1, \"buffers\": {}, \"nodes\": [\n{\"for\": {\"i\": 999999999999}, \"nodes\": []}]}",
                   &options),
        "t:2:1: /nodes/0: takes more than 192 turns, 64 for each node that is allowed: use smaller ranges, or raise "
        "the "
        "limit (--limits)");
}
END_TEST

int main(void)
{
    const TTest *const cases[] = {
        smallest,
        buffers,
        blocks,
        ranges,
        loops,
        loop_around_everything,
        kernels_of_the_graph,
        whole_numbers_keep_every_digit,
        numbers_of_u64_are_written_in_quotes,
        the_default_name_of_an_index_may_be_written,
        defaults_of_regions,
        kernels_with_code,
        machines,
        calls,
        no_folder,
        standard_input,
        limits,
        places_of_checks,
        long_places,
        cuda_kernels,
    };
    return RUN_CASES("reading graph files", cases);
}
