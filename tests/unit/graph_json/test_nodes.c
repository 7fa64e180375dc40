/* SPDX-License-Identifier: Apache-2.0 */
/* All forms of nodes and what they can have. */
#include "suite.h"
#include <stdio.h>
#include <string.h>

/* A graph with some buffers and these nodes. */
static gantry_graph *with_nodes(const char *nodes)
{
    char text[4096];
    snprintf(text, sizeof text,
             "{\"gantry\": 1, \"params\": {\"p\": 4, \"lr\": 0.5}, \"kernels\": {\"any\": {\"args\": ["
             "{\"name\": \"a\", \"type\": \"f64\"}, {\"name\": \"x\", \"access\": [\"read\", \"readwrite\"]},"
             "{\"name\": \"c\", \"access\": [\"write\", \"sum\", \"max\"]}, {\"name\": \"b\", \"type\": \"f32\", "
             "\"default\": 7}],"
             "\"variadic\": true}}, \"buffers\": {"
             "\"x\": {\"dtype\": \"f32\", \"shape\": [8], \"split\": \"p\", \"init\": 0},"
             "\"y\": {\"dtype\": \"f32\", \"shape\": [8], \"split\": \"p\", \"init\": 0},"
             "\"t\": {\"dtype\": \"f32\", \"shape\": [1], \"init\": 0}}, \"nodes\": [%s]}",
             nodes);
    return graph_of(text);
}

/* The node's line in the normal form. */
static void check_node(const char *nodes, const char *id, const char *expected)
{
    char part[64];
    gantry_graph *g = with_nodes(nodes);
    snprintf(part, sizeof part, "{ \"id\": \"%s", id);
    char *line = line_with(g, part);
    ck_assert_str_eq(line, expected);
    free(line);
    check_stable(g);
    gantry_graph_free(g);
}

/* A node's own `when`, and those of a block and a block of turns, come out at each node. */
START_TEST(nodes_with_when)
{
    check_node("{\"id\": \"k\", \"when\": {\"buffer\": \"t\"}, \"kernel\": \"any\", \"args\": {\"c\": \"y[0]\", "
               "\"x\": \"x[0]\", \"a\": 1}, \"writes\": [\"y[1]\", {\"max\": \"y[2]\"}]}",
               "k",
               "{ \"id\": \"k\", \"kernel\": \"any\", \"args\": { \"a\": 1, \"x\": \"x[0]\", \"c\": \"y[0]\" }, "
               "\"writes\": [\"y[1]\", { \"max\": \"y[2]\" }], \"when\": { \"buffer\": \"t\" } }");
    check_node("{\"when\": {\"buffer\": \"t{0:1}\"}, \"nodes\": [{\"id\": \"c\", \"copy\": {\"from\": \"x[0]\", "
               "\"to\": \"y[0]\"}}]}",
               "c",
               "{ \"id\": \"c\", \"copy\": { \"from\": \"x[0]\", \"to\": \"y[0]\" }, \"when\": { \"buffer\": "
               "\"t\" } }");
    check_node("{\"for\": {\"i\": \"2:4\"}, \"when\": {\"buffer\": \"x{i:i+1}\"}, \"nodes\": [{\"id\": \"w[i]\", "
               "\"work\": {}, \"writes\": [\"y[i]\"]}]}",
               "w[3]",
               "{ \"id\": \"w[3]\", \"work\": {}, \"writes\": [\"y[3]\"], \"when\": { \"buffer\": \"x{3:4}\" } }");
}
END_TEST

/* The nodes that make one flag of two, and a temp buffer that nodes of both know, mean the same when they are read
 * again. */
