/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual machines, and what hwloc tells of this computer and of others given as XML or as a synthetic description. */
#include "machine/gpus.h"
#include "machine/host.h"
#include "machine/limit.h"
#include "suite.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static gantry_machine *virtual_of(int devices)
{
    gantry_machine *m = NULL;
    ck_assert_int_eq(gantry_machine_virtual(&m, devices, NULL), GANTRY_OK);
    return m;
}

START_TEST(virtual_is_the_file)
{
    static const int counts[] = { 2, 4, 8 };
    for (int i = 0; i < 3; i++) {
        char name[32], *text = NULL, *file = NULL;
        size_t length = 0;
        snprintf(name, sizeof name, "host-%d", counts[i]);
        gantry_machine *m = virtual_of(counts[i]);
        ck_assert_int_eq(gantry_machine_json(m, &text, &length, NULL), GANTRY_OK);
        FILE *in = fopen(machine_path(name), "r");
        ck_assert_ptr_nonnull(in);
        file = calloc(1, length + 2);
        ck_assert_uint_eq(fread(file, 1, length + 1, in), length);
        fclose(in);
        ck_assert_str_eq(text, file);
        free(file);
        gantry_free(text);
        gantry_machine_free(m);
    }
}
END_TEST

START_TEST(virtual_machine)
{
    gantry_machine *m = virtual_of(3);
    ck_assert_uint_eq(m->memories, 4);
    ck_assert_uint_eq(gantry_machine_device_count(m), 3);
    ck_assert_uint_eq(gy_machine_workers(m), 3);
    ck_assert_str_eq(gantry_machine_name(m), "host-3");
    for (uint32_t i = 0; i < 3; i++) {
        const gy_device *d = &m->device[i];
        ck_assert(!d->gpu && d->memory == i + 1 && !m->memory[i + 1].host);
        ck_assert_str_eq(d->kind, "cpu");
    }
    ck_assert_str_eq(m->memory[0].id, "host");
    ck_assert_str_eq(m->memory[3].id, "mem2");
    ck_assert_str_eq(m->device[2].id, "dev2");
    /* 0.5 us and 6 GB/s, also within the host memory */
    ck_assert_double_eq_tol(gantry_machine_copy_us(m, 1, 3, 6000), 1.5, 1e-9);
    ck_assert_double_eq_tol(gantry_machine_copy_us(m, 0, 0, 6000), 1.5, 1e-9);
    ck_assert_double_eq_tol(gantry_machine_copy_us(m, 2, 2, 6000), 1.3, 1e-9); /* launch 0.3, 12 GB/s both ways */
    gantry_machine_free(m);
}
END_TEST

