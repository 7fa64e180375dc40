/* SPDX-License-Identifier: Apache-2.0 */
/* Where a machine has measured times of kernels: which nodes take them, what comes before and after them, and what
 * --explain says. The figures are worked out by hand. */
#include "suite.h"
#include <math.h>
#include <string.h>

/* Two devices alike but for their launch, and one of another kind. Roofline: 1 flop a ps, 1 byte a ps. */
#define MACHINE(kernels)                                                                                               \
    "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"}],\"devices\":["                       \
    "{\"id\":\"p\",\"kind\":\"fast\",\"memory\":\"host\",\"launch_us\":2,\"gflops\":{\"f32\":1000},"                   \
    "\"bandwidth_gbs\":1000},{\"id\":\"q\",\"kind\":\"fast\",\"memory\":\"host\",\"launch_us\":20,"                    \
    "\"gflops\":{\"f32\":1000},\"bandwidth_gbs\":1000},{\"id\":\"r\",\"kind\":\"slow\",\"memory\":\"host\","           \
    "\"launch_us\":5,\"gflops\":{\"f32\":1000},\"bandwidth_gbs\":1000}],\"kernels\":[" kernels "]}"

/* saxpy has 2 flops an element. */
#define BY_FLOPS                                                                                                       \
    "{\"kernel\":\"saxpy\",\"dtype\":\"f32\",\"kind\":\"fast\",\"by\":\"flops\",\"points\":[[64,10],[128,14]]},"       \
    "{\"kernel\":\"copy\",\"dtype\":\"f32\",\"kind\":\"fast\",\"by\":\"flops\",\"points\":[[64,10]]}"
#define BY_BYTES                                                                                                       \
    "{\"kernel\":\"saxpy\",\"dtype\":\"f64\",\"kind\":\"fast\",\"by\":\"bytes\",\"points\":[[1000,3],[2000,50]]}"

static const char graph_text[] =
    "{\"gantry\":1,\"name\":\"m\",\"buffers\":{"
    "\"x\":{\"dtype\":\"f32\",\"shape\":[200],\"init\":1},\"y\":{\"dtype\":\"f32\",\"shape\":[200],\"init\":1},"
    "\"u\":{\"dtype\":\"f64\",\"shape\":[100],\"init\":1},\"v\":{\"dtype\":\"f64\",\"shape\":[100],\"init\":1}},"
    "\"nodes\":["
    "{\"id\":\"tiny\",\"kernel\":\"saxpy\",\"args\":{\"a\":2,\"x\":\"x{0:8}\",\"y\":\"y{0:8}\"}},"
    "{\"id\":\"small\",\"kernel\":\"saxpy\",\"args\":{\"a\":2,\"x\":\"x{0:16}\",\"y\":\"y{0:16}\"}},"
    "{\"id\":\"first\",\"kernel\":\"saxpy\",\"args\":{\"a\":2,\"x\":\"x{0:32}\",\"y\":\"y{0:32}\"}},"
    "{\"id\":\"between\",\"kernel\":\"saxpy\",\"args\":{\"a\":2,\"x\":\"x{0:48}\",\"y\":\"y{0:48}\"}},"
    "{\"id\":\"beyond\",\"kernel\":\"saxpy\",\"args\":{\"a\":2,\"x\":\"x{0:128}\",\"y\":\"y{0:128}\"}},"
    "{\"id\":\"given\",\"kernel\":\"saxpy\",\"args\":{\"a\":2,\"x\":\"x\",\"y\":\"y\"},\"cost\":{\"time_us\":7}},"
    "{\"id\":\"double\",\"kernel\":\"saxpy\",\"args\":{\"a\":2,\"x\":\"u\",\"y\":\"v\"}},"
    "{\"id\":\"idle\",\"kernel\":\"copy\",\"args\":{\"x\":\"x\",\"y\":\"y\"}}]}";

static gantry_graph *parse_graph(const char *text)
{
    gantry_graph *g = NULL;
    gantry_error err = { 0 };
    gantry_status status = gantry_graph_parse(&g, text, strlen(text), "m", NULL, NULL, &err);
    ck_assert_msg(status == GANTRY_OK, "%s: %s", err.where, err.text);
    return g;
}

/* The compute table of --explain has this line for node `id`. */
static void check_cost(const gantry_schedule *s, const gantry_graph *g, const char *id, const char *line)
{
    char *text = NULL;
    ck_assert_int_eq(gantry_schedule_explain(s, gantry_graph_find_node(g, id), &text, NULL, NULL), GANTRY_OK);
    ck_assert_msg(strstr(text, line) != NULL, "no %s in\n%s", line, text);
    gantry_free(text);
}

