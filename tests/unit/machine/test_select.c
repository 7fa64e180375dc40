/* SPDX-License-Identifier: Apache-2.0 */
/* Machines with some of the devices of another, what they say when they cannot be made, and the plain queries. */
#include "suite.h"
#include <string.h>

static gantry_machine *select_of(const gantry_machine *m, const char *devices)
{
    gantry_machine *s = NULL;
    gantry_error err = { 0 };
    gantry_status status = gantry_machine_select(&s, m, devices, &err);
    ck_assert_msg(status == GANTRY_OK, "%s", err.text);
    return s;
}

static void check_devices(const gantry_machine *m, const char *want)
{
    gy_text ids = { 0 };
    for (uint32_t i = 0; i < m->devices; i++)
        gy_text_printf(&ids, "%s%s", i ? " " : "", m->device[i].id);
    ck_assert_str_eq(ids.at, want);
    gy_text_free(&ids);
}

START_TEST(first_devices)
{
    gantry_machine *m = load_machine("hgx-h200-8"), *s = select_of(m, "3");
    check_devices(s, "gpu0 gpu1 gpu2 cpu");
    ck_assert_uint_eq(s->memories, 4);
    ck_assert_uint_eq(s->resources, 2 + 3 * 4); /* the host's two, four a GPU */
    ck_assert_str_eq(s->name, "hgx-h200-8, 4 of 9 devices");
    ck_assert_str_eq(s->source, m->source);
    ck_assert_uint_eq(s->device[3].memory, 0);
    const gy_route *r = route_of(s, "gpu2", "gpu0"), *was = route_of(m, "gpu2", "gpu0");
    ck_assert_uint_eq(r->resources, was->resources);
    for (uint32_t i = 0; i < r->resources; i++)
        ck_assert_str_eq(s->resource[r->resource[i]].id, m->resource[was->resource[i]].id);
    for (int64_t bytes = 1; bytes < 1 << 30; bytes *= 3) {
        ck_assert_int_eq(copy_ticks(s, "gpu1", "gpu2", bytes), copy_ticks(m, "gpu1", "gpu2", bytes));
        ck_assert_int_eq(copy_ticks(s, "host", "gpu2", bytes), copy_ticks(m, "host", "gpu2", bytes));
        ck_assert_int_eq(copy_ticks(s, "gpu1", "gpu1", bytes), copy_ticks(m, "gpu1", "gpu1", bytes));
    }
    gantry_machine_free(m); /* the selection keeps nothing of it */
    ck_assert_str_eq(s->device[0].kind, "h200");
    ck_assert_uint_eq(s->tables, 7); /* for eight, so no use to three, but they say that the kind has NCCL */
    const gy_collective_table *t = gy_machine_table(s, GANTRY_ALL_GATHER, GY_ALGORITHM_NCCL, "h200", 8);
    ck_assert_int_eq(gy_points_time(t->point, t->points, 1 << 20), gy_ticks_from_us(63.7));
    ck_assert_ptr_null(gy_machine_table(s, GANTRY_ALL_GATHER, GY_ALGORITHM_NCCL, "h200", 3));
    gantry_machine_free(s);
}
END_TEST

START_TEST(by_index_or_id)
{
    gantry_machine *m = load_machine("hgx-h200-8");
    static const char *const words[] = { "id:1,5", "id:gpu1,gpu5", "id:5,gpu1", "id:gpu1,5,cpu", "id:1,5,8" };
    uint64_t hash[2] = { 0, 0 }; /* without and with the CPU's name */
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        gantry_machine *s = select_of(m, words[i]);
        check_devices(s, "gpu1 gpu5 cpu");
        ck_assert(!hash[i > 2] || hash[i > 2] == machine_hash(s));
        hash[i > 2] = machine_hash(s);
        gantry_machine_free(s);
    }
    ck_assert(hash[0] != hash[1]);
    gantry_machine_free(m);
}
END_TEST

