/* SPDX-License-Identifier: Apache-2.0 */
/* Machines of several ranks: joined from several computers, dealt out, read, and cut down. Times are worked out here.
 */
#include "suite.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gantry_machine *join_of(const gantry_machine *a, const gantry_machine *b, double us, double gbs)
{
    gantry_machine *m = NULL;
    gantry_error err = { 0 };
    const gantry_machine *const nodes[] = { a, b };
    gantry_join_options o = GANTRY_JOIN_OPTIONS_INIT;
    o.latency_us = us;
    o.gbs = gbs;
    ck_assert_msg(gantry_machine_join(&m, nodes, b ? 2 : 1, &o, &err) == GANTRY_OK, "%s", err.text);
    return m;
}

static gantry_machine *virtual_of(int devices)
{
    gantry_machine *m = NULL;
    gantry_error err = { 0 };
    ck_assert_int_eq(gantry_machine_virtual(&m, devices, &err), GANTRY_OK);
    return m;
}

static void check_ranks(const gantry_machine *m, const char *want)
{
    gy_text text = { 0 };
    for (uint32_t i = 0; i < m->memories; i++)
        gy_text_printf(&text, "%s%s:%u", i ? " " : "", m->memory[i].id, m->memory[i].rank);
    ck_assert_str_eq(text.at, want);
    gy_text_free(&text);
}

static bool uses(const gantry_machine *m, const gy_route *r, const char *resource)
{
    for (uint32_t i = 0; i < r->resources; i++)
        if (!strcmp(m->resource[r->resource[i]].id, resource))
            return true;
    return false;
}

START_TEST(two_nodes)
{
    gantry_machine *a = virtual_of(2), *b = virtual_of(1), *m = join_of(a, b, 2.5, 10);
    check_ranks(m, "r0.host:0 r0.mem0:0 r0.mem1:0 r1.host:1 r1.mem0:1");
    ck_assert_str_eq(m->name, "host-2 + host-1");
    ck_assert_uint_eq(gy_machine_ranks(m), 2);
    ck_assert_uint_eq(gantry_machine_rank_count(m), 2);
    ck_assert_str_eq(m->device[2].id, "r1.dev0");
    ck_assert_uint_eq(gy_device_rank(m, 2), 1);
    ck_assert(m->memory[0].host && !m->memory[3].host);
    for (int64_t bytes = 1; bytes < INT64_C(1) << 36; bytes *= 7) {
        ck_assert_int_eq(copy_ticks(m, "r0.mem0", "r0.mem1", bytes), copy_ticks(a, "mem0", "mem1", bytes));
        ck_assert_int_eq(copy_ticks(m, "r1.host", "r1.mem0", bytes), copy_ticks(b, "host", "mem0", bytes));
        ck_assert_int_eq(copy_ticks(m, "r0.mem1", "r1.mem0", bytes), 2500000 + bytes * 100); /* ps: 10 GB/s */
        ck_assert_int_eq(copy_ticks(m, "r1.mem0", "r0.host", bytes), 2500000 + bytes * 100);
    }
    const gy_route *r = route_of(m, "r0.mem1", "r1.mem0");
    ck_assert(r->kind == GY_ROUTE_DIRECT && r->resources == 2);
    ck_assert(uses(m, r, "r0.network.out") && uses(m, r, "r1.network.in"));
    ck_assert(uses(m, route_of(m, "r1.mem0", "r0.mem1"), "r1.network.out"));
    gantry_machine_free(a);
    gantry_machine_free(b);
    gantry_machine_free(m);
}
END_TEST

