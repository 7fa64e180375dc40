/* SPDX-License-Identifier: Apache-2.0 */
/* The machine that follows from what a driver reports, and the numbers of devices. */
#include "machine/gpus.h"
#include "suite.h"
#include <stdlib.h>
#include <string.h>

/* An H200, with figures that its data sheet and its driver give. */
static gy_gpu h200(int ordinal)
{
    gy_gpu g = { .name = "NVIDIA H200", .bus = "0000:06:00.0", .ordinal = ordinal, .numa = -1, .major = 9, .minor = 0 };
    g.bytes = UINT64_C(150754820096);
    g.unused = g.bytes - (UINT64_C(3) << 30);
    g.sms = 132;
    g.clock_khz = 1980000;
    g.memory_khz = 3201000;
    g.bus_bits = 6144;
    g.copy_engines = 3;
    return g;
}

/* Published peaks: H200 67 and 67 TFLOP/s (f64 by tensor cores), A100 19.5 and 19.5, V100 15.7 and 7.8 (SXM2), RTX 3090
 * 35.6 and 0.556; dense f16 by tensor cores 989 at 1830 MHz, 312, 125, 142; memory 4.8 TB/s (4.9 by its clock), 1555
 * GB/s, 898, 936. */
START_TEST(speeds)
{
    static const struct {
        int major, minor, sms, mhz, memory_mhz, bits;
        double f32, f64, f16, gbs;
    } known[] = { { 9, 0, 132, 1980, 3201, 6144, 66908, 66908, 1070531, 4917 },
                  { 8, 0, 108, 1410, 1215, 5120, 19492, 19492, 311869, 1555 },
                  { 7, 0, 80, 1530, 877, 4096, 15667, 7834, 125338, 898 },
                  { 8, 6, 82, 1695, 9751, 384, 35581, 556, 142326, 936 } };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        gy_gpu g = { .major = known[i].major, .minor = known[i].minor, .sms = known[i].sms };
        g.clock_khz = known[i].mhz * 1000;
        g.memory_khz = known[i].memory_mhz * 1000;
        g.bus_bits = known[i].bits;
        ck_assert_double_eq(gy_gpu_gflops(&g, GANTRY_F32), known[i].f32);
        ck_assert_double_eq(gy_gpu_gflops(&g, GANTRY_F64), known[i].f64);
        ck_assert_double_eq(gy_gpu_gflops(&g, GANTRY_F16), known[i].f16);
        ck_assert_double_eq(gy_gpu_gflops(&g, GANTRY_BF16), known[i].major >= 8 ? known[i].f16 : 0);
        bool has_f8 = known[i].major >= 9;
        double f8 = has_f8 ? 2 * known[i].f16 : 0;
        ck_assert_double_eq_tol(gy_gpu_gflops(&g, GANTRY_F8E4M3), f8, 2); /* both are rounded */
        ck_assert_double_eq(gy_gpu_gflops(&g, GANTRY_I32), 0);            /* not told */
        ck_assert_double_eq(gy_gpu_gbs(&g), known[i].gbs);
    }
}
END_TEST

/* Products go at the rate that calibration measured for the largest, within 4 %. */
START_TEST(products)
{
    static const gantry_dtype dtypes[] = { GANTRY_F32, GANTRY_F64, GANTRY_F16, GANTRY_BF16 };
    gy_gpu list[] = { h200(0) };
    uint8_t peer[] = { 0 };
    gy_gpus gpus = { .at = list, .peer = peer, .count = 1 };
    gantry_machine *m = NULL, *measured = load_machine("h200-8");
    setenv("HWLOC_SYNTHETIC", "node:1(memory=4000000000) core:3 pu:2", 1);
    ck_assert_int_eq(gy_machine_detect(&m, &gpus, NULL), GANTRY_OK);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        const gy_kernel_table *t = gy_machine_kernel(measured, "gemm", dtypes[i], measured->device[0].kind);
        double work = 0x1p37, us;
        ck_assert_ptr_nonnull(t);
        us = (double)gy_kernel_time(t, work, 0) / 1e6;
        ck_assert_double_eq_tol(gy_device_gflops(&m->device[0], dtypes[i]) * us * 1e3 / work, 1, 0.04);
    }
    gantry_machine_free(m);
    gantry_machine_free(measured);
}
END_TEST

/* Facts that figures measured on these GPUs depend on, and how the machine of today has them. */
START_TEST(fingerprint)
{
    gy_gpu list[] = { h200(0), h200(1) };
    uint8_t peer[] = { 0, 1, 1, 0 };
    gy_gpus gpus = { .at = list, .peer = peer, .count = 2 }, none = { 0 };
    gy_text text = { 0 };
    gantry_machine *m = NULL, *now = NULL;
    char *said = NULL;
    strcpy(list[0].driver, "580.65.06");
    strcpy(list[0].cuda, "13.0");
    list[0].ecc = 2;
    list[1].ecc = 1;
    gy_gpus_fingerprint(&text, &none);
    ck_assert_uint_eq(text.length, 0);
    gy_gpus_fingerprint(&text, &gpus);
    ck_assert_str_eq(text.at, "driver: 580.65.06\nCUDA: 13.0\nGPUs: 2\ngpu0: NVIDIA H200\ngpu0.ecc: on\n"
                              "gpu1: NVIDIA H200\ngpu1.ecc: off\n");
    gy_text_free(&text);
    setenv("HWLOC_SYNTHETIC", "node:2(memory=4000000000) core:3 pu:2", 1);
    ck_assert_int_eq(gy_machine_detect(&m, &gpus, NULL), GANTRY_OK);
    ck_assert_uint_eq(m->calibration.facts, 7);
    ck_assert(!m->calibration.measured);
    m->calibration.measured = true; /* as if it had been measured */
    ck_assert_int_eq(gantry_machine_stale(m, m, &said, NULL), GANTRY_OK);
    ck_assert_ptr_null(said);
    strcpy(list[0].driver, "590.1");
    list[0].ecc = 0; /* not told today */
    strcpy(list[1].name, "NVIDIA H100");
    ck_assert_int_eq(gy_machine_detect(&now, &gpus, NULL), GANTRY_OK);
    ck_assert_int_eq(gantry_machine_stale(m, now, &said, NULL), GANTRY_OK);
    ck_assert_str_eq(said,
                     "driver was \"580.65.06\" and is \"590.1\", gpu1 was \"NVIDIA H200\" and is \"NVIDIA H100\"");
    gantry_free(said);
    gantry_machine_free(m);
    gantry_machine_free(now);
    unsetenv("HWLOC_SYNTHETIC");
}
END_TEST