START_TEST(which_time)
{
    gantry_graph *g = parse_graph(graph_text);
    gantry_machine *m = parse_machine(MACHINE(BY_FLOPS "," BY_BYTES));
    gantry_schedule *s = schedule(g, m, "heft");
#define TABLE "measured: the machine's table of saxpy (f32) on fast, at "
    /* 32 flops, half way from the launch (10 at most) to the first point; on q all of it is launch */
    check_cost(s, g, "small", "\n  p   6.000 us  " TABLE "32 flops\n");
    check_cost(s, g, "small", "\n  q  10.000 us  " TABLE "32 flops\n");
    check_cost(s, g, "small", "\n  r   5.000 us  roofline: 5.000 us launch");
    check_cost(s, g, "tiny", "\n  p   4.000 us  " TABLE "16 flops; extrapolated: the table begins at 64\n");
    check_cost(s, g, "first", "\n  p  10.000 us  " TABLE "64 flops\n");
    check_cost(s, g, "between", "\n  q  12.000 us  " TABLE "96 flops\n");
    check_cost(s, g, "beyond",
               "\n  p  28.000 us  " TABLE "256 flops; extrapolated: the table ends at 128\n"); /* twice 128: twice 14 */
    check_cost(s, g, "given", "\n  p   9.000 us  given with the node, and 2.000 us launch\n");
    check_cost(s, g, "double",
               "\n  p  60.000 us  measured: the machine's table of saxpy (f64) on fast, at 2400 bytes; extrapolated: "
               "the table ends at 2000\n");
    check_cost(s, g, "idle", "\n  p   2.002 us  roofline: 2.000 us launch"); /* it has no flops */
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* The table says 3 us for 2 * 4096 flops; the 4096 * 4 bytes of the matrix alone take 16.4 us at 1 GB/s, x and twice c
 * 0.8 more. With a table of axpby, 17152 bytes take what it says. */
START_TEST(row_times_matrix)
{
#define ROW                                                                                                            \
    "{\"gantry_machine\":1,\"memories\":[{\"id\":\"near\",\"capacity\":\"1GiB\"}],\"devices\":[{\"id\":\"p\","         \
    "\"kind\":\"fast\",\"type\":\"gpu\",\"memory\":\"near\",\"launch_us\":2,\"bandwidth_gbs\":1}],\"kernels\":["       \
    "{\"kernel\":\"gemm\",\"dtype\":\"f32\",\"kind\":\"fast\",\"by\":\"flops\",\"points\":[[8192,3]]}"
    static const char text[] =
        "{\"gantry\":1,\"name\":\"r\",\"buffers\":{\"a\":{\"dtype\":\"f32\",\"shape\":[1,64],\"init\":1},"
        "\"b\":{\"dtype\":\"f32\",\"shape\":[64,64],\"init\":1},\"c\":{\"dtype\":\"f32\",\"shape\":[1,64]},"
        "\"d\":{\"dtype\":\"f32\",\"shape\":[64,64]}},\"nodes\":["
        "{\"id\":\"row\",\"kernel\":\"gemm\",\"args\":{\"a\":\"a\",\"b\":\"b\",\"c\":\"c\"}},"
        "{\"id\":\"square\",\"kernel\":\"gemm\",\"args\":{\"a\":\"b\",\"b\":\"b\",\"c\":\"d\"}}]}";
    static const char *const machine[] = {
        ROW "]}",
        ROW ",{\"kernel\":\"axpby\",\"dtype\":\"f32\",\"kind\":\"fast\",\"by\":\"bytes\",\"points\":[[17152,30]]}]}"
    };
    static const char *const says[] = { "\n  p  17.152 us  measured: ", "\n  p  28.000 us  measured: " };
    gantry_graph *g = parse_graph(text);
    for (int i = 0; i < 2; i++) {
        gantry_machine *m = parse_machine(machine[i]);
        gantry_schedule *s = schedule(g, m, "heft");
        check_cost(s, g, "row", says[i]);
        check_cost(s, g, "row", "; its 17152 bytes take longer\n");
        check_cost(s, g, "square", "\n  p  192.000 us  measured: "); /* 64 times as many flops */
        gantry_schedule_free(s);
        gantry_machine_free(m);
    }
    gantry_graph_free(g);
}
END_TEST

/* 10^8 flops, of which the GPU does 10^6 in a us. A figure of as many takes 4 us, 4/3 of a launch of 2 us and its work:
 * that long beside 102 us is 136, also behind a figure of half as many that took 3.5. Behind one that took 2 the last
 * is work more than launch, and says 100 times 4 us, and so does a CPU's. One of 4 * 10^6 flops says 25 times 9 us. */
START_TEST(beyond_a_launch)
{
    static const char machine[] =
        "{\"gantry_machine\":1,\"memories\":[{\"id\":\"near\",\"capacity\":\"1GiB\"}],\"devices\":[{\"id\":\"p\","
        "\"kind\":\"fast\",\"type\":\"%s\",\"memory\":\"near\",\"launch_us\":2,\"gflops\":{\"f32\":1000},"
        "\"bandwidth_gbs\":1000000}],\"kernels\":[{\"kernel\":\"saxpy\",\"dtype\":\"f32\",\"kind\":\"fast\","
        "\"by\":\"flops\",\"points\":[[%s]]}]}";
    static const struct {
        const char *type, *point, *says;
    } made[] = { { "gpu", "1000000,4", "\n  p  136.000 us  measured: " },
                 { "gpu", "500000,3.5],[1000000,4", "\n  p  136.000 us  measured: " },
                 { "gpu", "500000,2],[1000000,4", "\n  p  400.000 us  measured: " },
                 { "gpu", "4000000,9", "\n  p  225.000 us  measured: " },
                 { "cpu", "1000000,4", "\n  p  400.000 us  measured: " } };
    gantry_graph *g =
        parse_graph("{\"gantry\":1,\"name\":\"b\",\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[50000000],"
                    "\"init\":1},\"y\":{\"dtype\":\"f32\",\"shape\":[50000000],\"init\":1}},\"nodes\":[{"
                    "\"id\":\"n\",\"kernel\":\"saxpy\",\"args\":{\"a\":2,\"x\":\"x\",\"y\":\"y\"}}]}");
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        char text[sizeof machine + 64];
        snprintf(text, sizeof text, machine, made[i].type, made[i].point);
        gantry_machine *m = parse_machine(text);
        gantry_schedule *s = schedule(g, m, "heft");
        check_cost(s, g, "n", made[i].says);
        check_cost(s, g, "n", "; extrapolated: the table ends at ");
        gantry_schedule_free(s);
        gantry_machine_free(m);
    }
    gantry_graph_free(g);
}
END_TEST