/* Through both hosts: the three copies one after the other, at any size, and all their resources. */
START_TEST(gpus)
{
    gantry_machine *a = load_machine("rtx-mixed-3"), *b = load_machine("sirocco"), *m = join_of(a, b, 3, 12.5);
    const char *from = a->memory[1].id, *to = b->memory[2].id, *h = a->memory[0].id, *g = b->memory[0].id;
    char mine[64], theirs[64];
    snprintf(mine, sizeof mine, "r0.%s", from);
    snprintf(theirs, sizeof theirs, "r1.%s", to);
    for (int64_t bytes = 1; bytes < INT64_C(1) << 36; bytes = bytes * 5 + 1) {
        gy_ticks sum = copy_ticks(a, from, h, bytes) + 3000000 + bytes * 80 + copy_ticks(b, g, to, bytes);
        gy_ticks got = copy_ticks(m, mine, theirs, bytes);
        ck_assert_msg(got >= sum - 3 && got <= sum + 3, "%lld bytes: %lld, not %lld", (long long)bytes, (long long)got,
                      (long long)sum); /* each of three is rounded up */
    }
    const gy_route *leg = route_of(a, from, h), *whole = route_of(m, mine, theirs);
    for (uint32_t i = 0; i < leg->resources; i++) {
        char id[96];
        snprintf(id, sizeof id, "r0.%s", a->resource[leg->resource[i]].id);
        ck_assert_msg(uses(m, whole, id), "%s is not used", id);
    }
    ck_assert(uses(m, whole, "r0.network.out") && uses(m, whole, "r1.network.in"));
    ck_assert_uint_eq(m->tables, 0);
    bool hosts_last = true;
    for (uint32_t i = 1; i < m->devices; i++)
        hosts_last = hosts_last && m->device[i].host_only >= m->device[i - 1].host_only;
    ck_assert(hosts_last);
    gantry_machine_free(a);
    gantry_machine_free(b);
    gantry_machine_free(m);
}
END_TEST

START_TEST(one_node)
{
    gantry_machine *a = load_machine("hgx-h200-8"), *m = join_of(a, NULL, 0, 0);
    ck_assert_uint_eq(m->resources, a->resources);
    ck_assert_uint_eq(m->tables, a->tables);
    ck_assert_uint_eq(m->kernels, a->kernels);
    ck_assert_int_eq(m->start, a->start);
    for (uint32_t x = 0; x < a->memories; x++)
        for (uint32_t y = 0; y < a->memories; y++) {
            const gy_route *was = gy_machine_route(a, x, y), *is = gy_machine_route(m, x, y);
            ck_assert(was->kind == is->kind && was->via == is->via && was->kernel_bytes == is->kernel_bytes);
            ck_assert_int_eq(gy_route_time(m, is, 12345678), gy_route_time(a, was, 12345678));
        }
    for (uint32_t d = 0; d < a->devices; d++)
        ck_assert(m->device[d].launch == a->device[d].launch && m->device[d].lanes == a->device[d].lanes);
    gantry_machine_free(a);
    gantry_machine_free(m);
}
END_TEST

START_TEST(reads_back)
{
    gantry_machine *a = load_machine("dgx1-v100"), *m = join_of(a, a, 2, 12.5), *again = NULL;
    gantry_error err = { 0 };
    char *text, *twice;
    size_t length, more;
    ck_assert_int_eq(gantry_machine_json(m, &text, &length, &err), GANTRY_OK);
    ck_assert_msg(gantry_machine_parse(&again, text, length, "joined", &err) == GANTRY_OK, "%s", err.text);
    ck_assert_int_eq(gantry_machine_json(again, &twice, &more, &err), GANTRY_OK);
    ck_assert(length == more && !memcmp(text, twice, length));
    ck_assert_uint_eq(gy_machine_ranks(again), 2);
    gantry_device_info d = GANTRY_DEVICE_INFO_INIT;
    gantry_memory_info y = GANTRY_MEMORY_INFO_INIT;
    ck_assert_int_eq(gantry_machine_device(again, 8, &d, &err), GANTRY_OK);
    ck_assert_str_eq(d.id, "r1.gpu0");
    ck_assert_int_eq(d.rank, 1);
    ck_assert_int_eq(gantry_machine_memory(again, (size_t)d.memory, &y, &err), GANTRY_OK);
    ck_assert_int_eq(y.rank, 1);
    gantry_free(text);
    gantry_free(twice);
    gantry_machine_free(a);
    gantry_machine_free(m);
    gantry_machine_free(again);
}
END_TEST