START_TEST(virtual_refusals)
{
    gantry_machine *m = NULL;
    gantry_error err = { 0 };
    ck_assert_int_eq(gantry_machine_virtual(&m, 0, &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text, "cannot make 0 virtual devices; give 1 to 4096");
    ck_assert_int_eq(gantry_machine_virtual(&m, 4097, &err), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_machine_virtual(NULL, 1, &err), GANTRY_E_INVALID);
    ck_assert_ptr_null(m);
}
END_TEST

static gantry_machine *detect(void)
{
    gantry_machine *m = NULL;
    gantry_error err = { 0 };
    gantry_status status = gy_machine_detect(&m, NULL, &err);
    ck_assert_msg(status == GANTRY_OK, "%s", err.text);
    return m;
}

/* Whatever this computer is: a machine that can be written and read back. */
START_TEST(this_computer)
{
    gantry_machine *m = detect(), *again = NULL;
    char *text = NULL;
    size_t length = 0;
    ck_assert_uint_ge(m->devices, 1);
    ck_assert_uint_gt(m->memory[0].capacity, 0);
    ck_assert_int_eq(gantry_machine_json(m, &text, &length, NULL), GANTRY_OK);
    ck_assert_int_eq(gantry_machine_parse(&again, text, length, "detected", NULL), GANTRY_OK);
    ck_assert_uint_eq(machine_hash(m), machine_hash(again));
    gantry_free(text);
    gantry_machine_free(m);
    gantry_machine_free(again);
}
END_TEST

/* Two nodes of 4 GB and three cores with two threads each. */
START_TEST(two_nodes)
{
    setenv("HWLOC_SYNTHETIC", "node:2(memory=4000000000) core:3 pu:2", 1);
    gantry_machine *m = detect();
    ck_assert_uint_eq(m->devices, 2);
    ck_assert_uint_eq(m->memories, 3);
    ck_assert_str_eq(m->name, "CPU, 6 cores");
    ck_assert_uint_eq(m->memory[0].capacity, 4000000000); /* half of all */
    ck_assert_uint_eq(m->memory[1].capacity, 2000000000);
    ck_assert(m->memory[1].numa == 0 && m->memory[2].numa == 1);
    ck_assert_double_eq(m->device[1].gflops[GANTRY_F32], 8); /* a device is one thread */
    ck_assert_uint_eq(m->notes, 0);
    gantry_machine_free(m);
}
END_TEST

START_TEST(no_cores_known)
{
    setenv("HWLOC_SYNTHETIC", "pu:4", 1);
    gantry_machine *m = detect();
    ck_assert_uint_eq(m->devices, 1);
    ck_assert_str_eq(m->name, "CPU, 4 cores");
    gantry_machine_free(m);
}
END_TEST

/* hwloc is told to look nowhere. */
START_TEST(nothing_to_see)
{
    gantry_machine *m = NULL;
    gantry_error err = { 0 };
    setenv("HWLOC_COMPONENTS", "stop", 1);
    ck_assert_int_eq(gy_machine_detect(&m, NULL, &err), GANTRY_E_DEVICE);
    ck_assert_str_eq(err.text, "hwloc cannot look at this computer: Invalid argument; give a machine file instead");
    ck_assert_int_eq(err.native, EINVAL);
    ck_assert_int_eq(gy_machine_detect(&m, NULL, NULL), GANTRY_E_DEVICE);
    ck_assert_ptr_null(m);
}
END_TEST

/* The eight GPUs of the measured machine are on the bus: seen, named, not used. */
START_TEST(h200_description)
{
    const char *path = shared_path("machines/hgx-h200-8.hwloc.xml");
    if (!path)
        return;
    setenv("HWLOC_XMLFILE", path, 1);
    gantry_machine *m = detect();
    gy_host_info host;
    ck_assert_int_eq(gy_host_read(&host, NULL), GANTRY_OK);
    ck_assert_uint_eq(host.gpus, 8);
    ck_assert_str_eq(host.gpu[0].bus, "0000:00:06.0");
    ck_assert_str_eq(host.gpu[7].bus, "0000:00:0d.0");
    ck_assert_double_eq_tol(host.gpu[3].link_gbs, 63.015385, 1e-4);
    ck_assert_str_eq(host.cpu, "Intel(R) Xeon(R) Processor");
    ck_assert_uint_eq(host.bytes, 6672596992);
    ck_assert_uint_eq(m->notes, 8);
    ck_assert_ptr_nonnull(strstr(m->note[0], "GPU seen, not used: NVIDIA"));
    ck_assert_ptr_nonnull(
        strstr(m->note[0], "at 0000:00:06.0, NUMA node 0, PCI link 63.0 GB/s; a GPU back end adds it"));
    ck_assert_uint_eq(m->devices, 1);
    ck_assert_uint_eq(m->memory[0].capacity, 6672596992 / 2);
    gy_host_free(&host);
    gantry_machine_free(m);
}
END_TEST

/* A file below the folder, and the folders that it lies in. */
static void write_below(const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s%s", folder, name);
    for (char *at = path + strlen(folder); (at = strchr(at + 1, '/'));) {
        *at = 0;
        (void)mkdir(path, 0700);
        *at = '/';
    }
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

/* By the kernel's documentation: version 2 has one line, "0::path", and "max" for no limit; version 1 a line with the
 * controller; a group has no more than those above it; and a container sees its own group as the topmost. */
START_TEST(control_groups)
{
    static const struct {
        const char *lines, *at[2], *text[2];
        uint64_t allowed;
    } cases[] = {
        { "0::/a/b\n",
          { "/sys/fs/cgroup/a/b/memory.max", "/sys/fs/cgroup/a/memory.max" },
          { "max\n", "3000\n" },
          3000 },
        { "0::/a/b\n", { "/sys/fs/cgroup/a/b/memory.max", "/sys/fs/cgroup/a/memory.max" }, { "200\n", "3000\n" }, 200 },
        { "0::/a\n", { "/sys/fs/cgroup/a/memory.max" }, { "max\n" }, UINT64_MAX },
        { "0::/elsewhere\n", { "/sys/fs/cgroup/memory.max" }, { "4096\n" }, 4096 },
        { "3:cpu,memory2:/a\n2:memory:/a\n0::/\n",
          { "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "/sys/fs/cgroup/memory2/a/memory.limit_in_bytes" },
          { "9223372036854771712\n", "5\n" },
          UINT64_C(9223372036854771712) },
        { "2:memory:/a\n", { "/sys/fs/cgroup/memory/memory.limit_in_bytes" }, { "77\n" }, 77 },
        { "nothing of the kind\n2:memory\n", { "/sys/fs/cgroup/memory.max" }, { "5\n" }, UINT64_MAX },
        { NULL, { "/sys/fs/cgroup/memory.max" }, { "5\n" }, UINT64_MAX },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char folder[] = "/tmp/gantry-groups-XXXXXX", remove[64];
        ck_assert_ptr_nonnull(mkdtemp(folder));
        if (cases[i].lines)
            write_below(folder, "/proc/self/cgroup", cases[i].lines);
        for (int k = 0; k < 2 && cases[i].at[k]; k++)
            write_below(folder, cases[i].at[k], cases[i].text[k]);
        uint64_t allowed = gy_memory_allowed(folder);
        snprintf(remove, sizeof remove, "rm -r %s", folder);
        ck_assert_int_eq(system(remove), 0);
        ck_assert_msg(allowed == cases[i].allowed, "case %zu: %llu", i, (unsigned long long)allowed);
    }
    ck_assert_uint_ge(gy_memory_limit(), 1 << 20);
    ck_assert_uint_le(gy_memory_limit(), gy_memory_allowed(""));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("machine detect");
    TCase *tc = tcase_create("detect");
    tcase_add_test(tc, virtual_is_the_file);
    tcase_add_test(tc, virtual_machine);
    tcase_add_test(tc, virtual_refusals);
    tcase_add_test(tc, this_computer);
    tcase_add_test(tc, two_nodes);
    tcase_add_test(tc, no_cores_known);
    tcase_add_test(tc, nothing_to_see);
    tcase_add_test(tc, h200_description);
    tcase_add_test(tc, control_groups);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