START_TEST(when_within_when)
{
    gantry_graph *g = graph_of(
        "{\"gantry\": 1, \"buffers\": {\"y\": {\"dtype\": \"f32\", \"shape\": [8], \"init\": 0, \"output\": true}, "
        "\"h\": {\"dtype\": \"f32\", \"shape\": [8]}, \"a\": {\"dtype\": \"u64\", \"shape\": [4], \"init\": 0}, "
        "\"b\": {\"dtype\": \"f64\", \"shape\": [1]}}, \"nodes\": [{\"when\": {\"buffer\": \"a{1:2}\"}, \"nodes\": ["
        "{\"id\": \"p\", \"fill\": {\"to\": \"h\", \"value\": 1}}, {\"id\": \"q\", \"fill\": {\"to\": \"b\", "
        "\"value\": 2}}, "
        "{\"id\": \"r\", \"fill\": {\"to\": \"h\", \"value\": 3}, \"when\": {\"buffer\": \"b\"}}, "
        "{\"id\": \"s\", \"copy\": {\"from\": \"h\", \"to\": \"y\"}}]}]}");
    char *text = json_of(g);
    ck_assert_str_eq(
        strstr(text, "    { \"id\": \"clear"),
        "    { \"id\": \"clear.b.both\", \"fill\": { \"to\": \"b.both\", \"value\": 0 } },\n"
        "    { \"id\": \"set.b.both\", \"copy\": { \"from\": \"b\", \"to\": \"b.both\" }, \"when\": { "
        "\"buffer\": \"a{1:2}\" } },\n"
        "    { \"id\": \"r\", \"fill\": { \"to\": \"h\", \"value\": 3 }, \"when\": { \"buffer\": \"b.both\" } },\n"
        "    { \"id\": \"s\", \"copy\": { \"from\": \"h\", \"to\": \"y\" }, \"when\": { \"buffer\": \"a{1:2}\" } }\n"
        "  ]\n}\n");
    gantry_free(text);
    check_stable(g);
    gantry_graph_free(g);
}
END_TEST

START_TEST(kernel_nodes)
{
    check_node("{\"id\": \"k\", \"kernel\": \"any\", \"args\": {\"c\": \"y[0]\", \"x\": \"x[0]\", \"a\": \"p / 8\"}}",
               "k",
               "{ \"id\": \"k\", \"kernel\": \"any\", \"args\": { \"a\": 0.5, \"x\": \"x[0]\", \"c\": \"y[0]\" } }");
    check_node(
        "{\"id\": \"k\", \"kernel\": \"any\", \"args\": {\"c\": \"t\", \"x\": \"x\", \"a\": 1e30, \"b\": -0.25}, "
        "\"access\": {\"c\": \"sum\", \"x\": \"read\"}}",
        "k",
        "{ \"id\": \"k\", \"kernel\": \"any\", \"args\": { \"a\": 1e+30, \"x\": \"x\", \"c\": \"t\", \"b\": -0.25 }, "
        "\"access\": { \"c\": \"sum\" } }");
    check_node(
        "{\"id\": \"k\", \"kernel\": \"any\", \"args\": {\"c\": \"y\", \"x\": \"x\", \"a\": {\"dynamic\": \"1/p\"}}}",
        "k",
        "{ \"id\": \"k\", \"kernel\": \"any\", \"args\": { \"a\": { \"dynamic\": 0.25 }, \"x\": \"x\", \"c\": \"y\" } "
        "}");
    check_node("{\"id\": \"k\", \"kernel\": \"any\", \"args\": {\"c\": \"y[1]\", \"x\": \"x[1]\", \"a\": 1}, "
               "\"reads\": [\"x[0]\"], \"writes\": [\"y[0]\", {\"max\": \"t\"}]}",
               "k",
               "{ \"id\": \"k\", \"kernel\": \"any\", \"args\": { \"a\": 1, \"x\": \"x[1]\", \"c\": \"y[1]\" }, "
               "\"reads\": [\"x[0]\"], \"writes\": [\"y[0]\", { \"max\": \"t\" }] }");
}
END_TEST

START_TEST(host_nodes)
{
    check_node("{\"id\": \"h\", \"host\": \"reduce_sum\", \"args\": {\"x\": \"x\", \"out\": \"t\"}}", "h",
               "{ \"id\": \"h\", \"host\": \"reduce_sum\", \"args\": { \"x\": \"x\", \"out\": \"t\" } }");
}
END_TEST

