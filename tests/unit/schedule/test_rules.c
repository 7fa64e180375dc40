/* SPDX-License-Identifier: Apache-2.0 */
/* Each rule, broken in the smallest ways in a schedule made by hand: that rule is named, with the ops and the rows. */
#include "schedule/check/check.h"
#include "support/run_suite.h"
#include "unit/schedule/hand.h"
#include <check.h>
#include <gantry/gantry.h>
#include <string.h>

typedef struct damage {
    const char *rule, *from, *to;
    const char *says[3]; /* parts of the message */
} damage;

static const damage damages[] = {
    /* form, seen when the file is read */
    { "form", "\"value\": 3, \"memory\": \"m1\"", "\"value\": 4, \"memory\": \"m1\"", { "value 4 of 4" } },
    { "form", "\"rows\": [0, 4], \"offset\": 256", "\"rows\": [0, 5], \"offset\": 256", { "rows 0 to 5", "has 4" } },
    { "form", "\"offset\": 256, \"bytes\": 8", "\"offset\": 256, \"bytes\": 7", { "7 bytes", "have 8" } },
    { "form", "\"offset\": 512", "\"offset\": 500", { "no multiple of 256" } },
    { "form", "\"space\": \"input\"", "\"space\": \"output\"", { "instance 0", "not of a class" } },
    { "form", "\"space\": \"staging\"", "\"space\": \"input\"", { "role data in space input" } },
    { "form", "\"role\": \"persist\"", "\"role\": \"external\"", { "role external" } },
    { "form",
      "\"space\": \"staging\", \"role\": \"data\"",
      "\"space\": \"staging\", \"role\": \"persist\"",
      { "only slabs persist" } },
    { "form",
      "\"value\": 2, \"memory\": \"m1\", \"space\": \"slab\", \"role\": \"data\"",
      "\"value\": 2, \"memory\": \"m1\", \"space\": \"slab\", \"role\": \"persist\"",
      { "not of a class" } },
    { "form", "\"lane\": 2", "\"lane\": 8", { "lane 8 of 8" } },
    { "form", "[\"write\", 1, 0, 4]", "[\"write\", 10, 0, 4]", { "instance 10 of 10" } },
    { "form", "[\"write\", 1, 0, 4]", "[\"write\", 1, 0, 5]", { "rows 0 to 5", "has 0 to 4" } },
    { "form", "[\"write\", 1, 0, 4]", "[\"write\", 1, 0, 3]", { "same rows" } },
    { "form", "[\"write\", 1, 0, 4]", "[\"read\", 1, 0, 4]", { "a read and a write" } },
    { "form", "[\"write\", 6, 0, 1]", "[\"sum\", 6, 0, 1]", { "one, a write" } },
    { "form", "\"reduce\": \"sum\", \"lane\": 2", "\"reduce\": \"max\", \"lane\": 2", { "identity of \"max\"" } },
    { "form", "[\"sum\", 6, 0, 1]", "[\"max\", 6, 0, 1]", { "max contribution", "accumulator of sum" } },
    { "form",
      "\"kind\": \"copy\", \"lane\": 3",
      "\"kind\": \"copy\", \"reduce\": \"sum\", \"lane\": 3",
      { "copy with reduction" } },
    { "form",
      "\"kind\": \"copy\", \"lane\": 3",
      "\"kind\": \"copy\", \"algorithm\": \"ring\", \"lane\": 3",
      { "copy by algorithm 2" } },
    { "form", "[\"write\", 8, 0, 1, 2]", "[\"write\", 8, 0, 1, 3]", { "rank 3 of 3" } },
    { "form", "[\"write\", 8, 0, 1, 2]", "[\"sum\", 8, 0, 1, 2]", { "mode sum", "then writes" } },
    { "form", "\"to\": 11", "\"to\": 12", { "ops 3 and 12 of 12" } },
    { "form", "\"slot\": 4", "\"slot\": 12", { "slot 12" } },
    { "form", "\"in_flight\": 1", "\"in_flight\": 0", { "in_flight is 0", "1 to 64" } },
    { "form", "\"unroll\": 1", "\"unroll\": 2", { "unroll is 2" } },
    { "form", "\"slabs\": [256, ", "\"slabs\": [", { "2 slabs for 3 memories" } },
    { "form", "\"y\": [0, 2, 4]", "\"y\": [0, 5, 4]", { "part 2 of \"y\" begins at row 4" } },
    { "form", "\"y\": [0, 2, 4]", "\"y\": [1, 2, 4]", { "begin with 0" } },
    { "form", "[1000000, 2000000, 3000000]", "[1000000, 2000000, 1000000]", { "times are 0 or more" } },
    { "form", "[1000000, 2000000, 3000000]", "[-1, 2000000, 3000000]", { "lasts -1 ps" } },
    /* form, seen beside the graph */
    { "form", "\"y\": [0, 2, 4]", "\"y\": [0, 1, 4]", { "\"y\" are cut at other rows" } },
    { "form", "\"y\": [0, 2, 4]", "\"z\": [0, 2, 4]", { "\"z\" has bounds for 2 parts", "has 0" } },
    { "form", "{\"name\": \"x\", \"rows\": 4", "{\"name\": \"x2\", \"rows\": 4", { "\"x2\"", "\"x\"" } },
    { "form", "{\"name\": \"x\", \"rows\": 4", "{\"name\": \"x\", \"rows\": 5", { "has 5 rows", "has 4" } },
    { "form", "    \"make\",\n    \"use\",", "    \"use\",\n    \"make\",", { "node 0 is \"use\"", "is \"make\"" } },
    { "form", "    \"s1\"\n", "    \"s1\", \"more\"\n", { "6 nodes" } },
    /* node */
    { "node", "\"node\": \"s1\"", "\"node\": \"s0\"", { "op 9 \"s0\"", "twice", "op 8" } },
    { "node", "\"node\": \"side\"", "\"node\": \"side\", \"iteration\": 1", { "iteration 1; the node has 1" } },
    { "node",
      "\"kind\": \"launch\", \"node\": \"side\"",
      "\"kind\": \"host\", \"node\": \"side\"",
      { "op 2 \"side\" is a host", "a launch" } },
    { "node",
      "[[\"read\", 5, 0, 4], [\"sum\", 7, 0, 1]]",
      "[[\"read\", 5, 0, 4]]",
      { "op 9 \"s1\" has 1 uses", "has 2" } },
    { "node", "[\"read\", 5, 0, 4]", "[\"read\", 5, 0, 3]", { "w{0:3}", "is read w" } },
    { "node", "[\"read\", 5, 0, 4]", "[\"readwrite\", 5, 0, 4]", { "is readwrite w;", "is read w" } },
    { "node", "[\"read\", 5, 0, 4]", "[\"read\", 4, 0, 4]", { "read y;", "is read w" } },
    /* place, route, capacity */
    { "place",
      "\"node\": \"make\", \"lane\": 2",
      "\"node\": \"make\", \"lane\": 5",
      { "op 1 \"make\" runs on device d2", "memory m1" } },
    { "place",
      "\"kind\": \"copy\", \"lane\": 6",
      "\"kind\": \"copy\", \"lane\": 3",
      { "op 4 \"copy y host -> m2\"", "device d1" } },
    { "place", "\"lanes\": [4, 7, 1]", "\"lanes\": [7, 4, 1]", { "op 10 \"reduce t\"" } },
    { "place",
      "\"node\": \"side\", \"lane\": 0",
      "\"node\": \"side\", \"lane\": 2",
      { "device d1 of kind gpu", "on \"cpu\"" } },
    { "route",
      "\"kind\": \"copy\", \"lane\": 6, \"uses\": [[\"read\", 3, 0, 4]",
      "\"kind\": \"copy\", \"lane\": 6, \"uses\": [[\"read\", 2, 0, 4]",
      { "op 4", "from memory m1 to memory m2" } },
    { "capacity",
      "\"slabs\": [256, 768",
      "\"slabs\": [256, 1280",
      { "memory m1 needs 1280 bytes and has 1024", "256 reserved" } },
    { "capacity", "\"slabs\": [256, 768", "\"slabs\": [256, 256", { "instance 2 (y)", "256 to 264", "has 256" } },
    { "capacity", "\"staging\": 256", "\"staging\": 0", { "instance 3", "the staging of memory host" } },
    { "capacity", "\"staging\": 256", "\"staging\": 4096", { "memory host needs 4352 bytes and has 4096" } },
    /* order, carrier, collective */
    { "order",
      "\"from\": 0, \"to\": 1",
      "\"from\": 4, \"to\": 1",
      { "op 1 \"make\" wait for op 4 \"copy y host -> m2\"" } },
    { "order", "\"from\": 0, \"to\": 1", "\"from\": 1, \"to\": 1", { "not before it" } },
    { "carrier",
      "\"from\": 1, \"to\": 6, \"by\": \"lane\"",
      "\"from\": 1, \"to\": 7, \"by\": \"lane\"",
      { "op 1 \"make\"", "share no lane" } },
    { "carrier", "\"slot\": 4", "\"slot\": 1", { "event 1 signalled by op 3", "by op 1" } },
    { "collective", "\"lanes\": [4, 7, 1]", "\"lanes\": [4, 7, 1, 1]", { "op 10 \"reduce t\" is twice in lane 1" } },
    { "collective",
      "\"lanes\": [4, 7, 1]",
      "\"lanes\": [4, 7, 1, 0]",
      { "rank 3 of op 10 \"reduce t\" reads and writes nothing" } },
    { "collective",
      "\"collective\": \"reduce\"",
      "\"collective\": \"broadcast\"",
      { "2 reads and 1 writes", "has one and" } },
    { "collective",
      "\"collective\": \"reduce\", \"reduce\": \"sum\"",
      "\"collective\": \"gather\"",
      { "reads row 0 twice" } },
    { "collective",
      "\"collective\": \"reduce\", \"reduce\": \"sum\"",
      "\"collective\": \"reduce\"",
      { "its kind has one" } },
    { "collective",
      "\"collective\": \"reduce\", \"reduce\": \"sum\"",
      "\"collective\": \"reduce\", \"reduce\": \"max\"",
      { "accumulator of sum" } },
    { "collective",
      "\"reduce\": \"sum\", \"lanes\": [4, 7, 1]",
      "\"reduce\": \"sum\", \"algorithm\": \"copy_engine\", \"lanes\": [4, 7, 1]",
      { "is a reduce, which \"copy_engine\" cannot carry out" } },
    { "collective",
      "\"collective\": \"reduce\", \"reduce\": \"sum\"",
      "\"collective\": \"scatter\"",
      { "2 reads and 1 writes", "has one or more of one rank and one or more" } },
    { "collective",
      "\"collective\": \"reduce\", \"reduce\": \"sum\", \"lanes\": [4, 7, 1], \"uses\": [[\"read\", 6, 0, 1, 0], "
      "[\"read\", 7, 0, 1, 1], ",
      "\"collective\": \"reduce_scatter\", \"reduce\": \"sum\", \"lanes\": [4, 7, 1], \"uses\": [[\"read\", 6, 0, 1, "
      "0], [\"read\", 7, "
      "0, 1, 1], [\"write\", 6, 0, 1, 0], ",
      { "writes row 0 twice; a reduce_scatter writes each once" } },
    { "collective",
      "[\"read\", 6, 0, 1, 0], [\"read\", 7, 0, 1, 1]",
      "[\"read\", 6, 0, 0, 0], [\"read\", 7, 0, 0, 1]",
      { "writes row 0" } },
    /* external, after */
    { "external",
      "[[\"read\", 0, 0, 4], [\"write\", 1, 0, 4]]",
      "[[\"read\", 1, 0, 4], [\"write\", 0, 0, 4]]",
      { "input \"x\"" } },
    { "external",
      "[\"read\", 3, 0, 4], [\"write\", 9, 0, 4]",
      "[\"read\", 0, 0, 4], [\"write\", 9, 0, 4]",
      { "op 11", "what \"x\" is at the start", "what \"make\" wrote" } },
    { "external",
      "\"lanes\": [4, 7, 1], \"uses\": [[\"read\", 6, 0, 1, 0], [\"read\", 7, 0, 1, 1], [\"write\", 8, 0, 1, 2]]",
      "\"lanes\": [4, 1], \"uses\": [[\"read\", 6, 0, 1, 0], [\"write\", 8, 0, 1, 1]]",
      { "op 10", "the identity of sum and 1 contribution(s)",
        "it should be the identity of sum and 2 contribution(s)" } },
    { "after",
      "\"from\": 1, \"to\": 2, \"by\": \"event\", \"slot\": 1",
      "\"from\": 0, \"to\": 2, \"by\": \"event\", \"slot\": 0",
      { "op 2 \"side\" comes after op 1 \"make\"" } },
    /* race: each kind of conflict, and reuse of an address (the accumulator of d1 lies where x was) */
    { "race",
      "\"from\": 0, \"to\": 1, \"by\": \"event\", \"slot\": 0",
      "\"from\": 0, \"to\": 9, \"by\": \"event\", \"slot\": 0",
      { "op 1 \"make\" reads", "(x)", "op 0 \"copy x host -> m1\" writes" } },
    { "race",
      "\"from\": 4, \"to\": 5, \"by\": \"edge\"",
      "\"from\": 4, \"to\": 9, \"by\": \"edge\"",
      { "op 5 \"use\" reads bytes 0 to 8 of memory m2" } },
    { "race", "{\"from\": 3, \"to\": 4, \"by\": \"flag\", \"slot\": 0, \"why\": \"data\"},", "", { "op 4", "op 3" } },
    { "race",
      "\"from\": 8, \"to\": 10",
      "\"from\": 8, \"to\": 11",
      { "op 10 \"reduce t\" reads", "op 8 \"s0\" writes" } },
    { "race",
      "\"node\": \"s0\", \"lane\": 2",
      "\"node\": \"s0\", \"lane\": 4",
      { "op 8 \"s0\" reads", "op 1 \"make\" writes" } },
    { "race",
      "\"offset\": 0, \"bytes\": 1},",
      "\"offset\": 256, \"bytes\": 1},",
      { "op 6 \"sum identity t m1\" writes", "op 3 \"copy y m1 -> host\" reads" } },
    { "race",
      "[0, 4], \"offset\": 256",
      "[0, 4], \"offset\": 0",
      { "op 1 \"make\" names bytes 0 to 8 of memory m1 (y) twice" } },
    { "race", "\"offset\": 512, \"bytes\": 1", "\"offset\": 256, \"bytes\": 1", { "" } },
    /* version */
    { "version",
      "\"lane\": 6, \"uses\": [[\"read\", 3, 0, 4]",
      "\"lane\": 6, \"uses\": [[\"read\", 0, 0, 4]",
      { "op 5 \"use\" reads y in", "what \"x\" is at the start", "what \"make\" wrote" } },
    { "version",
      "[[\"read\", 0, 0, 4], [\"write\", 1, 0, 4]]",
      "[[\"read\", 0, 1, 4], [\"write\", 1, 1, 4]]",
      { "op 1 \"make\" reads x{0:1} in memory m1", "nothing known", "what \"x\" is at the start" } },
    { "version", "\"role\": \"persist\"", "\"role\": \"data\"", { "op 5 \"use\" reads w in" } },
    /* exit */
    { "exit",
      "\"rows\": [0, 4], \"offset\": 0, \"bytes\": 8}\n  ]",
      "\"rows\": [0, 4], \"offset\": 0, \"bytes\": 8},\n    {\"value\": 1, \"memory\": \"m1\", \"space\": \"slab\", "
      "\"role\": \"persist\", "
      "\"rows\": [1, 3], \"offset\": 512, \"bytes\": 4}\n  ]",
      { "w{1:3} in memory m1 (instance 10)", "what \"w\" is at the start", "what \"use\" wrote" } },
    { "exit",
      "[[\"read\", 3, 0, 4], [\"write\", 9, 0, 4]]",
      "[[\"read\", 3, 0, 3], [\"write\", 9, 0, 3]]",
      { "y{3:4}", "nothing known", "what \"make\" wrote" } },
    { "exit",
      "{\"value\": 2, \"memory\": \"host\", \"space\": \"output\", \"role\": \"external\"",
      "{\"value\": 2, \"memory\": \"host\", \"space\": \"slab\", \"role\": \"data\"",
      { "output \"y\"", "never fetched" } },
};

