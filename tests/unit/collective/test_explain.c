/* SPDX-License-Identifier: Apache-2.0 */
/* The text of --explain on collectives, word for word; times by hand as in test_cost.c. */
#include "suite.h"
#include "unit/scheduler/suite.h"

#include <stdio.h>
#include <string.h>

/* Every two memories have a link of their own, 1 us and 1 GB/s; a launch takes 5 us. */
static const char links[] =
    "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},{\"id\":\"m1\",\"capacity\":\"1MiB\"},"
    "{\"id\":\"m2\",\"capacity\":\"1MiB\"},{\"id\":\"m3\",\"capacity\":\"1MiB\"},{\"id\":\"m4\",\"capacity\":\"1MiB\"}]"
    ","
    "\"devices\":[{\"id\":\"d1\",\"memory\":\"m1\"},{\"id\":\"d2\",\"memory\":\"m2\"},{\"id\":\"d3\",\"memory\":\"m3\"}"
    ","
    "{\"id\":\"d4\",\"memory\":\"m4\"}],\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":1,\"bandwidth_gbs\":1}]"
    ","
    "\"model\":{\"launch_us\":5}}";

static gantry_node node_on(gantry_graph *g, const char *id, int device)
{
    char on[8];
    snprintf(on, sizeof on, "%d", device);
    gantry_node n = work(g, id, 1);
    gantry_node_on(g, n, on);
    return n;
}

static void says(const gantry_schedule *s, gantry_node n, const char *want)
{
    char *text = NULL;
    gantry_error err;
    ck_assert_int_eq(gantry_schedule_explain(s, n, &text, NULL, &err), GANTRY_OK);
    ck_assert_msg(strstr(text, want) != NULL, "%s", text);
    gantry_free(text);
}