/* Up to which size kernels copy is said of one direction, and stays with fewer devices and in the machine's text. */
START_TEST(copies_by_kernels)
{
    gantry_machine *m = machine_of(
        "{'gantry_machine':1,'memories':[{'id':'host','capacity':9},{'id':'a','capacity':9},{'id':'b','capacity':9}],"
        "'devices':[{'id':'x','type':'gpu','memory':'a'},{'id':'y','type':'gpu','memory':'b'},{'id':'z','type':'gpu',"
        "'memory':'b'}],'routes':[{'from':['a','b'],'to':'host','both':true,'bandwidth_gbs':1},{'from':'a','to':'b',"
        "'bandwidth_gbs':1,'kernel_bytes':65536},{'from':'b','to':'a','points':[[0,1],[9,2]]}]}");
    gantry_machine *s = select_of(m, "2"), *again = NULL;
    char *text;
    size_t length;
    ck_assert_int_eq(gantry_machine_json(s, &text, &length, NULL), GANTRY_OK);
    ck_assert_int_eq(gantry_machine_parse(&again, text, length, "again", NULL), GANTRY_OK);
    const gantry_machine *all[] = { m, s, again };
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(route_of(all[i], "a", "b")->kernel_bytes, 65536);
        ck_assert_int_eq(route_of(all[i], "b", "a")->kernel_bytes, 0);
        ck_assert_int_eq(route_of(all[i], "a", "host")->kernel_bytes, 0);
    }
    gantry_free(text);
    gantry_machine_free(m);
    gantry_machine_free(s);
    gantry_machine_free(again);
}
END_TEST

START_TEST(all_is_the_same_machine)
{
    gantry_machine *m = load_machine("hgx-h200-8"), *s = select_of(m, "8");
    ck_assert_ptr_eq(m, s);
    gantry_machine_free(m);
    ck_assert_str_eq(gantry_machine_name(s), "hgx-h200-8");
    gantry_machine_free(s);
}
END_TEST

/* gpu0 and gpu5 have no link: without gpu1 and gpu4 the bytes go through the host. */
START_TEST(relays_are_composed_anew)
{
    gantry_machine *m = load_machine("dgx1-v100"), *s = select_of(m, "id:0,5");
    ck_assert_int_eq(route_of(m, "gpu0", "gpu5")->kind, GY_ROUTE_RELAY);
    ck_assert_int_eq(route_of(s, "gpu0", "gpu5")->kind, GY_ROUTE_STAGED);
    gantry_machine_free(m);
    gantry_machine_free(s);
}
END_TEST

/* A CPU beside GPUs in the host memory stays, whatever its use; on a machine of CPUs it counts as the others do. */
START_TEST(companions)
{
    gantry_machine *m =
        machine_of("{'gantry_machine':1,'memories':[{'id':'host','capacity':9},{'id':'a','capacity':9}],"
                   "'devices':[{'id':'c','memory':'host'},{'id':'g','type':'gpu','memory':'a'}],"
                   "'routes':[{'from':'*','to':'*','bandwidth_gbs':1}]}");
    gantry_machine *s = select_of(m, "1");
    check_devices(s, "c g");
    gantry_machine_free(s);
    gantry_machine_free(m);
    m = machine_of("{'gantry_machine':1,'memories':[{'id':'host','capacity':9}],"
                   "'devices':[{'id':'c','memory':'host'},{'id':'d','memory':'host'}]}");
    s = select_of(m, "1");
    check_devices(s, "c");
    gantry_machine_free(s);
    gantry_machine_free(m);
}
END_TEST

/* One for host calls takes other nodes where it is named; counted, beside or left alone it does not. */
START_TEST(a_cpu_that_is_named_takes_nodes)
{
    static const struct {
        const char *devices, *kept;
        bool host_only;
    } cases[] = { { "2", "gpu0 gpu1 cpu", true },
                  { "id:0,1", "gpu0 gpu1 cpu", true },
                  { "id:gpu0,cpu", "gpu0 cpu", false },
                  { "id:3,0,1,2", "gpu0 gpu1 gpu2 cpu", false } };
    gantry_machine *m = load_machine("rtx-mixed-3");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gantry_machine *s = select_of(m, cases[i].devices);
        check_devices(s, cases[i].kept);
        ck_assert_int_eq(s->device[s->devices - 1].host_only, cases[i].host_only);
        gantry_machine_free(s);
    }
    ck_assert(m->device[3].host_only);
    gantry_machine_free(m);
}
END_TEST