/* Two GPUs on a computer of 6 cores and 8 GB; a pair has peer access in one direction only. */
START_TEST(two_gpus)
{
    gy_gpu list[] = { h200(0), h200(3) };
    uint8_t peer[] = { 0, 1, 0, 0 };
    gy_gpus gpus = { .at = list, .peer = peer, .count = 2 };
    gantry_machine *m = NULL, *again = NULL;
    char *text = NULL;
    size_t length = 0;
    setenv("HWLOC_SYNTHETIC", "node:2(memory=4000000000) core:3 pu:2", 1);
    strcpy(list[1].name, "Weird GPU (1)");
    ck_assert_int_eq(gy_machine_detect(&m, &gpus, NULL), GANTRY_OK);
    ck_assert_str_eq(m->name, "NVIDIA H200, 2 GPUs");
    ck_assert_uint_eq(m->devices, 3);
    ck_assert_uint_eq(m->memories, 3);
    ck_assert_str_eq(m->device[0].id, "gpu0");
    ck_assert_str_eq(m->device[0].kind, "h200");
    ck_assert_str_eq(m->device[1].kind, "weird_gpu__1_");
    ck_assert(m->device[0].gpu && m->device[0].memory == 1 && m->device[1].memory == 2);
    ck_assert(m->device[0].ordinal == 0 && m->device[1].ordinal == 3);
    ck_assert_double_eq(m->device[0].gflops[GANTRY_F32], 50850); /* 0.76 of its peak */
    ck_assert_double_eq(m->device[0].bandwidth_gbs, 4917);
    ck_assert(!m->device[2].gpu && m->device[2].host_only && m->device[2].memory == 0);
    ck_assert_uint_eq(m->memory[0].capacity, UINT64_C(8000000000));
    ck_assert_uint_eq(m->memory[0].reserved, UINT64_C(2000000000));
    ck_assert_uint_eq(m->memory[1].capacity, list[0].bytes);
    ck_assert_uint_eq(m->memory[1].reserved, UINT64_C(3) << 30); /* what others use, if more than 1 GiB */
    ck_assert_int_eq(gy_machine_route(m, 1, 2)->kind, GY_ROUTE_DIRECT);
    ck_assert_int_eq(gy_machine_route(m, 2, 1)->kind, GY_ROUTE_STAGED);
    ck_assert_double_eq_tol(gantry_machine_copy_us(m, 0, 1, 12000000), 2.6 + 1000, 1e-6); /* 12 GB/s: not told */
    ck_assert_uint_eq(m->notes, 3);
    ck_assert_int_eq(gantry_machine_json(m, &text, &length, NULL), GANTRY_OK);
    ck_assert_int_eq(gantry_machine_parse(&again, text, length, "detected", NULL), GANTRY_OK);
    ck_assert_uint_eq(machine_hash(m), machine_hash(again));
    gantry_free(text);
    gantry_machine_free(m);
    gantry_machine_free(again);
}
END_TEST

static const char mixed[] = "{'gantry_machine':1,'memories':[{'id':'host','capacity':1000},{'id':'a','capacity':1000},"
                            "{'id':'b','capacity':1000},{'id':'c','capacity':1000}],'devices':["
                            "{'id':'p','memory':'host'},{'id':'q','type':'gpu','memory':'a'},"
                            "{'id':'r','type':'gpu','memory':'b','ordinal':5},{'id':'s','type':'gpu','memory':'c'}],"
                            "'routes':[{'from':'*','to':'*','bandwidth_gbs':1}]}";

/* The k-th GPU of a file is GPU k, unless the file says so; some of the devices keep their numbers. */
START_TEST(ordinals)
{
    gantry_machine *m = machine_of(mixed), *some = NULL;
    ck_assert_int_eq(gy_device_ordinal(m, 0), -1);
    ck_assert_int_eq(gy_device_ordinal(m, 1), 0);
    ck_assert_int_eq(gy_device_ordinal(m, 2), 5);
    ck_assert_int_eq(gy_device_ordinal(m, 3), 2);
    ck_assert_int_eq(gantry_machine_select(&some, m, "id:s,r", NULL), GANTRY_OK);
    uint32_t r = gy_machine_find_device(some, "r"), s = gy_machine_find_device(some, "s");
    ck_assert_int_eq(gy_device_ordinal(some, r), 5);
    ck_assert_int_eq(gy_device_ordinal(some, s), 2);
    gantry_machine_free(m);
    gantry_machine_free(some);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gpus");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, speeds);
    tcase_add_test(tests, products);
    tcase_add_test(tests, fingerprint);
    tcase_add_test(tests, two_gpus);
    tcase_add_test(tests, ordinals);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
