/* SPDX-License-Identifier: Apache-2.0 */
#include "material.h"

#include "scenarios.h"
#include <stdio.h>
#include <string.h>

/* %s: the algorithm. */
static const char collective[] =
    "{\"gantry\": 1, \"name\": \"collective\", \"buffers\": {\n"
    "  \"grad\": {\"dtype\": \"f32\", \"shape\": [512], \"split\": 2, \"init\": {\"random\": {\"seed\": 3}}, "
    "\"output\": true},\n"
    "  \"part\": {\"dtype\": \"f32\", \"shape\": [256], \"init\": 2},\n"
    "  \"all\": {\"dtype\": \"f32\", \"shape\": [512], \"split\": 2, \"output\": true},\n"
    "  \"two\": {\"dtype\": \"f32\", \"shape\": [512], \"split\": 2, \"output\": true}},\n"
    " \"nodes\": [\n"
    "  {\"id\": \"reduce\", \"collective\": \"all_reduce\", \"op\": \"sum\", \"algorithm\": \"%s\",\n"
    "   \"in\": [\"grad[0]\", \"grad[1]\"], \"out\": [\"grad[0]\", \"grad[1]\"]},\n"
    "  {\"id\": \"spread\", \"collective\": \"broadcast\", \"algorithm\": \"%s\", \"in\": [\"part\"],\n"
    "   \"out\": [\"all[0]\", \"all[1]\"], \"root\": 0},\n"
    "  {\"id\": \"twice[i]\", \"for\": {\"i\": 2}, \"kernel\": \"scale\", \"on\": \"i\",\n"
    "   \"args\": {\"a\": 2, \"x\": \"all[i]\", \"y\": \"two[i]\"}}]}\n";

static const char files[] =
    "{\"gantry\": 1, \"name\": \"files\", \"buffers\": {\n"
    "  \"x\": {\"dtype\": \"f32\", \"shape\": [64], \"split\": 2, \"class\": \"input\"},\n"
    "  \"y\": {\"dtype\": \"f32\", \"shape\": [64], \"split\": 2, \"init\": 1, \"output\": true},\n"
    "  \"w\": {\"dtype\": \"f32\", \"shape\": [64], \"split\": 2, \"init\": {\"npy\": \"x.npy\"}},\n"
    "  \"total\": {\"dtype\": \"f32\", \"shape\": [1], \"init\": 0, \"output\": true}},\n"
    " \"nodes\": [\n"
    "  {\"id\": \"add[i]\", \"for\": {\"i\": 2}, \"kernel\": \"saxpy\", \"args\": {\"a\": 2.0, \"x\": \"x[i]\", \"y\": "
    "\"y[i]\"}},\n"
    "  {\"id\": \"more[i]\", \"for\": {\"i\": 2}, \"kernel\": \"saxpy\", \"args\": {\"a\": 3.0, \"x\": \"w[i]\", "
    "\"y\": "
    "\"y[i]\"}},\n"
    "  {\"id\": \"sum[i]\", \"for\": {\"i\": 2}, \"kernel\": \"reduce_sum\", \"args\": {\"x\": \"y[i]\", \"out\": "
    "\"total\"}}]}\n";

static const char code[] =
    "{\"gantry\": 1, \"name\": \"code\", \"kernels\": {\"mix\": {\"host\": \"mix.c\", \"cuda\": \"mix.cu\", \"args\": "
    "[\n"
    "   {\"name\": \"weight\", \"type\": \"f32\"}, {\"name\": \"x\", \"access\": \"read\", \"dtype\": \"f32\"},\n"
    "   {\"name\": \"y\", \"access\": \"readwrite\", \"dtype\": \"f32\"}, {\"name\": \"n\", \"type\": \"i64\", "
    "\"default\": \"x.size\"}],\n"
    "   \"launch\": {\"grid\": [\"ceil_div(n, 128)\"], \"block\": [128]}}},\n"
    " \"buffers\": {\"x\": {\"dtype\": \"f32\", \"shape\": [1000], \"split\": 2, \"init\": {\"random\": {\"seed\": "
    "1}}},\n"
    "  \"y\": {\"dtype\": \"f32\", \"shape\": [1000], \"split\": 2, \"init\": \"iota\", \"output\": true}},\n"
    " \"nodes\": [{\"id\": \"mix[i]\", \"for\": {\"i\": 2}, \"kernel\": \"mix\", \"on\": \"i\", \"args\": {\"weight\": "
    "2.5,\n"
    "   \"x\": \"x[i]\", \"y\": \"y[i]\"}}]}\n";