/* `it` stays; params and indices do not. */
START_TEST(scalars_in_loops)
{
    check_node("{\"repeat\": 3, \"nodes\": [{\"id\": \"k[i]\", \"for\": {\"i\": 2}, \"kernel\": \"any\", "
               "\"args\": {\"c\": \"y[i]\", \"x\": \"x[i]\", \"a\": \"lr * (i + it)\", \"b\": \"lr * i\"}}]}",
               "k[1]",
               "{ \"id\": \"k[1]\", \"kernel\": \"any\", \"args\": { \"a\": \"0.5 * (1 + it)\", \"x\": \"x[1]\", "
               "\"c\": \"y[1]\", "
               "\"b\": 0.5 } }");
}
END_TEST

START_TEST(copies_and_fills)
{
    check_node("{\"id\": \"c\", \"copy\": {\"from\": \"x[1]\", \"to\": \"y{0:2}\"}}", "c",
               "{ \"id\": \"c\", \"copy\": { \"from\": \"x[1]\", \"to\": \"y{0:2}\" } }");
    check_node("{\"id\": \"f\", \"fill\": {\"to\": \"x\", \"value\": \"lr/2\"}}", "f",
               "{ \"id\": \"f\", \"fill\": { \"to\": \"x\", \"value\": 0.25 } }");
    check_node(
        "{\"id\": \"f\", \"fill\": {\"to\": \"x[0]\", \"random\": {\"seed\": \"p\"}}}", "f",
        "{ \"id\": \"f\", \"fill\": { \"to\": \"x[0]\", \"random\": { \"seed\": 4, \"low\": 0, \"high\": 1 } } }");
    check_node("{\"id\": \"f\", \"fill\": {\"to\": \"x[0]\", \"normal\": {\"mean\": 3}}}", "f",
               "{ \"id\": \"f\", \"fill\": { \"to\": \"x[0]\", \"normal\": { \"seed\": 0, \"mean\": 3, \"deviation\": "
               "1 } } }");
    check_node("{\"id\": \"f\", \"fill\": {\"to\": \"x[0]\", \"iota\": {}}}", "f",
               "{ \"id\": \"f\", \"fill\": { \"to\": \"x[0]\", \"iota\": { \"start\": 0, \"step\": 1 } } }");
}
END_TEST

START_TEST(collectives)
{
    check_node("{\"id\": \"r\", \"collective\": \"all_reduce\", \"op\": \"sum\", \"in\": [{\"for\": {\"i\": \"p\"}, "
               "\"ref\": \"x[i]\"}], "
               "\"out\": [\"x[0]\", \"x[1]\", \"x[2]\", \"x[3]\"], \"algorithm\": \"ring\"}",
               "r",
               "{ \"id\": \"r\", \"collective\": \"all_reduce\", \"op\": \"sum\", \"in\": [\"x[0]\", \"x[1]\", "
               "\"x[2]\", \"x[3]\"], "
               "\"out\": [\"x[0]\", \"x[1]\", \"x[2]\", \"x[3]\"], \"algorithm\": \"ring\" }");
    check_node(
        "{\"id\": \"b\", \"collective\": \"broadcast\", \"in\": [\"x[1]\"], \"out\": [\"y[0]\", \"y[1]\", \"y[2]\"], "
        "\"root\": 1, "
        "\"algorithm\": \"auto\"}",
        "b",
        "{ \"id\": \"b\", \"collective\": \"broadcast\", \"in\": [\"x[1]\"], \"out\": [\"y[0]\", \"y[1]\", \"y[2]\"], "
        "\"root\": 1 }");
}
END_TEST

START_TEST(work_nodes)
{
    check_node(
        "{\"id\": \"w\", \"work\": {}, \"reads\": [\"x[0]\", \"y[1]\"], \"writes\": [\"y[0]\", {\"prod\": \"t\"}, "
        "{\"readwrite\": \"x[3]\"}]}",
        "w",
        "{ \"id\": \"w\", \"work\": {}, \"reads\": [\"x[0]\", \"y[1]\"], \"writes\": [\"y[0]\", { \"prod\": \"t\" }, "
        "{ \"readwrite\": \"x[3]\" }] }");
    /* A region that is read and written is one access. */
    check_node(
        "{\"id\": \"w\", \"work\": {}, \"reads\": [\"x[0]\", \"y[1]\"], \"writes\": [\"y[1]\", \"x[1]\"]}", "w",
        "{ \"id\": \"w\", \"work\": {}, \"reads\": [\"x[0]\"], \"writes\": [{ \"readwrite\": \"y[1]\" }, \"x[1]\"] }");
    check_node(
        "{\"id\": \"w\", \"work\": {}, \"reads\": [{\"for\": {\"i\": \"p\"}, \"if\": \"i != 2\", \"ref\": \"x[i]\"}], "
        "\"writes\": [{\"for\": {\"i\": 2}, \"min\": \"y[i]\"}, {\"ref\": \"t\"}]}",
        "w",
        "{ \"id\": \"w\", \"work\": {}, \"reads\": [\"x[0]\", \"x[1]\", \"x[3]\"], \"writes\": [{ \"min\": \"y[0]\" }, "
        "{ \"min\": \"y[1]\" }, \"t\"] }");
}
END_TEST

