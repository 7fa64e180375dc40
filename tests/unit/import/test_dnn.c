/* SPDX-License-Identifier: Apache-2.0 */
/* Placement of neural networks: machine, transfers across the CPUs' memory, colours, memory, every complaint. */
#include "suite.h"

#include <stdio.h>
#include <string.h>

/*
 * One accelerator, one CPU. a (2) on the accelerator; node3 must go to the CPU (4), where a's output is at 2.5; b (3)
 * on the accelerator until 5; d (1) on the accelerator too, by its colour and by its time: node3's output is there at
 * 6.5 + 2, so it ends at 9.5.
 */
START_TEST(one_accelerator)
{
    ck_assert_double_eq(time_of("dnn", sample_dnn, 0, "heft"), 9.5);
    gantry_graph *g = import_text("dnn", sample_dnn, NULL);
    check_has(g, "\"a.out\": { \"dtype\": \"u8\", \"shape\": [500000], \"class\": \"temp\" }");
    check_has(g, "\"a.memory\": { \"dtype\": \"u8\", \"shape\": [301], \"class\": \"const\", \"init\": 0 }");
    check_has(g, "{\"id\": \"fpga0\", \"capacity\": 3503819}");
    check_has(
        g, "{ \"id\": \"node3\", \"work\": {}, \"reads\": [\"a.out\"], \"writes\": [\"node3.out\"], \"on\": \"cpu\", "
           "\"cost\": { \"time_us\": { \"cpu\": 4 } } }");
    check_has(g, "\"with\": [\"b\"]");
    gantry_graph_free(g);
}
END_TEST

/* a (1), then b and c (10 each), on two accelerators and a slow CPU. %s: colours of b and c, cost of a's output, twice.
 */
static const char two[] =
    "{\"maxSizePerFPGA\": %d, \"maxFPGAs\": 2, \"maxCPUs\": 1, \"nodes\": ["
    "{\"id\": 1, \"supportedOnFpga\": 1, \"cpuLatency\": 100, \"fpgaLatency\": 1, \"size\": 300000},"
    "{\"id\": 2, \"supportedOnFpga\": 1, \"cpuLatency\": 1000, \"fpgaLatency\": 10, \"size\": 300000 %s},"
    "{\"id\": 3, \"supportedOnFpga\": 1, \"cpuLatency\": 1000, \"fpgaLatency\": 10, \"size\": 300000 %s}],"
    "\"edges\": [{\"sourceId\": 1, \"destId\": 2, \"cost\": %s}, {\"sourceId\": 1, \"destId\": 3, \"cost\": %s}]}";

/* From accelerator to accelerator it goes through the CPUs' memory and costs twice: 1 + 0.5 + 0.5 + 10. */
START_TEST(two_accelerators)
{
    char text[2048], same[2048];
    snprintf(text, sizeof text, two, 1000000, "", "", "0.5", "0.5");
    snprintf(same, sizeof same, two, 1000000, ", \"colorClass\": 5", ", \"colorClass\": 5", "0.5", "0.5");
    ck_assert_double_eq(time_of("dnn", text, 0, "heft"), 12);
    ck_assert_double_eq(time_of("dnn", same, 0, "heft"), 21);
    ck_assert_double_eq(time_of("dnn", text, 1, "heft"), 21);
}
END_TEST

static gantry_status place_all_on_one(const char *text)
{
    gantry_graph *g = import_text("dnn", text, NULL);
    const char *json, *path;
    gantry_machine *m = NULL;
    gantry_schedule *s = NULL;
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_error err;
    gantry_graph_machine_hint(g, &json, &path);
    ck_assert_int_eq(gantry_machine_parse(&m, json, strlen(json), "m", &err), GANTRY_OK);
    o.policy = "single";
    gantry_status status = gantry_schedule_new(&s, g, m, &o, &err);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
    return status;
}

/* A node of 300,000 bytes does not fit into 250,000 (three in 800,000 could take turns); three do into 900,000: room
 * for the transfer (500 bytes) and for rounding comes on top. In 2,400,000 that would be less than a thousandth, and
 * nothing is added. */
START_TEST(capacity)
{
    char text[2048];
    snprintf(text, sizeof text, two, 250000, "", "", "0.0005", "0.0005");
    ck_assert_int_eq(place_all_on_one(text), GANTRY_E_CAPACITY);
    snprintf(text, sizeof text, two, 900000, "", "", "0.0005", "0.0005");
    ck_assert_int_eq(place_all_on_one(text), GANTRY_OK);
    gantry_graph *g = import_text("dnn", text, NULL);
    check_has(g, "{\"id\": \"fpga1\", \"capacity\": 902293}"); /* 3 x 512 + 500 + 257 more */
    gantry_graph_free(g);
    snprintf(text, sizeof text, two, 2400000, "", "", "0.0005", "0.0005");
    g = import_text("dnn", text, NULL);
    check_has(g, "{\"id\": \"fpga1\", \"capacity\": 2400000}");
    gantry_graph_free(g);
}
END_TEST

#define NODE(id, more) "{\"id\": " id ", \"supportedOnFpga\": 1, \"cpuLatency\": 1, \"fpgaLatency\": 1" more "}"
#define FILE_OF(nodes, edges)                                                                                          \
    "{\"maxSizePerFPGA\": 9, \"maxFPGAs\": 1, \"maxCPUs\": 0, \"nodes\": [" nodes "],\n\"edges\": [" edges "]}"