static const char mix_c[] = "#include <gantry/kernel.h>\n"
                            "gantry_status mix(const gantry_launch *l);\n"
                            "gantry_status mix(const gantry_launch *l)\n"
                            "{\n"
                            "    const float *x = l->arg[1].data;\n"
                            "    float weight = (float)l->arg[0].number, *y = l->arg[2].data;\n"
                            "    for (int64_t i = 0; i < l->arg[3].integer; i++)\n"
                            "        y[i] = weight * x[i] + y[i];\n"
                            "    return GANTRY_OK;\n"
                            "}\n";

static const char mix_cu[] = "#include \"mix.h\"\n"
                             "extern \"C\" __global__ void mix(float weight, const float *x, float *y, long long n)\n"
                             "{\n"
                             "    number i = blockIdx.x * (number)blockDim.x + threadIdx.x;\n"
                             "    if (i < n)\n"
                             "        y[i] = weight * x[i] + y[i];\n"
                             "}\n";

static const char stg[] = "3\n0 0 0\n1 4 1\n 0 0\n2 3 1\n 0 0\n3 2 2\n 1 5\n 2 5\n4 0 1\n 3 0\n";

static const char dnn[] =
    "{\"maxSizePerFPGA\": 1000.0, \"maxFPGAs\": 1, \"maxCPUs\": 1, \"nodes\": [\n"
    "{\"name\": \"a\", \"id\": 1, \"supportedOnFpga\": 1, \"cpuLatency\": 20, \"fpgaLatency\": 2, \"size\": 300.5},\n"
    "{\"name\": \"b\", \"id\": 2, \"supportedOnFpga\": true, \"cpuLatency\": 30, \"fpgaLatency\": 3, \"colorClass\": "
    "7},\n"
    "{\"id\": 3, \"supportedOnFpga\": 0, \"cpuLatency\": 4, \"fpgaLatency\": 0}],\n"
    "\"edges\": [{\"sourceId\": 1, \"destId\": 2, \"cost\": 0.5}, {\"sourceId\": 1, \"destId\": 3, \"cost\": 0.5}]}\n";

static const char dot[] =
    "{\"name\": \"g\", \"directed\": true, \"_subgraph_cnt\": 1, \"objects\": [\n"
    "{\"name\": \"cluster\", \"_gvid\": 0, \"nodes\": [1]},\n"
    "{\"_gvid\": 1, \"name\": \"a\", \"weight\": \"4\"}, {\"_gvid\": 2, \"name\": \"b\", \"weight\": \"3\"}],\n"
    "\"edges\": [{\"_gvid\": 0, \"tail\": 1, \"head\": 2, \"weight\": \"5\"}]}\n";

static const char wfcommons[] =
    "{\"name\": \"w\", \"schemaVersion\": \"1.5\", \"workflow\": {\"specification\": {\"tasks\": [\n"
    "{\"name\": \"x\", \"id\": \"A\", \"parents\": [], \"children\": [\"B\"], \"inputFiles\": [\"in\"], "
    "\"outputFiles\": [\"f\"]},\n"
    "{\"name\": \"x\", \"id\": \"B\", \"parents\": [\"A\"], \"children\": [], \"inputFiles\": [\"f\"]}],\n"
    "\"files\": [{\"id\": \"in\", \"sizeInBytes\": 1000000000}, {\"id\": \"f\", \"sizeInBytes\": 1000000000}]},\n"
    "\"execution\": {\"tasks\": [{\"id\": \"A\", \"runtimeInSeconds\": 1}, {\"id\": \"B\", \"runtimeInSeconds\": "
    "2.0}]}}}\n";