START_TEST(test_right)
{
    gantry_error err = { 0 };
    gantry_graph *g = hand_graph();
    gantry_schedule *s = hand_schedule(NULL, NULL, &err);
    ck_assert_msg(s != NULL, "%s: %s", err.where, err.text);
    ck_assert_msg(gy_schedule_verify(s, g, &err) == GANTRY_OK, "%s: %s", err.where, err.text);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

START_TEST(test_damage)
{
    const damage *d = &damages[_i];
    gantry_error err = { 0 };
    gantry_graph *g = hand_graph();
    gantry_schedule *s = hand_schedule(d->from, d->to, &err);
    gantry_status status = s ? gy_schedule_verify(s, g, &err) : err.status;
    ck_assert_msg(status == GANTRY_E_SCHEDULE, "%s -> %s: %s", d->from, d->to, status ? err.text : "accepted");
    char rule[32];
    snprintf(rule, sizeof rule, "rule %s: ", d->rule);
    ck_assert_msg(strstr(err.text, rule) == err.text, "%s -> %s: %s", d->from, d->to, err.text);
    for (size_t i = 0; i < 3 && d->says[i]; i++)
        ck_assert_msg(strstr(err.text, d->says[i]) != NULL, "%s, which does not say: %s", err.text, d->says[i]);
    ck_assert_int_eq(err.where[0], '/');
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rules");
    TCase *tc = tcase_create("rules");
    tcase_add_test(tc, test_right);
    tcase_add_loop_test(tc, test_damage, 0, (int)(sizeof damages / sizeof damages[0]));
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