START_TEST(complaints)
{
    static const refused samples[] = {
        { "{", ":1:1: not well-formed JSON: string or '}' expected near end of file" },
        { "[]", ":1:1: the file must be an object, not an array" },
        { "{}", ":1:1: missing key \"maxSizePerFPGA\": give a number" },
        { "{\"maxSizePerFPGA\": 0}", ":1:20: /maxSizePerFPGA: \"maxSizePerFPGA\" must be between 1 and 4e+18, not 0" },
        { "{\"maxSizePerFPGA\": 9, \"maxFPGAs\": 5000}",
          ":1:35: /maxFPGAs: \"maxFPGAs\" must be between 0 and 4096, not 5000" },
        { "{\"maxSizePerFPGA\": 9, \"maxFPGAs\": 0, \"maxCPUs\": 0}",
          ":1:1: \"maxFPGAs\" and \"maxCPUs\" are 0; give at least one device" },
        { "{\"maxSizePerFPGA\": 9, \"maxFPGAs\": 1, \"maxCPUs\": 0}", ":1:1: missing key \"nodes\": give an array" },
        { "{\"maxSizePerFPGA\": 9, \"maxFPGAs\": 1, \"maxCPUs\": 0, \"nodes\": 1, \"edges\": []}",
          ":1:61: /nodes: \"nodes\" must be an array, not an integer" },
        { FILE_OF("", ""), ":1:1: there is no task in the file; give at least one" },
        { FILE_OF("7", ""), ":1:62: /nodes/0: a node must be an object, not an integer" },
        { FILE_OF("{}", ""), ":1:62: /nodes/0: missing key \"id\": give an integer" },
        { FILE_OF(NODE("1", "") "," NODE("1", ""), ""),
          ":1:129: /nodes/1: id 1 is that of node 0 already; ids are unique" },
        { FILE_OF("{\"id\": 1, \"cpuLatency\": -1}", ""),
          ":1:86: /nodes/0/cpuLatency: \"cpuLatency\" must be between 0 and 1000000000000, not -1" },
        { FILE_OF("{\"id\": 1, \"cpuLatency\": 1, \"fpgaLatency\": \"x\"}", ""),
          ":1:104: /nodes/0/fpgaLatency: \"fpgaLatency\" must be a number, not a string" },
        { FILE_OF("{\"id\": 1, \"cpuLatency\": 1, \"fpgaLatency\": 1}", ""),
          ":1:62: /nodes/0: missing key \"supportedOnFpga\": give true or false" },
        { FILE_OF("{\"id\": 1, \"cpuLatency\": 1, \"fpgaLatency\": 1, \"supportedOnFpga\": 2}", ""),
          ":1:126: /nodes/0/supportedOnFpga: \"supportedOnFpga\" must be true, false, 1 or 0, not another number" },
        { FILE_OF("{\"id\": 1, \"cpuLatency\": 1, \"fpgaLatency\": 1, \"supportedOnFpga\": \"y\"}", ""),
          ":1:126: /nodes/0/supportedOnFpga: \"supportedOnFpga\" must be true, false, 1 or 0, not a string" },
        { FILE_OF("{\"id\": 1, \"cpuLatency\": 1, \"fpgaLatency\": 1, \"supportedOnFpga\": 0}", ""),
          ":1:62: /nodes/0: node \"node1\" is not supported on accelerators, and \"maxCPUs\" is 0; give it a CPU" },
        { FILE_OF(NODE("1", ", \"colorClass\": \"red\""), ""),
          ":1:143: /nodes/0/colorClass: \"colorClass\" must be an integer, not a string" },
        { FILE_OF(NODE("1", ""), "{}"), ":2:11: /edges/0: missing key \"sourceId\": give an integer" },
        { FILE_OF(NODE("1", ""), "{\"sourceId\": 1, \"destId\": 2, \"cost\": 0}"),
          ":2:37: /edges/0/destId: no node has the id 2" },
        { FILE_OF(NODE("1", "") "," NODE("2", ""), "{\"sourceId\": 1, \"destId\": 2}"),
          ":2:11: /edges/0: missing key \"cost\": give a number" },
        { FILE_OF(NODE("1", "") "," NODE("2", ""),
                  "{\"sourceId\": 1, \"destId\": 2, \"cost\": 1}, {\"sourceId\": 1, \"destId\": 2, \"cost\": 2}"),
          ":2:52: /edges/1: \"cost\" is 2, but an earlier edge from \"node1\" says 1; it is the cost of the node's "
          "output, "
          "the same for all edges" },
        { FILE_OF(NODE("1", "") "," NODE("2", "") "," NODE("3", ""),
                  "{\"sourceId\": 1, \"destId\": 2, \"cost\": 0}, {\"sourceId\": 2, \"destId\": 3, \"cost\": 1},"
                  "{\"sourceId\": 3, \"destId\": 1, \"cost\": 0}"),
          ":1:62: /nodes/0: tasks depend on each other in a circle of 3: node1 -> node2 -> node3 -> node1; take one "
          "of "
          "these "
          "dependencies away" },
        { FILE_OF(NODE("1", ""), "{\"sourceId\": 1, \"destId\": 1, \"cost\": 3}"),
          ":1:62: /nodes/0: tasks depend on each other in a circle of 1: node1 -> node1; take one of these "
          "dependencies "
          "away" },
        { FILE_OF(NODE("1", ", \"size\": 3e18") "," NODE("2", ", \"size\": 3e18"), ""),
          ": sizes add up to 6e+18 bytes, and at most 4e+18 are allowed; scale the sizes in the file down" },
    };
    CHECK_REFUSALS("dnn", samples);
}
END_TEST

int main(void)
{
    const TTest *cases[] = { one_accelerator, two_accelerators, capacity, complaints };
    return RUN_CASES("import_dnn", cases);
}