/* Routes of GPUs that ports reach are the network alone, and no two of them share a port. */
START_TEST(ports_of_gpus)
{
    gantry_machine *a = load_machine("dgx-h100"), *m = NULL;
    gantry_error err = { 0 };
    const gantry_machine *const nodes[] = { a, a };
    ck_assert_msg(!gantry_machine_join(&m, nodes, 2, NULL, &err), "%s", err.text); /* as the file says */
    ck_assert(a->network.ports == GANTRY_PORTS_EACH && m->network.rate == 0);
    ck_assert_uint_eq(m->resources, 2 * (a->resources + 2 * a->memories));
    for (int64_t bytes = 0; bytes < INT64_C(1) << 36; bytes = bytes * 5 + 47000) /* ps: 4 us, 47 GB/s */
        ck_assert_int_eq(copy_ticks(m, "r0.gpu3", "r1.gpu5", bytes), 4000000 + (bytes * 1000 + 46) / 47);
    const gy_route *r = route_of(m, "r0.gpu3", "r1.gpu5"), *near = route_of(m, "r0.gpu3", "r0.gpu5");
    ck_assert(r->kind == GY_ROUTE_DIRECT && r->resources == 2 && r->network && !near->network);
    ck_assert(uses(m, r, "r0.gpu3.network.out") && uses(m, r, "r1.gpu5.network.in"));
    ck_assert(uses(m, route_of(m, "r1.host", "r0.gpu0"), "r1.host.network.out"));
    gantry_machine_free(m);
    gantry_join_options o = { sizeof o, 1, 10, GANTRY_PORTS_SHARED };
    ck_assert(!gantry_machine_join(&m, nodes, 2, &o, &err)); /* options go before the file */
    r = route_of(m, "r1.gpu3", "r0.host");
    ck_assert(r->resources == 2 && uses(m, r, "r1.network.out") && uses(m, r, "r0.network.in"));
    ck_assert_int_eq(copy_ticks(m, "r1.gpu3", "r0.host", 100), 1000000 + 10000);
    gantry_machine_free(m);
    gantry_machine_free(a);
}
END_TEST

/* Each has ports of its own kind: the larger latency, the lower rate, and host memory on the side of the PCIe box. */
START_TEST(ports_differ)
{
    gantry_machine *a = load_machine("dgx-h200"), *b = load_machine("a100-pcie-4-100gbe"), *m = NULL;
    gantry_error err = { 0 };
    const gantry_machine *const nodes[] = { a, b };
    ck_assert(!gantry_machine_join(&m, nodes, 2, NULL, &err));
    for (int64_t bytes = 0; bytes < INT64_C(1) << 34; bytes = bytes * 7 + 61) {
        gy_ticks network = 10000000 + (bytes * 5000 + 60) / 61; /* 10 us, 12.2 GB/s */
        gy_ticks sum = network + copy_ticks(b, "host", "gpu1", bytes);
        ck_assert_int_eq(copy_ticks(m, "r0.gpu0", "r1.host", bytes), network);
        gy_ticks got = copy_ticks(m, "r0.gpu0", "r1.gpu1", bytes);
        ck_assert_msg(got >= sum - 3 && got <= sum + 3, "%lld: %lld", (long long)got, (long long)sum);
    }
    const gy_route *r = route_of(m, "r1.gpu1", "r0.gpu7");
    ck_assert(r->network && uses(m, r, "r1.network.out") && uses(m, r, "r0.gpu7.network.in"));
    ck_assert(uses(m, r, "r1.gpu1.out") && !uses(m, r, "r0.gpu7.in"));
    gantry_machine_free(m);
    gantry_machine_free(a);
    gantry_machine_free(b);
}
END_TEST

static void write_twice(const gantry_machine *m)
{
    gantry_machine *again = NULL;
    gantry_error err = { 0 };
    char *text, *twice;
    size_t length, more;
    ck_assert_int_eq(gantry_machine_json(m, &text, &length, &err), GANTRY_OK);
    ck_assert_msg(!gantry_machine_parse(&again, text, length, "again", &err), "%s", err.text);
    ck_assert_int_eq(gantry_machine_json(again, &twice, &more, &err), GANTRY_OK);
    ck_assert(length == more && !memcmp(text, twice, length));
    for (size_t i = 0; i < (size_t)m->memories * m->memories; i++)
        ck_assert(again->route[i].network == m->route[i].network);
    ck_assert(again->network.rate == m->network.rate && again->network.ports == m->network.ports);
    gantry_free(text);
    gantry_free(twice);
    gantry_machine_free(again);
}

/* The network that a file speaks of stays in the file, in what is cut from it, and in joined machines routes say so. */
START_TEST(networks_are_kept)
{
    gantry_machine *a = load_machine("dgx-h100"), *part = NULL, *m = NULL, *cut = NULL;
    gantry_error err = { 0 };
    ck_assert(!gantry_machine_select(&part, a, "2", &err));
    ck_assert(part->network.rate == a->network.rate && part->network.latency == 4000000);
    const gantry_machine *const nodes[] = { part, part, part };
    ck_assert(!gantry_machine_join(&m, nodes, 3, NULL, &err));
    ck_assert(!gantry_machine_select(&cut, m, "3", &err));
    ck_assert(route_of(cut, "r0.gpu0", "r1.gpu0")->network && !route_of(cut, "r0.gpu0", "r0.gpu1")->network);
    write_twice(a);
    write_twice(part);
    write_twice(m);
    write_twice(cut);
    gantry_machine_free(a);
    gantry_machine_free(part);
    gantry_machine_free(m);
    gantry_machine_free(cut);
}
END_TEST