START_TEST(costs)
{
    check_node("{\"id\": \"w\", \"work\": {}, \"cost\": {\"flops\": \"2e9*p\", \"bytes\": 1.5}}", "w",
               "{ \"id\": \"w\", \"work\": {}, \"cost\": { \"flops\": 8000000000, \"bytes\": 1.5 } }");
    check_node("{\"id\": \"w\", \"work\": {}, \"cost\": {\"flops\": 3}}", "w",
               "{ \"id\": \"w\", \"work\": {}, \"cost\": { \"flops\": 3, \"bytes\": 0 } }");
    check_node("{\"id\": \"w\", \"work\": {}, \"cost\": {\"time_us\": \"p/8\"}}", "w",
               "{ \"id\": \"w\", \"work\": {}, \"cost\": { \"time_us\": 0.5 } }");
    check_node("{\"id\": \"w\", \"work\": {}, \"cost\": {\"time_us\": {\"P1\": 14, \"h200\": \"p\", \"*\": 9}}}", "w",
               "{ \"id\": \"w\", \"work\": {}, \"cost\": { \"time_us\": { \"P1\": 14, \"h200\": 4, \"*\": 9 } } }");
    check_node("{\"id\": \"w\", \"work\": {}, \"priority\": \"-p\", \"share\": \"1/p\", \"scratch\": \"p*1024\"}", "w",
               "{ \"id\": \"w\", \"work\": {}, \"priority\": -4, \"share\": 0.25, \"scratch\": 4096 }");
}
END_TEST

START_TEST(places)
{
    check_node("{\"id\": \"w\", \"work\": {}, \"on\": \"gpu0\"}", "w",
               "{ \"id\": \"w\", \"work\": {}, \"on\": \"gpu0\" }");
    check_node("{\"id\": \"w\", \"work\": {}, \"on\": \"nvidia-h200\"}", "w",
               "{ \"id\": \"w\", \"work\": {}, \"on\": \"nvidia-h200\" }");
    check_node("{\"id\": \"w\", \"work\": {}, \"on\": 3}", "w", "{ \"id\": \"w\", \"work\": {}, \"on\": 3 }");
    check_node("{\"id\": \"w\", \"work\": {}, \"on\": \"p-1\"}", "w", "{ \"id\": \"w\", \"work\": {}, \"on\": 3 }");
    check_node("{\"id\": \"w[i]\", \"for\": {\"i\": 3}, \"work\": {}, \"on\": \"i\"}", "w[2]",
               "{ \"id\": \"w[2]\", \"work\": {}, \"on\": 2 }");
    check_node("{\"id\": \"w[i]\", \"for\": {\"i\": 3}, \"work\": {}, \"on\": \"cpu\"}", "w[2]",
               "{ \"id\": \"w[2]\", \"work\": {}, \"on\": \"cpu\" }");
    check_node("{\"id\": \"w[i]\", \"for\": {\"i\": 3}, \"work\": {}, \"on\": \"(i + 1) % devices\"}", "w[2]",
               "{ \"id\": \"w[2]\", \"work\": {}, \"on\": \"(2 + 1) % devices\" }");
}
END_TEST