/* %d: the second GPU, which may be the first; %s: what was measured. */
static const char machine[] =
    "{\"gantry_machine\": 1, \"name\": \"gpus\", \"memories\": [{\"id\": \"host\", \"capacity\": \"2GiB\"},\n"
    "  {\"id\": \"gpu0\", \"capacity\": \"256MiB\"}, {\"id\": \"gpu1\", \"capacity\": \"256MiB\"}],\n"
    " \"devices\": [\n"
    "  {\"id\": \"gpu0\", \"type\": \"gpu\", \"memory\": \"gpu0\", \"lanes\": 3, \"copy_engines\": 2, \"gflops\": "
    "{\"f32\": 10},\n   \"bandwidth_gbs\": 20, \"launch_us\": 0.1, \"ordinal\": 0},\n"
    "  {\"id\": \"gpu1\", \"type\": \"gpu\", \"memory\": \"gpu1\", \"lanes\": 3, \"copy_engines\": 2, \"gflops\": "
    "{\"f32\": 10},\n   \"bandwidth_gbs\": 20, \"launch_us\": 0.1, \"ordinal\": %d},\n"
    "  {\"id\": \"cpu\", \"type\": \"cpu\", \"use\": \"host\", \"memory\": \"host\", \"gflops\": {\"f32\": 9},\n"
    "   \"bandwidth_gbs\": 19, \"launch_us\": 0.1}],\n"
    " \"routes\": [{\"from\": \"*\", \"to\": \"*\", \"latency_us\": 0.2, \"bandwidth_gbs\": 10}]%s}\n";

/* NCCL is taken by machines alone that know how long it takes. */
static const char measured[] = ",\n \"collectives\": [\n"
                               "  {\"collective\": \"all_reduce\", \"algorithm\": \"nccl\", \"kind\": \"gpu\", "
                               "\"ranks\": 2, \"points\": [[1024, 5], "
                               "[1048576, 30]]},\n"
                               "  {\"collective\": \"broadcast\", \"algorithm\": \"nccl\", \"kind\": \"gpu\", "
                               "\"ranks\": 2, \"points\": [[1024, 5], "
                               "[1048576, 30]]}]";

static bool put(const char *folder, const char *name, const void *data, size_t length)
{
    FILE *f = fopen(path_in(folder, name), "w");
    bool fine = f && fwrite(data, 1, length, f) == length;
    return f && fclose(f) == 0 && fine;
}

static bool put_text(const char *folder, const char *name, const char *text)
{
    return put(folder, name, text, strlen(text));
}

static bool put_collective(const char *folder, const char *name, const char *algorithm)
{
    char text[2 * sizeof collective];
    snprintf(text, sizeof text, collective, algorithm, algorithm);
    return put_text(folder, name, text);
}

static bool put_machine(const char *folder, const char *name, int gpus, const char *more)
{
    char text[sizeof machine + sizeof measured];
    snprintf(text, sizeof text, machine, gpus > 1, more);
    return put_text(folder, name, text);
}

static bool put_array(const char *folder)
{
    char head[129] = "\x93NUMPY\x01\x00\x76";
    float numbers[64];
    char all[128 + sizeof numbers];
    snprintf(head + 10, sizeof head - 10, "%-117s\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (64,), }");
    for (int i = 0; i < 64; i++)
        numbers[i] = (float)i / 4;
    memcpy(all, head, 128);
    memcpy(all + 128, numbers, sizeof numbers);
    return put(folder, "x.npy", all, sizeof all);
}

bool material_write(const char *folder, int gpus)
{
    return put_collective(folder, "collective.json", "auto") && put_collective(folder, "own.json", "one_shot") &&
           put_collective(folder, "nccl.json", "nccl") && put_text(folder, "files.json", files) &&
           put_text(folder, "code.json", code) && put_text(folder, "mix.c", mix_c) &&
           put_text(folder, "mix.cu", mix_cu) && put_text(folder, "mix.h", "typedef long long number;\n") &&
           put_text(folder, "a.stg", stg) && put_text(folder, "dnn.json", dnn) && put_text(folder, "dot.json", dot) &&
           put_text(folder, "wfcommons.json", wfcommons) && put_array(folder) &&
           put_machine(folder, "gpus.json", gpus, "") && put_machine(folder, "gpus-nccl.json", gpus, measured);
}