START_TEST(fewer_devices)
{
    gantry_machine *a = virtual_of(2), *ab = join_of(a, a, 1, 1), *m = NULL;
    gantry_error err = { 0 };
    const struct {
        const char *devices, *ranks;
    } cases[] = { { "2", "r0.host:0 r0.mem0:0 r0.mem1:0" },
                  { "3", "r0.host:0 r0.mem0:0 r0.mem1:0 r1.host:1 r1.mem0:1" },
                  { "id:r1.dev1", "r0.host:0 r1.host:1 r1.mem1:1" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(gantry_machine_select(&m, ab, cases[i].devices, &err), GANTRY_OK);
        check_ranks(m, cases[i].ranks);
        gantry_machine_free(m);
    }
    gantry_machine *four = virtual_of(4), *spread = NULL;
    ck_assert_int_eq(gantry_machine_spread(&spread, four, 3, &err), GANTRY_OK);
    check_ranks(spread, "host:0 mem0:0 mem1:0 mem2:1 mem3:2");
    ck_assert_int_eq(gantry_machine_select(&m, spread, "id:0,3", &err), GANTRY_OK); /* rank 2 is counted anew */
    check_ranks(m, "host:0 mem0:0 mem3:1");
    gantry_machine_free(m);
    gantry_machine_free(spread);
    gantry_machine_free(four);
    gantry_machine_free(ab);
    gantry_machine_free(a);
}
END_TEST

static void refuse(gantry_status status, const gantry_error *err, const char *says)
{
    ck_assert_int_eq(status, GANTRY_E_INVALID);
    ck_assert_msg(strstr(err->text, says) != NULL, "\"%s\" does not say \"%s\"", err->text, says);
}

/* A computer with two processes beside one with one: ranks are counted on, and between the two of one computer bytes go
 * as ever. */
START_TEST(several_ranks_of_a_node)
{
    gantry_machine *a = virtual_of(2), *b = virtual_of(1), *two = NULL, *m;
    gantry_error err = { 0 };
    ck_assert_int_eq(gantry_machine_spread(&two, a, 2, &err), GANTRY_OK);
    m = join_of(two, b, 2.5, 10);
    check_ranks(m, "r0.host:0 r0.mem0:0 r1.mem1:1 r2.host:2 r2.mem0:2");
    ck_assert_str_eq(m->device[1].id, "r1.dev1");
    ck_assert_str_eq(m->device[2].id, "r2.dev0");
    ck_assert_int_eq(copy_ticks(m, "r0.mem0", "r1.mem1", 1 << 20), copy_ticks(a, "mem0", "mem1", 1 << 20));
    ck_assert_int_eq(copy_ticks(m, "r1.mem1", "r2.mem0", 1 << 20), 2500000 + (1 << 20) * 100);
    ck_assert(!route_of(m, "r0.mem0", "r1.mem1")->network && route_of(m, "r0.mem0", "r2.mem0")->network);
    ck_assert(uses(m, route_of(m, "r1.mem1", "r2.host"), "r0.network.out"));
    gantry_machine_free(m);
    m = join_of(b, two, 2.5, 10);
    check_ranks(m, "r0.host:0 r0.mem0:0 r1.host:1 r1.mem0:1 r2.mem1:2");
    gantry_machine_free(m);
    gantry_machine_free(two);
    gantry_machine_free(a);
    gantry_machine_free(b);
}
END_TEST

START_TEST(refused)
{
    gantry_machine *a = virtual_of(2), *ab = join_of(a, a, 1, 1), *m = NULL;
    gantry_machine *off = machine_of("{'gantry_machine':1,'memories':[{'id':'h','capacity':9}],'devices':[{'id':'d',"
                                     "'memory':'h'},{'id':'e','memory':'h'}],'model':{'contention':'off'}}");
    gantry_error err = { 0 };
    gantry_join_options o = GANTRY_JOIN_OPTIONS_INIT;
    const gantry_machine *const same[] = { a, a }, *const ranked[] = { a, ab }, *const mixed[] = { a, off },
                                *const none[] = { a, NULL };
    refuse(gantry_machine_join(&m, same, 2, &o, &err), &err, "does not say what its network is; give gbs in the join");
    o.gbs = -1;
    refuse(gantry_machine_join(&m, same, 2, &o, &err), &err, "gbs of the join options is -1");
    o.ports = (gantry_ports)3;
    o.gbs = 1;
    refuse(gantry_machine_join(&m, same, 2, &o, &err), &err, "ports of the join options is 3");
    o.ports = GANTRY_PORTS_EACH;
    o.gbs = 1;
    refuse(gantry_machine_join(&m, same, 0, &o, &err), &err, "count is 0");
    refuse(gantry_machine_join(&m, ranked, 2, &o, &err), &err, "is of several computers already, by its 2 ranks");
    refuse(gantry_machine_join(&m, mixed, 2, &o, &err), &err, "contention off");
    refuse(gantry_machine_join(&m, none, 2, &o, &err), &err, "node 1");
    o.latency_us = -1;
    refuse(gantry_machine_join(&m, same, 2, &o, &err), &err, "latency_us");
    refuse(gantry_machine_spread(&m, a, 3, &err), &err, "it has 2 devices; give 1 to 2");
    refuse(gantry_machine_spread(&m, a, 0, &err), &err, "give 1 to 2");
    refuse(gantry_machine_spread(&m, off, 2, &err), &err, "device \"e\" would be of rank 1");
    ck_assert_ptr_null(m);
    gantry_machine_free(off);
    gantry_machine_free(ab);
    gantry_machine_free(a);
}
END_TEST

#define HEAD                                                                                                           \
    "{'gantry_machine':1,'routes':[{'from':'*','to':'*','bandwidth_gbs':1}],'devices':[{'id':'d','memory':'b'}],"
START_TEST(bad_files)
{
    static const struct {
        const char *memories, *where, *says;
    } cases[] = {
        { "'memories':[{'id':'a','capacity':9,'rank':1},{'id':'b','capacity':9}]}", "/memories/0/rank",
          "the host memory \"a\", which comes first, has rank 1" },
        { "'memories':[{'id':'a','capacity':9},{'id':'b','capacity':9,'rank':2}]}", "/memories/1/rank",
          "no device works in a memory of rank 1" },
        { "'memories':[{'id':'a','capacity':9},{'id':'b','capacity':9},{'id':'c','capacity':9,'rank':1}]}",
          "/memories/2/rank", "no device works in a memory of rank 1" },
        { "'memories':[{'id':'a','capacity':9},{'id':'b','capacity':9}],'network':{}}", "/network", "bandwidth_gbs" },
        { "'memories':[{'id':'a','capacity':9},{'id':'b','capacity':9}],'network':{'bandwidth_gbs':0}}",
          "/network/bandwidth_gbs", "0" },
        { "'memories':[{'id':'a','capacity':9},{'id':'b','capacity':9}],'network':{'bandwidth_gbs':1,'ports':'all'}}",
          "/network/ports", "no ports \"all\"" },
        { "'memories':[{'id':'a','capacity':9,'rank':-1},{'id':'b','capacity':9}]}", "/memories/0/rank", "rank" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gy_text text = { 0 };
        gantry_error err = { 0 };
        gantry_machine *m = NULL;
        gy_text_printf(&text, "%s%s", HEAD, cases[i].memories);
        char *json = with_quotes(text.at);
        ck_assert_int_eq(gantry_machine_parse(&m, json, strlen(json), "x", &err), GANTRY_E_MACHINE);
        ck_assert_str_eq(err.where, cases[i].where);
        ck_assert_msg(strstr(err.text, cases[i].says) != NULL, "%s", err.text);
        ck_assert(err.line == 1 && err.column > 1);
        free(json);
        gy_text_free(&text);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("join");
    TCase *tc = tcase_create("machines");
    tcase_add_test(tc, two_nodes);
    tcase_add_test(tc, gpus);
    tcase_add_test(tc, one_node);
    tcase_add_test(tc, reads_back);
    tcase_add_test(tc, ports_of_gpus);
    tcase_add_test(tc, ports_differ);
    tcase_add_test(tc, networks_are_kept);
    tcase_add_test(tc, fewer_devices);
    tcase_add_test(tc, several_ranks_of_a_node);
    tcase_add_test(tc, refused);
    tcase_add_test(tc, bad_files);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