/* A measured algorithm is taken, though a model has less for another, but more than half. */
START_TEST(others_were_measured)
{
    char text[2048];
    snprintf(text, sizeof text,
             "%.*s,\"collectives\":[{\"collective\":\"all_reduce\",\"algorithm\":\"ring\",\"kind\":\"cpu\",\"ranks\":4,"
             "\"points\":[[1,10],[4000,20]]}]}",
             (int)sizeof links - 2, links);
    gantry_machine *m = parse(text);
    gantry_graph *g = gantry_graph_new("sum");
    gantry_buffer x = buffer(g, "x", 4000), y = buffer(g, "y", 4000);
    gantry_region from[4], to[4];
    gantry_buffer_split(g, x, 4);
    gantry_buffer_split(g, y, 4);
    for (int i = 0; i < 4; i++) {
        from[i] = gantry_part(x, i);
        to[i] = gantry_part(y, i);
        gantry_node_write(g, node_on(g, "w", i), from[i]);
    }
    gantry_node n = gantry_graph_collective(g, "sum", GANTRY_ALL_REDUCE, GANTRY_SUM, 4, from, 4, to, 0);
    gantry_schedule *s = schedule(g, m, "heft");
    says(s, n,
         "20.000 us by ring\n"
         "     copy_engine:             copy engines cannot combine\n"
         "  => ring:         20.000 us  measured: the machine's table\n"
         "     tree:         44.000 us  steps over the machine's routes; others were measured\n");
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* Each of 4 ranks has 4000 bytes: 3 transfers to add a byte up and 3 to tell it make 24,000, over 12 links. */
START_TEST(a_collective_node)
{
    gantry_machine *m = parse(links);
    gantry_graph *g = gantry_graph_new("sum");
    gantry_buffer x = buffer(g, "x", 4000), y = buffer(g, "y", 4000);
    gantry_region from[4], to[4];
    gantry_buffer_split(g, x, 4);
    gantry_buffer_split(g, y, 4);
    for (int i = 0; i < 4; i++) {
        from[i] = gantry_part(x, i);
        to[i] = gantry_part(y, i);
        gantry_node_write(g, node_on(g, "w", i), from[i]);
    }
    gantry_node n = gantry_graph_collective(g, "sum", GANTRY_ALL_REDUCE, GANTRY_SUM, 4, from, 4, to, 0);
    gantry_schedule *s = schedule(g, m, "heft");
    says(s, n,
         "\nhow sum: 3.9 KiB among 4 memories (m1, m2, m3, m4), 11.016 us by two_shot\n"
         "     copy_engine:             copy engines cannot combine\n"
         "     ring:         48.000 us  steps over the machine's routes\n"
         "     tree:         44.000 us  steps over the machine's routes\n"
         "     recursive:    34.000 us  steps over the machine's routes\n"
         "     one_shot:     12.000 us  steps over the machine's routes\n"
         "  => two_shot:     11.016 us  steps over the machine's routes\n"
         "     islands:                 the machine has no islands of these ranks\n"
         "     counters:     11.016 us  a model; chosen only where it was measured\n"
         "     nccl:                    the machine has no measured times for these devices\n"
         "  none is faster than 2.000 us: 23.4 KiB must get to all ranks at 12 GB/s, 2.000 us; the farthest are 1 hop "
         "apart, 1.000 us\n");
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* 4000 bytes from one to three: its engine takes 5 us for each copy; combined and shared out as kernels would, less. */
START_TEST(a_node_that_reads_what_a_collective_brings)
{
    gantry_machine *m = parse(links);
    gantry_graph *g = gantry_graph_new("cast");
    gantry_buffer x = buffer(g, "x", 1000);
    gantry_node r[4];
    gantry_node_write(g, node_on(g, "w", 1), gantry_all(x));
    for (int i = 0; i < 4; i++) {
        r[i] = node_on(g, "r", i);
        gantry_node_read(g, r[i], gantry_all(x));
    }
    gantry_schedule *s = schedule(g, m, "heft");
    says(s, r[3],
         "\nput in for it: broadcast x: 3.9 KiB among 4 memories (m1, m2, m3, m4), 11.016 us by two_shot\n"
         "     copy_engine:  15.000 us  steps over the machine's routes\n"
         "     ring:         33.000 us  steps over the machine's routes\n"
         "     tree:         22.000 us  steps over the machine's routes\n"
         "     recursive:               there is none for this kind\n"
         "     one_shot:     12.000 us  steps over the machine's routes\n"
         "  => two_shot:     11.016 us  steps over the machine's routes\n"
         "     islands:                 the machine has no islands of these ranks\n"
         "     counters:     12.000 us  a model; chosen only where it was measured\n"
         "     nccl:                    the machine has no measured times for these devices\n"
         "  none is faster than 1.333 us: 3.9 KiB must get into or out of m1 at 3 GB/s, 1.333 us; the farthest are 1 "
         "hop "
         "apart, 1.000 us\n");
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* So many sums, all ready at once. The first node is given back. */
static gantry_node add_sums(gantry_graph *g, int count)
{
    gantry_node first = { 0 };
    for (int k = 0; k < count; k++) {
        char name[2][16];
        gantry_region from[4], to[4];
        snprintf(name[0], sizeof name[0], "x%d", k);
        snprintf(name[1], sizeof name[1], "y%d", k);
        gantry_buffer x = buffer(g, name[0], 4000), y = buffer(g, name[1], 4000);
        gantry_buffer_split(g, x, 4);
        gantry_buffer_split(g, y, 4);
        for (int i = 0; i < 4; i++) {
            from[i] = gantry_part(x, i);
            to[i] = gantry_part(y, i);
            gantry_node_write(g, node_on(g, "w", i), from[i]);
        }
        gantry_node n = gantry_graph_collective(g, "sum", GANTRY_ALL_REDUCE, GANTRY_SUM, 4, from, 4, to, 0);
        first = k ? first : n;
    }
    return first;
}

/* One by one they take as often what one takes that is alone. */
START_TEST(a_batch_says_what_it_spares)
{
    gantry_machine *m = parse(links);
    gantry_graph *one = gantry_graph_new("one"), *g = gantry_graph_new("sums");
    char want[120];
    add_sums(one, 1);
    gantry_schedule *alone = schedule(one, m, "heft");
    ck_assert_int_eq(gy_vec_last(&alone->ops)->kind, GY_OP_COLLECTIVE);
    snprintf(want, sizeof want, "it is in a batch of 3: one by one they would take %.3f us;",
             us(3 * gy_vec_last(&alone->ops)->duration));
    gantry_node n = add_sums(g, 3);
    gantry_schedule *s = schedule(g, m, "heft");
    says(s, n, want);
    gantry_schedule_free(s);
    gantry_schedule_free(alone);
    gantry_graph_free(g);
    gantry_graph_free(one);
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("collective explain");
    TCase *c = tcase_create("explain");
    tcase_add_test(c, a_collective_node);
    tcase_add_test(c, others_were_measured);
    tcase_add_test(c, a_batch_says_what_it_spares);
    tcase_add_test(c, a_node_that_reads_what_a_collective_brings);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