/* Times of products of bf16 on an H200 (docs/performance/training.md: a third of three of one left factor by three
 * calls, us), none of them near a square; its tables of square ones alone say 0.63 to 0.79 of that for the first four.
 */
START_TEST(slabs)
{
    static const struct {
        int rows, terms, columns;
        double us, within;
    } measured[] = { { 256, 12288, 1536, 63.0 / 3, 0.1 },
                     { 512, 12288, 1536, 97.0 / 3, 0.1 },
                     { 64, 12288, 1536, 43.0 / 3, 0.1 },
                     { 256, 4096, 1024, 26.0 / 3, 0.25 },
                     { 1024, 2048, 2048, 40.0 / 3, 0.1 } };
    gantry_machine *m = NULL, *one = NULL;
    ck_assert_int_eq(gantry_machine_load(&m, GANTRY_SOURCE_DIR "/graphs/machines/h200-8.json", NULL), GANTRY_OK);
    ck_assert_int_eq(gantry_machine_select(&one, m, "1", NULL), GANTRY_OK);
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
        char text[600];
        int k = measured[i].terms, rows = measured[i].rows, columns = measured[i].columns;
        snprintf(
            text, sizeof text,
            "{\"gantry\":1,\"name\":\"s\",\"buffers\":{\"a\":{\"dtype\":\"bf16\",\"shape\":[%d,%d],\"init\":1},"
            "\"b\":{\"dtype\":\"bf16\",\"shape\":[%d,%d],\"init\":1},\"c\":{\"dtype\":\"bf16\",\"shape\":[%d,%d]}},"
            "\"nodes\":[{\"id\":\"slab\",\"kernel\":\"gemm\",\"args\":{\"a\":\"a\",\"b\":\"b\",\"c\":\"c\"}}]}",
            rows, k, k, columns, rows, columns);
        gantry_graph *g = parse_graph(text);
        gantry_schedule *s = schedule(g, one, "heft");
        double us = gy_ticks_to_us(op_of(s, "slab")->duration);
        ck_assert_msg(fabs(us / measured[i].us - 1) < measured[i].within, "%d x %d x %d: %.1f us predicted, %.1f taken",
                      rows, k, columns, us, measured[i].us);
        gantry_schedule_free(s);
        gantry_graph_free(g);
    }
    gantry_machine_free(one);
    gantry_machine_free(m);
}
END_TEST

/* Products that are deeper than square ones that compute as much, f32 on an H200 (2026-11-28, us by CUPTI, in graphs of
 * several lanes; docs/performance/gpu.md), by the points of square ones calibrated the same hour. Without their depth
 * they are predicted at 0.5 to 0.8 of that. Of one row no such thing is known. */
START_TEST(depth)
{
    static const struct {
        int rows, terms, columns;
        double us, within;
    } measured[] = { { 128, 256, 10, 6.78, 0.05 },
                     { 256, 128, 10, 5.78, 0.25 },
                     { 64, 512, 128, 7.45, 0.15 },
                     { 64, 96, 32, 5.47, 0.35 },
                     { 96, 64, 32, 3.81, 0.15 } };
    static const char machine[] =
        "{\"gantry_machine\":1,\"memories\":[{\"id\":\"near\",\"capacity\":\"1GiB\"}],\"devices\":[{\"id\":\"p\","
        "\"kind\":\"fast\",\"type\":\"gpu\",\"memory\":\"near\",\"launch_us\":1.03,\"bandwidth_gbs\":4814}],"
        "\"kernels\":[{\"kernel\":\"gemm\",\"dtype\":\"f32\",\"kind\":\"fast\",\"by\":\"flops\",\"points\":"
        "[[8192,2.031],[524288,3.272],[4194304,4.455],[33554432,6.616],[268435456,12.805],[2147483648,55.559]]}]}";
    gantry_machine *m = parse_machine(machine);
    for (size_t i = 0; i <= sizeof measured / sizeof *measured; i++) {
        bool is_row = i == sizeof measured / sizeof *measured;
        char text[600];
        int k = is_row ? 256 : measured[i].terms, rows = is_row ? 1 : measured[i].rows;
        int columns = is_row ? 64 : measured[i].columns;
        snprintf(text, sizeof text,
                 "{\"gantry\":1,\"name\":\"s\",\"buffers\":{\"a\":{\"dtype\":\"f32\",\"shape\":[%d,%d],\"init\":1},"
                 "\"b\":{\"dtype\":\"f32\",\"shape\":[%d,%d],\"init\":1},\"c\":{\"dtype\":\"f32\",\"shape\":[%d,%d]}},"
                 "\"nodes\":[{\"id\":\"deep\",\"kernel\":\"gemm\",\"args\":{\"a\":\"a\",\"b\":\"b\",\"c\":\"c\"}}]}",
                 rows, k, k, columns, rows, columns);
        gantry_graph *g = parse_graph(text);
        gantry_schedule *s = schedule(g, m, "heft");
        double us = gy_ticks_to_us(op_of(s, "deep")->duration);
        if (is_row)
            ck_assert_msg(us < 2.2, "%.2f us predicted of a row", us);
        else
            ck_assert_msg(fabs(us / measured[i].us - 1) < measured[i].within,
                          "%d x %d x %d: %.2f us predicted, %.2f taken", rows, k, columns, us, measured[i].us);
        if (!is_row && i < 4)
            check_cost(s, g, "deep", "; the square product of its depth takes longer\n");
        gantry_schedule_free(s);
        gantry_graph_free(g);
    }
    gantry_machine_free(m);
}
END_TEST