static void check_refusal(const gantry_machine *m, const char *devices, const char *message)
{
    gantry_machine *s = NULL;
    gantry_error err = { 0 };
    ck_assert_int_eq(gantry_machine_select(&s, m, devices, &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text, message);
    ck_assert_ptr_null(s);
}

START_TEST(refusals)
{
    static const char *const bad[][2] = {
        { "0", "0 devices: machine \"rtx-mixed-3\" has 3; write 1 to 3" },
        { "4", "4 devices: machine \"rtx-mixed-3\" has 3; write 1 to 3" },
        { "99999999999999999999", "99999999999999999999 devices: machine \"rtx-mixed-3\" has 3; write 1 to 3" },
        { "", "\"\" names no devices; write a number from 1 to 3, or ids or indices such as id:0,gpu1" },
        { "all", "\"all\" names no devices; write a number from 1 to 3, or ids or indices such as id:0,gpu1" },
        { "-1", "\"-1\" names no devices; write a number from 1 to 3, or ids or indices such as id:0,gpu1" },
        { "2x", "\"2x\" names no devices; write a number from 1 to 3, or ids or indices such as id:0,gpu1" },
        { "id:", "an id is missing in \"id:\"; write id:0,2 or id:gpu0,gpu2" },
        { "id:0,,1", "an id is missing in \"id:0,,1\"; write id:0,2 or id:gpu0,gpu2" },
        { "id:0,", "an id is missing in \"id:0,\"; write id:0,2 or id:gpu0,gpu2" },
        { "id:4", "no device \"4\": machine \"rtx-mixed-3\" has gpu0, gpu1, gpu2, cpu, or by index 0 to 3" },
        { "id:4294967296",
          "no device \"4294967296\": machine \"rtx-mixed-3\" has gpu0, gpu1, gpu2, cpu, or by index 0 to 3" },
        { "id:gpu3", "no device \"gpu3\" (did you mean \"gpu0\"?); machine \"rtx-mixed-3\" has gpu0, gpu1, gpu2, cpu" },
        { "id:tesla", "no device \"tesla\": machine \"rtx-mixed-3\" has gpu0, gpu1, gpu2, cpu, or by index 0 to 3" },
        { "id:gpu1,1", "device \"gpu1\" is named twice in \"id:gpu1,1\"" },
        { "id:cpu", "\"id:cpu\" keeps only devices for host calls; name one that takes other nodes" },
    };
    gantry_machine *two =
        machine_of("{'gantry_machine':1,'memories':[{'id':'host','capacity':9},{'id':'a','capacity':9}],"
                   "'devices':[{'id':'g','type':'gpu','memory':'a'},{'id':'c','memory':'host','use':'host'},"
                   "{'id':'d','memory':'host','use':'host'}],'routes':[{'from':'*','to':'*','bandwidth_gbs':1}]}");
    check_refusal(two, "id:g,d",
                  "device \"d\" of use \"host\" is named and \"c\", which is before it, is not; name both");
    gantry_machine_free(two);
    gantry_machine *m = load_machine("rtx-mixed-3"), *s = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check_refusal(m, bad[i][0], bad[i][1]);
    ck_assert_int_eq(gantry_machine_select(NULL, m, "1", NULL), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_machine_select(&s, NULL, "1", NULL), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_machine_select(&s, m, NULL, NULL), GANTRY_E_INVALID);
    gantry_machine_free(m);
}
END_TEST

START_TEST(many_devices_are_not_all_listed)
{
    gantry_machine *m = NULL;
    ck_assert_int_eq(gantry_machine_virtual(&m, 300, NULL), GANTRY_OK);
    check_refusal(m, "id:x", "no device \"x\": machine \"host-300\" has dev0, dev1, ..., dev299, or by index 0 to 299");
    gantry_machine_free(m);
}
END_TEST

/* host - a - b: without the device at a there is no way to b. */
START_TEST(cut_off)
{
    gantry_machine *m =
        machine_of("{'gantry_machine':1,'memories':[{'id':'host','capacity':9},{'id':'a','capacity':9},"
                   "{'id':'b','capacity':9}],'devices':[{'id':'x','memory':'a'},{'id':'y','memory':'b'}],"
                   "'routes':[{'from':'a','to':['host','b'],'both':true,'bandwidth_gbs':1}]}");
    check_refusal(
        m, "id:y",
        "with devices id:y alone there is no route from memory \"host\" to \"b\"; add the device between them");
    gantry_machine_free(m);
}
END_TEST

START_TEST(queries)
{
    gantry_machine *m = load_machine("hgx-h200-8");
    gantry_device_info device = GANTRY_DEVICE_INFO_INIT;
    gantry_memory_info memory = GANTRY_MEMORY_INFO_INIT;
    gantry_error err = { 0 };
    ck_assert_uint_eq(gantry_machine_device_count(m), 9);
    ck_assert_uint_eq(gantry_machine_memory_count(m), 9);
    ck_assert_uint_eq(gantry_machine_worker_count(m), 8);
    ck_assert_int_eq(gantry_machine_device(m, 2, &device, &err), GANTRY_OK);
    ck_assert_str_eq(device.id, "gpu2");
    ck_assert_str_eq(device.kind, "h200");
    ck_assert(device.gpu == 1 && device.memory == 3 && device.lanes == 8 && device.copy_engines == 3);
    ck_assert(device.bandwidth_gbs == 4220 && device.launch_us == 4 && device.struct_size == sizeof device);
    ck_assert_int_eq(gantry_machine_memory(m, 1, &memory, &err), GANTRY_OK);
    ck_assert_str_eq(memory.id, "gpu0");
    ck_assert(memory.capacity == 150109880320 && memory.reserved == 1073741824);
    ck_assert_int_eq(gantry_machine_device(m, 9, &device, &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text, "no device 9: machine \"hgx-h200-8\" has 9");
    ck_assert_int_eq(gantry_machine_memory(m, 9, &memory, &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text, "no memory 9: machine \"hgx-h200-8\" has 9");
    ck_assert_int_eq(gantry_machine_device(NULL, 0, &device, &err), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_machine_device(m, 0, NULL, &err), GANTRY_E_INVALID);
    device.struct_size = 0;
    ck_assert_int_eq(gantry_machine_device(m, 0, &device, &err), GANTRY_E_INVALID);
    gantry_machine_free(m);
}
END_TEST

/* A program built with an older, shorter record gets that much and no more. */
START_TEST(older_records)
{
    gantry_machine *m = load_machine("gpu-1");
    gantry_device_info device;
    memset(&device, 0x55, sizeof device);
    device.struct_size = offsetof(gantry_device_info, gpu);
    ck_assert_int_eq(gantry_machine_device(m, 0, &device, NULL), GANTRY_OK);
    ck_assert_str_eq(device.id, "gpu0");
    ck_assert_int_eq(device.gpu, 0x55555555);
    ck_assert_uint_eq(device.struct_size, offsetof(gantry_device_info, gpu));
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("machine select");
    TCase *tc = tcase_create("select");
    tcase_add_test(tc, first_devices);
    tcase_add_test(tc, by_index_or_id);
    tcase_add_test(tc, copies_by_kernels);
    tcase_add_test(tc, all_is_the_same_machine);
    tcase_add_test(tc, relays_are_composed_anew);
    tcase_add_test(tc, companions);
    tcase_add_test(tc, a_cpu_that_is_named_takes_nodes);
    tcase_add_test(tc, refusals);
    tcase_add_test(tc, many_devices_are_not_all_listed);
    tcase_add_test(tc, cut_off);
    tcase_add_test(tc, queries);
    tcase_add_test(tc, older_records);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