START_TEST(orders)
{
    static const char family[] = "{\"id\": \"a[i]\", \"for\": {\"i\": 3}, \"work\": {}},";
    char nodes[1024];
    snprintf(nodes, sizeof nodes, "%s{\"id\": \"b\", \"work\": {}, \"after\": \"a[i]\"}", family);
    check_node(nodes, "b", "{ \"id\": \"b\", \"work\": {}, \"after\": [\"a[0]\", \"a[1]\", \"a[2]\"] }");
    snprintf(nodes, sizeof nodes, "%s{\"id\": \"b[i]\", \"for\": {\"i\": 2}, \"work\": {}, \"after\": [\"a[i+1]\"]}",
             family);
    check_node(nodes, "b[1]", "{ \"id\": \"b[1]\", \"work\": {}, \"after\": [\"a[2]\"] }");
    snprintf(
        nodes, sizeof nodes,
        "%s{\"id\": \"b[j]\", \"for\": {\"j\": 2}, \"work\": {}, \"with\": \"a[2]\", \"apart\": [\"a[0]\", \"c\"]}, "
        "{\"id\": \"c\", \"work\": {}}",
        family);
    check_node(nodes, "b[0]", "{ \"id\": \"b[0]\", \"work\": {}, \"with\": [\"a[2]\"], \"apart\": [\"a[0]\", \"c\"] }");
    snprintf(nodes, sizeof nodes, "%s{\"id\": \"b\", \"work\": {}, \"apart\": \"a[i]\"}", family);
    check_node(nodes, "b", "{ \"id\": \"b\", \"work\": {}, \"apart\": [\"a[0]\", \"a[1]\", \"a[2]\"] }");
    /* A family of none is no mistake; a later node may be named. */
    check_node(
        "{\"id\": \"a[i]\", \"for\": {\"i\": 0}, \"work\": {}}, {\"id\": \"b\", \"work\": {}, \"after\": \"a[i]\"}",
        "b", "{ \"id\": \"b\", \"work\": {} }");
    check_node("{\"for\": {\"k\": 0}, \"nodes\": [{\"id\": \"a[k]\", \"work\": {}}]}, {\"id\": \"b\", \"work\": {}, "
               "\"after\": \"a[k]\"}",
               "b", "{ \"id\": \"b\", \"work\": {} }");
    check_node("{\"id\": \"b\", \"work\": {}, \"after\": \"c\"}, {\"id\": \"c\", \"work\": {}}", "b",
               "{ \"id\": \"b\", \"work\": {}, \"after\": [\"c\"] }");
}
END_TEST

/* Blocks in blocks: the family of a node is all of it, in adding order. */
START_TEST(families_of_blocks)
{
    check_node("{\"for\": {\"k\": 2}, \"nodes\": [{\"id\": \"a[k,i]\", \"for\": {\"i\": \"k+1\"}, \"work\": {}}, "
               "{\"id\": \"z[k]\", \"work\": {}}]},"
               "{\"id\": \"b\", \"work\": {}, \"after\": [\"a[k,i]\", \"z[1]\"]}",
               "b", "{ \"id\": \"b\", \"work\": {}, \"after\": [\"z[1]\", \"a[0,0]\", \"a[1,0]\", \"a[1,1]\"] }");
}
END_TEST

/* Indices are replaced where they stand as items in brackets; everything else in an id stays. */
START_TEST(ids)
{
    check_node("{\"id\": \"i-a[i][x,2,i*i,]-[b\", \"for\": {\"i\": \"3:4\"}, \"work\": {}}", "i-a[3][x,2,9,]-[b",
               "{ \"id\": \"i-a[3][x,2,9,]-[b\", \"work\": {} }");
}
END_TEST

/* An id that only looks like an item with an index stays as it is. */
START_TEST(odd_ids)
{
    check_node("{\"id\": \"a[i][j k][i\", \"for\": {\"i\": 1}, \"work\": {}}", "a[0]",
               "{ \"id\": \"a[0][j k][i\", \"work\": {} }");
}
END_TEST

int main(void)
{
    const TTest *const cases[] = {
        nodes_with_when,  when_within_when,   kernel_nodes, host_nodes, scalars_in_loops,
        copies_and_fills, collectives,        work_nodes,   costs,      places,
        orders,           families_of_blocks, ids,          odd_ids,
    };
    return RUN_CASES("nodes of graph files", cases);
}