/* A node with a flag takes 9 us more on a GPU and 5 where it is left out, or what its machine says; a CPU just asks. */
START_TEST(nodes_with_a_flag)
{
#define FLAGGED(model)                                                                                                 \
    "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},{\"id\":\"m\",\"capacity\":\"1GiB\"}" \
    "],"                                                                                                               \
    "\"devices\":[{\"id\":\"p\",\"kind\":\"fast\",\"type\":\"gpu\",\"memory\":\"m\",\"launch_us\":2,\"bandwidth_"      \
    "gbs\":"                                                                                                           \
    "1}],\"routes\":[{\"from\":\"host\",\"to\":\"m\",\"both\":true,\"bandwidth_gbs\":1}]" model "}"
    static const char text[] =
        "{\"gantry\":1,\"name\":\"w\",\"buffers\":{\"flag\":{\"dtype\":\"u8\",\"shape\":[1]},"
        "\"y\":{\"dtype\":\"f32\",\"shape\":[250],\"init\":1,\"class\":\"state\"}},\"nodes\":["
        "{\"id\":\"set\",\"fill\":{\"to\":\"flag\",\"value\":1},\"cost\":{\"time_us\":1}},"
        "{\"id\":\"n\",\"fill\":{\"to\":\"y\",\"value\":1},\"cost\":{\"time_us\":1},\"when\":{\"buffer\":\"flag\"}}]}";
    static const struct {
        const char *machine, *cost;
        double without;
    } cases[] = { { FLAGGED(""), "\n  p  12.000 us", 8 },
                  { FLAGGED(",\"model\":{\"when_us\":30}"), "\n  p  33.000 us", 8 },
                  { FLAGGED(",\"model\":{\"when_us\":3,\"left_out_us\":1.5}"), "\n  p  6.000 us", 4.5 } };
    gantry_graph *g = parse_graph(text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gantry_machine *m = parse_machine(cases[i].machine);
        gantry_schedule *s = schedule(g, m, "heft");
        check_cost(s, g, "n", cases[i].cost);
        ck_assert_int_eq(s->without, gy_ticks_from_us(cases[i].without));
        gantry_schedule_free(s);
        gantry_machine_free(m);
    }
    gantry_graph_free(g);
}
END_TEST

/* 1000 elements of x * y + z count two operations each. By peaks f64 has half of what f32 has; measured, 4 GFLOP/s take
 * 0.5 us, and f32 that was not measured is as without. A CPU knows no such speeds. */
START_TEST(speeds_of_formulas)
{
#define FORMULAS(speeds)                                                                                               \
    "{\"gantry_machine\":1,\"memories\":[{\"id\":\"near\",\"capacity\":\"1GiB\"}],\"devices\":[{\"id\":\"p\","         \
    "\"kind\":\"fast\",\"type\":\"gpu\",\"memory\":\"near\",\"launch_us\":2," speeds "\"gflops\":{\"f32\":20}},"       \
    "{\"id\":\"q\",\"kind\":\"slow\",\"type\":\"cpu\",\"memory\":\"near\"," speeds "\"gflops\":{\"f32\":1}}]}"
    static const char text[] =
        "{\"gantry\":1,\"name\":\"f\",\"buffers\":{\"x\":{\"dtype\":\"f64\",\"shape\":[1000],\"init\":1},"
        "\"y\":{\"dtype\":\"f64\",\"shape\":[1000]},\"u\":{\"dtype\":\"f32\",\"shape\":[1000],\"init\":1},"
        "\"v\":{\"dtype\":\"f32\",\"shape\":[1000]}},\"nodes\":["
        "{\"id\":\"wide\",\"map\":{\"y\":\"x + x\"},\"args\":{\"x\":\"x\",\"y\":\"y\"}},"
        "{\"id\":\"narrow\",\"map\":{\"v\":\"u + u\"},\"args\":{\"u\":\"u\",\"v\":\"v\"}}]}";
    static const struct {
        const char *machine, *wide, *narrow;
    } cases[] = {
        { FORMULAS(""), "\n  p  2.200 us  roofline: 2.000 us launch, then the longer of 2000 flops / 10 GFLOP/s",
          "\n  p  2.100 us  roofline: 2.000 us launch, then the longer of 2000 flops / 20 GFLOP/s" },
        { FORMULAS("\"formulas\":{\"f64\":4},"),
          "\n  p  2.500 us  roofline: 2.000 us launch, then the longer of 2000 flops / 4 GFLOP/s",
          "\n  p  2.100 us  roofline: 2.000 us launch, then the longer of 2000 flops / 20 GFLOP/s" },
        { FORMULAS("\"formulas\":{\"f32\":5},"),
          "\n  p  2.200 us  roofline: 2.000 us launch, then the longer of 2000 flops / 10 GFLOP/s",
          "\n  p  2.400 us  roofline: 2.000 us launch, then the longer of 2000 flops / 5 GFLOP/s" },
    };
    gantry_graph *g = parse_graph(text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gantry_machine *m = parse_machine(cases[i].machine);
        gantry_schedule *s = schedule(g, m, "heft");
        check_cost(s, g, "wide", cases[i].wide);
        check_cost(s, g, "narrow", cases[i].narrow);
        check_cost(s, g, "narrow",
                   "\n  q  2.000 us  roofline: 0.000 us launch, then the longer of 2000 flops / 1 GFLOP/s");
        gantry_schedule_free(s);
        gantry_machine_free(m);
    }
    gantry_graph_free(g);
}
END_TEST

/* A column of 64 doubles, of a tile with 4 x 64 around: what is packed is 512 bytes read and written, in pieces of 8,
 * of which a GPU moves 32 each: 512 + 2048. A table counts what it was measured as; a CPU moves what there is. */
START_TEST(pieces_of_tiles)
{
#define TILES(kernels)                                                                                                 \
    "{\"gantry_machine\":1,\"memories\":[{\"id\":\"near\",\"capacity\":\"1GiB\"}],\"devices\":[{\"id\":\"p\","         \
    "\"kind\":\"fast\",\"type\":\"gpu\",\"memory\":\"near\",\"launch_us\":2,\"bandwidth_gbs\":1},{\"id\":\"q\","       \
    "\"kind\":\"slow\",\"type\":\"cpu\",\"memory\":\"near\",\"launch_us\":2,\"bandwidth_gbs\":1}],\"kernels\":"        \
    "[" kernels "]}"
    static const char text[] =
        "{\"gantry\":1,\"name\":\"t\",\"buffers\":{\"x\":{\"dtype\":\"f64\",\"shape\":[64,8],\"tiles\":[1,2],"
        "\"init\":1}},\"nodes\":[{\"id\":\"k\",\"work\":{},\"reads\":[\"x[0][0]~0,1\"]}]}";
    static const char *const machine[] = {
        TILES(""),
        TILES("{\"kernel\":\"axpby\",\"dtype\":\"f64\",\"kind\":\"fast\",\"by\":\"bytes\",\"points\":[[2560,30]]}"),
        TILES("{\"kernel\":\"halo_pack\",\"dtype\":\"f64\",\"kind\":\"fast\",\"by\":\"bytes\",\"points\":[[1024,6],"
              "[4096,12]],\"strided\":[[8,3],[64,1]]}"),
        TILES("{\"kernel\":\"halo_pack\",\"dtype\":\"f64\",\"kind\":\"fast\",\"by\":\"bytes\",\"points\":[[1024,6],"
              "[4096,12]]}")
    };
    static const char *const says[] = {
        "\n  p  4.560 us  roofline: 2.000 us launch, then 2560 bytes",
        "\n  p  30.000 us  roofline: 2.000 us launch; no less than axpby (f64) takes for "
        "2560 bytes, 30.000 us; its own 1024 lie in pieces of 8\n",
        "\n  p  10.000 us  measured: the machine's table of halo_pack (f64) on fast, at "
        "3072 bytes, as which count its own 1024 in pieces of 8\n",
        "\n  p  6.000 us  measured: the machine's table of halo_pack (f64) on fast, at "
        "1024 bytes\n"
    };
    gantry_graph *g = parse_graph(text);
    for (int i = 0; i < 4; i++) {
        gantry_machine *m = parse_machine(machine[i]);
        gantry_schedule *s = schedule(g, m, "heft");
        check_cost(s, g, "pack.x.halo0-0_1-1[0,1]", says[i]);
        check_cost(s, g, "pack.x.halo0-0_1-1[0,1]", "  3.024 us  roofline: 2.000 us launch, then 1024 bytes");
        gantry_schedule_free(s);
        gantry_machine_free(m);
    }
    gantry_graph_free(g);
}
END_TEST

/* Rows of a triangle wait for each other, each for memory once, whatever a table of square ones says of so few flops. A
 * CPU has no such chain. */
START_TEST(steps_that_wait_for_each_other)
{
    static const char machine[] =
        "{\"gantry_machine\":1,\"memories\":[{\"id\":\"near\",\"capacity\":\"1GiB\"}],\"devices\":[{\"id\":\"p\","
        "\"kind\":\"fast\",\"type\":\"gpu\",\"memory\":\"near\",\"launch_us\":2,\"bandwidth_gbs\":1000},{\"id\":\"q\","
        "\"kind\":\"fast\",\"type\":\"cpu\",\"memory\":\"near\",\"launch_us\":2,\"bandwidth_gbs\":1000}],\"kernels\":["
        "{\"kernel\":\"getrs\",\"dtype\":\"f64\",\"kind\":\"fast\",\"by\":\"flops\",\"points\":[[524288,40],"
        "[1048576,50]]}]}";
    static const char text[] =
        "{\"gantry\":1,\"name\":\"t\",\"buffers\":{\"a\":{\"dtype\":\"f64\",\"shape\":[512,512],\"init\":1},"
        "\"p\":{\"dtype\":\"i32\",\"shape\":[512],\"init\":1},\"b\":{\"dtype\":\"f64\",\"shape\":[512,2],\"init\":1},"
        "\"c\":{\"dtype\":\"f64\",\"shape\":[512],\"init\":1}},"
        "\"nodes\":[{\"id\":\"solve\",\"kernel\":\"getrs\",\"args\":{\"a\":\"a\",\"pivots\":\"p\",\"b\":\"b\"}},"
        "{\"id\":\"one\",\"kernel\":\"getrs\",\"args\":{\"a\":\"a\",\"pivots\":\"p\",\"b\":\"c\"}}]}";
    gantry_graph *g = parse_graph(text);
    gantry_machine *m = parse_machine(machine);
    gantry_schedule *s = schedule(g, m, "heft");
    check_cost(s, g, "solve", "\n  p  307.200 us  measured: "); /* 512 rows, 0.6 us each */
    check_cost(s, g, "solve", "; its steps wait for memory in turn, 512 times, and take longer\n");
    check_cost(s, g, "solve", "\n  q   50.000 us  measured: ");
    check_cost(s, g, "one", "\n  p  76.800 us  measured: "); /* a quarter for one right side */
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* A tall matrix is factored in another way than a square one, of which the machine has a table or not; a gradient that
 * has no logarithms carries the forward pass out again. Times for exact arguments go before both. */
START_TEST(forms_of_calls)
{
#define FORMS(rest)                                                                                                    \
    "{\"gantry_machine\":1,\"memories\":[{\"id\":\"near\",\"capacity\":\"1GiB\"}],\"devices\":[{\"id\":\"p\","         \
    "\"kind\":\"k\",\"type\":\"gpu\",\"memory\":\"near\",\"launch_us\":2,\"bandwidth_gbs\":1000}],\"kernels\":["       \
    "{\"kernel\":\"qr\",\"dtype\":\"f64\",\"kind\":\"k\",\"by\":\"flops\",\"points\":[[16214,90]]},"                   \
    "{\"kernel\":\"attention_grad\",\"dtype\":\"f32\",\"kind\":\"k\",\"by\":\"flops\",\"points\":[[10240,50]]}" rest   \
    "]}"
    static const char *const machine[] = {
        FORMS(""),
        FORMS(",{\"kernel\":\"qr:tall\",\"dtype\":\"f64\",\"kind\":\"k\",\"by\":\"flops\",\"points\":[[16214,33]]},"
              "{\"kernel\":\"attention_grad:whole\",\"dtype\":\"f32\",\"kind\":\"k\",\"by\":\"flops\",\"points\":"
              "[[10240,70]]},{\"kernel\":\"qr\",\"dtype\":\"f64\",\"kind\":\"k\",\"case\":\"80x8 80x8 8x8\",\"by\":"
              "\"flops\",\"points\":[[19798,44]]}")
    };
    static const char *const tall[] = { "\n  p  90.000 us  measured: the machine's table of qr (f64)",
                                        "\n  p  33.000 us  measured: the machine's table of qr:tall (f64)" };
    static const char *const whole[] = { "\n  p  50.000 us  measured: ", "\n  p  70.000 us  measured: " };
    static const char text[] =
        "{\"gantry\":1,\"name\":\"f\",\"buffers\":{\"a\":{\"dtype\":\"f64\",\"shape\":[66,8],\"init\":1},"
        "\"q\":{\"dtype\":\"f64\",\"shape\":[66,8]},\"r\":{\"dtype\":\"f64\",\"shape\":[8,8]},"
        "\"b\":{\"dtype\":\"f64\",\"shape\":[31,8],\"init\":1},\"s\":{\"dtype\":\"f64\",\"shape\":[31,8]},"
        "\"c\":{\"dtype\":\"f64\",\"shape\":[80,8],\"init\":1},\"t\":{\"dtype\":\"f64\",\"shape\":[80,8]},"
        "\"x\":{\"dtype\":\"f32\",\"shape\":[1,16,4],\"init\":1},\"l\":{\"dtype\":\"f32\",\"shape\":[1,16],\"init\":1},"
        "\"u\":{\"dtype\":\"f32\",\"shape\":[1,16,4]},\"v\":{\"dtype\":\"f32\",\"shape\":[1,16,4]},"
        "\"w\":{\"dtype\":\"f32\",\"shape\":[1,16,4]}},\"nodes\":["
        "{\"id\":\"tall\",\"kernel\":\"qr\",\"args\":{\"a\":\"a\",\"q\":\"q\",\"r\":\"r\"}},"
        "{\"id\":\"short\",\"kernel\":\"qr\",\"args\":{\"a\":\"b\",\"q\":\"s\",\"r\":\"r\"}},"
        "{\"id\":\"known\",\"kernel\":\"qr\",\"args\":{\"a\":\"c\",\"q\":\"t\",\"r\":\"r\"}},"
        "{\"id\":\"whole\",\"kernel\":\"attention_grad\",\"args\":{\"q\":\"x\",\"k\":\"x\",\"v\":\"x\",\"y\":\"x\","
        "\"dy\":\"x\",\"dq\":\"u\",\"dk\":\"v\",\"dv\":\"w\"}},"
        "{\"id\":\"kept\",\"kernel\":\"attention_grad\",\"args\":{\"q\":\"x\",\"k\":\"x\",\"v\":\"x\",\"y\":\"x\","
        "\"dy\":\"x\",\"dq\":\"u\",\"dk\":\"v\",\"dv\":\"w\",\"lse\":\"l\"}}]}";
    gantry_graph *g = parse_graph(text);
    for (int i = 0; i < 2; i++) {
        gantry_machine *m = parse_machine(machine[i]);
        gantry_schedule *s = schedule(g, m, "heft");
        check_cost(s, g, "tall", tall[i]);
        check_cost(s, g, "short", "measured: the machine's table of qr (f64)"); /* 31 rows of 8 are not tall */
        check_cost(s, g, "whole", whole[i]);
        check_cost(s, g, "kept", whole[0]);
        check_cost(s, g, "known",
                   i ? "\n  p  44.000 us  measured for these arguments" : "measured: the machine's table");
        gantry_schedule_free(s);
        gantry_machine_free(m);
    }
    gantry_graph_free(g);
}
END_TEST

/* A GPU draws uniform numbers where they lie, at its bandwidth; normal ones come from the host at each start, 10 GB/s
 * and 3 us, to CPUs from nowhere. */
START_TEST(fills_by_the_host)
{
    static const char machine[] =
        "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},{\"id\":\"near\",\"capacity\":"
        "\"1GiB\"}],"
        "\"devices\":[{\"id\":\"p\",\"memory\":\"near\",\"launch_us\":2,\"bandwidth_gbs\":1000,"
        "\"type\":\"gpu\"},{\"id\":\"c\",\"type\":\"cpu\",\"memory\":\"host\",\"launch_us\":1,\"bandwidth_gbs\":100}],"
        "\"routes\":[{\"from\":\"host\",\"to\":\"near\",\"latency_us\":3,\"bandwidth_gbs\":10,\"both\":true}]}";
    static const char text[] =
        "{\"gantry\":1,\"name\":\"f\",\"buffers\":{\"x\":{\"dtype\":\"f64\",\"shape\":[1000000]}},\"nodes\":["
        "{\"id\":\"one\",\"fill\":{\"to\":\"x\",\"value\":1}},{\"id\":\"drawn\",\"fill\":{\"to\":\"x\",\"random\":{}}},"
        "{\"id\":\"counted\",\"fill\":{\"to\":\"x\",\"iota\":{}}},{\"id\":\"normal\",\"fill\":{\"to\":\"x\",\"normal\":"
        "{}}},"
        "{\"id\":\"said\",\"fill\":{\"to\":\"x\",\"normal\":{}},\"cost\":{\"time_us\":7}}]}";
    gantry_graph *g = parse_graph(text);
    gantry_machine *m = parse_machine(machine);
    gantry_schedule *s = schedule(g, m, "heft");
    check_cost(s, g, "one", "\n  p  10.000 us  roofline: ");
    check_cost(s, g, "drawn", "\n  p  10.000 us  roofline: ");
    check_cost(s, g, "counted", "\n  p  10.000 us  roofline: ");
    check_cost(s, g, "normal", "\n  p  805.000 us  made by the host once, and uploaded at each start: ");
    check_cost(s, g, "normal", "\n  c   81.000 us  roofline: ");
    check_cost(s, g, "said", "\n  p  9.000 us  given with the node, and 2.000 us launch\n");
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* On a GPU a formula takes no less than axpby of as many bytes; blocks of a reduction wait 0.6 us at a time: once for
 * 1,000 floats, and for 20,000 twice, then six times for the launch that ends it. Signed numbers stand in for others.
 */
START_TEST(formulas_and_whole_numbers)
{
    static const char machine[] =
        "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"}],\"devices\":["
        "{\"id\":\"p\",\"type\":\"gpu\",\"kind\":\"fast\",\"memory\":\"host\",\"launch_us\":2,\"gflops\":"
        "{\"f32\":1000,\"f64\":1000},\"bandwidth_gbs\":1000},{\"id\":\"c\",\"type\":\"cpu\",\"memory\":\"host\","
        "\"launch_us\":1,\"bandwidth_gbs\":1000}],\"kernels\":["
        "{\"kernel\":\"axpby\",\"dtype\":\"f32\",\"kind\":\"fast\",\"by\":\"bytes\",\"points\":[[1000,3],[10000,12]]},"
        "{\"kernel\":\"saxpy\",\"dtype\":\"i32\",\"kind\":\"fast\",\"by\":\"bytes\",\"points\":[[1000,3],[10000,12]]}]"
        "}";
    static const char text[] =
        "{\"gantry\":1,\"name\":\"f\",\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[1000],\"init\":1},"
        "\"y\":{\"dtype\":\"f32\",\"shape\":[1000]},\"z\":{\"dtype\":\"f32\",\"shape\":[20000],\"init\":1},"
        "\"r\":{\"dtype\":\"f32\",\"shape\":[1]},\"q\":{\"dtype\":\"f32\",\"shape\":[1]},"
        "\"u\":{\"dtype\":\"u32\",\"shape\":[500],\"init\":1},\"v\":{\"dtype\":\"u32\",\"shape\":[500],\"init\":1}},"
        "\"nodes\":[{\"id\":\"map\",\"map\":{\"y\":\"x * 2\"},\"args\":{\"x\":\"x\",\"y\":\"y\"}},"
        "{\"id\":\"one\",\"reduce\":{\"r\":\"sum(x)\"},\"args\":{\"x\":\"x\",\"r\":\"r\"}},"
        "{\"id\":\"two\",\"reduce\":{\"r\":\"sum(x)\"},\"args\":{\"x\":\"z\",\"r\":\"q\"}},"
        "{\"id\":\"whole\",\"kernel\":\"saxpy\",\"args\":{\"a\":2,\"x\":\"u\",\"y\":\"v\"}}]}";
    gantry_graph *g = parse_graph(text);
    gantry_machine *m = parse_machine(machine);
    gantry_schedule *s = schedule(g, m, "heft");
    check_cost(s, g, "map",
               "\n  p  10.000 us  roofline: 2.000 us launch, then 2000 flops / 1000 GFLOP/s = 0.002 us; "
               "no less than axpby (f32) takes for 8000 bytes, 10.000 us\n");
    check_cost(s, g, "map", "\n  c   1.008 us  roofline: ");
    check_cost(s, g, "one", "takes for 4004 bytes, 6.004 us; 1 waits for memory in turn, 0.600 us\n");
    check_cost(s, g, "one", "\n  p  6.604 us  roofline: ");
    check_cost(s, g, "two", "\n  p  100.805 us  roofline: ");
    check_cost(s, g, "two", "; 8 waits for memory in turn, 4.800 us\n");
    check_cost(s, g, "whole", "\n  p  8.000 us  measured: the machine's table of saxpy (i32) on fast, at 6000 bytes\n");
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* Nodes of these very arguments; `double` has other ones, or another element type, or runs elsewhere. */
#define EXACT(dtype, kind, text, us)                                                                                   \
    "{\"kernel\":\"saxpy\",\"dtype\":\"" dtype "\",\"kind\":\"" kind "\",\"case\":\"" text                             \
    "\",\"by\":\"flops\",\"points\":[[7," us "]]}"
START_TEST(exact_arguments)
{
    gantry_graph *g = parse_graph(graph_text);
    gantry_machine *m = parse_machine(
        MACHINE(EXACT("f32", "fast", "48 48", "1.5") "," BY_FLOPS "," EXACT("f32", "slow", "200 200", "3") "," EXACT(
            "f32", "fast", "200 200", "99") "," EXACT("f32", "fast", "100 100", "4")));
    gantry_schedule *s = schedule(g, m, "heft");
#define THESE "measured for these arguments: saxpy (f32) of 48 48 on fast\n"
    check_cost(s, g, "between", "\n  p  1.500 us  " THESE); /* without the launches, which are in it */
    check_cost(s, g, "between", "\n  q  1.500 us  " THESE);
    check_cost(s, g, "between", "\n  r  5.001 us  roofline: ");
    check_cost(s, g, "first", "\n  p  10.000 us  " TABLE "64 flops\n");
    check_cost(s, g, "given", "\n  p   9.000 us  given with the node, and 2.000 us launch\n");
    check_cost(s, g, "double", "\n  p   2.002 us  roofline: ");
    check_cost(s, g, "idle", "\n  p   2.002 us  roofline: ");
    ck_assert_int_eq(op_of(s, "between")->duration, gy_ticks_from_us(1.5));
    ck_assert_int_eq(op_of(s, "between")->provenance, GY_COST_MEASURED);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* Nodes whose work is the same take what each shape takes: a square product, and a long thin one. */
START_TEST(same_work_other_shape)
{
    static const char text[] = "{\"gantry\":1,\"name\":\"g\",\"buffers\":{"
                               "\"a\":{\"dtype\":\"f32\",\"shape\":[64,64],\"init\":1},"
                               "\"t\":{\"dtype\":\"f32\",\"shape\":[4096,8],\"init\":1},"
                               "\"b\":{\"dtype\":\"f32\",\"shape\":[8,8],\"init\":1},"
                               "\"c\":{\"dtype\":\"f32\",\"shape\":[64,64]},"
                               "\"d\":{\"dtype\":\"f32\",\"shape\":[4096,8]}},\"nodes\":["
                               "{\"id\":\"square\",\"kernel\":\"gemm\",\"args\":{\"a\":\"a\",\"b\":\"a\",\"c\":\"c\"}},"
                               "{\"id\":\"thin\",\"kernel\":\"gemm\",\"args\":{\"a\":\"t\",\"b\":\"b\",\"c\":\"d\"}}]}";
#define GEMM(of) "{\"kernel\":\"gemm\",\"dtype\":\"f32\",\"kind\":\"fast\"," of ",\"by\":\"flops\",\"points\":[[524288,"
    gantry_graph *g = NULL;
    ck_assert_int_eq(gantry_graph_parse(&g, text, strlen(text), "g", NULL, NULL, NULL), GANTRY_OK);
    gantry_machine *m = parse_machine(MACHINE(
                       GEMM("\"case\":\"4096x8 8x8 4096x8\"") "40]]}," GEMM("\"case\":\"64x64 64x64 64x64\"") "10]]}")),
                   *p = NULL;
    ck_assert_int_eq(gantry_machine_select(&p, m, "id:p", NULL), GANTRY_OK);
    gantry_schedule *s = schedule(g, p, "heft");
    ck_assert(g->nodes.at[0].flops == 524288 && g->nodes.at[1].flops == 524288);
    ck_assert_int_eq(op_of(s, "square")->duration, gy_ticks_from_us(10));
    ck_assert_int_eq(op_of(s, "thin")->duration, gy_ticks_from_us(40));
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_machine_free(p);
    gantry_graph_free(g);
}
END_TEST

/* The op has that duration and says where it is from, and the policy goes by it: on the fast ones the table makes the
 * node dear, without it they are the better ones. */
START_TEST(what_the_schedule_has)
{
    gantry_graph *g = parse_graph(graph_text);
    gantry_machine *with = parse_machine(MACHINE(BY_FLOPS)), *fast = NULL;
    ck_assert_int_eq(gantry_machine_select(&fast, with, "id:p", NULL), GANTRY_OK);
    gantry_machine *without = parse_machine(MACHINE(""));
    gantry_schedule *a = schedule(g, fast, "heft"), *b = schedule(g, with, "heft"), *c = schedule(g, without, "heft");
    ck_assert_int_eq(op_of(a, "between")->duration, gy_ticks_from_us(12));
    ck_assert_int_eq(op_of(a, "between")->provenance, GY_COST_MEASURED);
    ck_assert_int_eq(op_of(a, "given")->provenance, GY_COST_GIVEN);
    ck_assert_int_eq(op_of(a, "double")->provenance, GY_COST_ROOFLINE);
    ck_assert_str_eq(device_of(b, "beyond"), "r");
    ck_assert_int_eq(op_of(b, "beyond")->provenance, GY_COST_ROOFLINE);
    ck_assert_str_eq(device_of(c, "beyond"), "p");
    gantry_schedule_free(c);
    gantry_machine_free(without);
    gantry_schedule_free(a);
    gantry_schedule_free(b);
    gantry_machine_free(with);
    gantry_machine_free(fast);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("scheduler: measured kernels");
    TCase *c = tcase_create("measured");
    tcase_add_test(c, which_time);
    tcase_add_test(c, row_times_matrix);
    tcase_add_test(c, beyond_a_launch);
    tcase_add_test(c, slabs);
    tcase_add_test(c, depth);
    tcase_add_test(c, nodes_with_a_flag);
    tcase_add_test(c, speeds_of_formulas);
    tcase_add_test(c, pieces_of_tiles);
    tcase_add_test(c, steps_that_wait_for_each_other);
    tcase_add_test(c, forms_of_calls);
    tcase_add_test(c, fills_by_the_host);
    tcase_add_test(c, formulas_and_whole_numbers);
    tcase_add_test(c, exact_arguments);
    tcase_add_test(c, same_work_other_shape);
    tcase_add_test(c, what_the_schedule_has);
    suite_add_tcase(s, c);
    return run_suite(s);
}
