/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Every refusal of the reader: exact text, pointer and place. In a case ' stands for ", and @ marks the place that the
 * message must name: it is taken out before parsing, so line and column are not computed by what is tested.
 */
#include "suite.h"
#include <stdlib.h>
#include <string.h>

typedef struct bad_input {
    const char *text, *where, *message;
} bad_input;

#define HEAD "'gantry_machine':1,'name':'t',"
#define MEM                                                                                                            \
    "'memories':[{'id':'host','capacity':1000},{'id':'mem-a','capacity':1000},"                                        \
    "{'id':'mem-b','capacity':1000}],"
#define DEV                                       "'devices':[{'id':'d0','memory':'mem-a'}],"
#define RES                                       "'resources':{'bus':1,'lane':2},"
#define ALL                                       "'routes':[{'from':'*','to':'*','bandwidth_gbs':1}]"
#define FRAME(memories, devices, resources, rest) "{" HEAD memories devices resources rest "}"
#define MEMORIES(list)                            FRAME("'memories':" list ",", DEV, "", ALL)
#define DEVICES(list)                             FRAME(MEM, "'devices':" list ",", "", ALL)
#define ROUTES(list)                              FRAME(MEM, DEV, RES, "'routes':" list)
#define ROUTE(rest)                               ROUTES("[@{'from':'host','to':'mem-a'" rest "}]")
#define POINTS(list)                              ROUTES("[{'from':'host','to':'mem-a','points':" list "}]")
#define HOST                                      "{'id':'host','capacity':1000}"

static const bad_input heading[] = {
    { "@[1]", "", "a machine must be an object, found an array" },
    { "@{}", "", "missing key \"gantry_machine\": give 1" },
    { "{'gantry_machine':@2," MEM DEV ALL "}", "/gantry_machine", "\"gantry_machine\" must be between 1 and 1, not 2" },
    { "{'gantry_machine':1,\n 'nmae':@'t'," MEM DEV ALL "}", "/nmae", "unknown key \"nmae\" (did you mean \"name\"?)" },
    { "{'gantry_machine':1,'name':@7," MEM DEV ALL "}", "/name", "\"name\" must be a string, not an integer" },
    { "{'$schema':@1,'gantry_machine':1," MEM DEV ALL "}", "/$schema", "\"$schema\" must be a string, not an integer" },
    { FRAME("'source':@1,", MEM, DEV, ALL), "/source", "\"source\" must be a string, not an integer" },
    { FRAME("'notes':@'x',", MEM, DEV, ALL), "/notes", "\"notes\" must be an array, found a string" },
    { FRAME("'notes':['x',@3],", MEM, DEV, ALL), "/notes/1", "a note must be a string, found an integer" },
    { "@{" HEAD DEV ALL "}", "", "no \"memories\": list at least the host memory, which comes first" },
    { MEMORIES("@{}"), "/memories", "\"memories\" must be an array, found an object" },
    { MEMORIES("@[]"), "/memories", "\"memories\" is empty: list at least the host memory, which comes first" },
    { "@{" HEAD MEM ALL "}", "", "no \"devices\": list at least one device" },
    { DEVICES("@[]"), "/devices", "\"devices\" is empty: list at least one device" },
    { FRAME(MEM, DEV, "'model':@[],", ALL), "/model", "model must be an object, found an array" },
    { FRAME(MEM, DEV, "'model':{'launch':@1},", ALL), "/model/launch",
      "unknown key \"launch\" (did you mean \"launch_us\"?)" },
    { FRAME(MEM, DEV, "'model':{'contention':@false},", ALL), "/model/contention",
      "\"contention\" must be a string, not a boolean" },
    { FRAME(MEM, DEV, "'model':{'contention':@'no'},", ALL), "/model/contention",
      "contention is \"no\"; it must be \"on\" or \"off\"" },
    { FRAME(MEM, DEV, "'model':{'launch_us':@-1},", ALL), "/model/launch_us",
      "\"launch_us\" must be between 0 and 1000000000, not -1" },
};

static const bad_input memories[] = {
    { MEMORIES("[@'host']"), "/memories/0", "a memory must be an object, found a string" },
    { MEMORIES("[{'id':'host','capacity':1,'size':@1}]"), "/memories/0/size",
      "unknown key \"size\": allowed here: id, capacity, reserved, pinned, numa, rank" },
    { MEMORIES("[@{'capacity':1}]"), "/memories/0", "missing key \"id\": give a string" },
    { MEMORIES("[{'id':@'','capacity':1}]"), "/memories/0/id",
      "\"\" is not an id: use a letter, then letters, digits, \".\", \"_\" or \"-\"" },
    { MEMORIES("[{'id':@'0x','capacity':1}]"), "/memories/0/id",
      "\"0x\" is not an id: use a letter, then letters, digits, \".\", \"_\" or \"-\"" },
    { MEMORIES("[{'id':@'a b','capacity':1}]"), "/memories/0/id",
      "\"a b\" is not an id: use a letter, then letters, digits, \".\", \"_\" or \"-\"" },
    { MEMORIES("[" HOST ",\n{'id':@'host','capacity':1}]"), "/memories/1/id",
      "\"host\" is defined twice, first at /memories/0" },
    { MEMORIES("[@{'id':'host'}]"), "/memories/0", "no \"capacity\": give bytes or a size such as \"141GiB\"" },
    { MEMORIES("[{'id':'host','capacity':@0}]"), "/memories/0/capacity",
      "capacity is 0: a memory holds at least 1 byte" },
    { MEMORIES("[{'id':'host','capacity':@-4}]"), "/memories/0/capacity",
      "capacity must be bytes or a size such as \"141GiB\", found a negative number" },
    { MEMORIES("[{'id':'host','capacity':@1.5}]"), "/memories/0/capacity",
      "capacity must be bytes or a size such as \"141GiB\", found a real number" },
    { MEMORIES("[{'id':'host','capacity':@'4 cows'}]"), "/memories/0/capacity",
      "\"4 cows\" is not a size; write bytes or a size such as \"141GiB\"" },
    { MEMORIES("[{'id':'host','capacity':@'9999999TiB'}]"), "/memories/0/capacity",
      "\"9999999TiB\" is not a size; write bytes or a size such as \"141GiB\"" },
    { MEMORIES("[{'id':'host','capacity':10,'reserved':@11}]"), "/memories/0/reserved",
      "reserved is 11 bytes of a capacity of 10; it is a part of it, and sizes without a unit are bytes" },
    { MEMORIES("[{'id':'host','capacity':10,'reserved':@null}]"), "/memories/0/reserved",
      "reserved must be bytes or a size such as \"141GiB\", found null" },
    { MEMORIES("[{'id':'host','capacity':10,'pinned':@1}]"), "/memories/0/pinned",
      "\"pinned\" must be true or false, not an integer" },
    { MEMORIES("[{'id':'host','capacity':10,'numa':@-1}]"), "/memories/0/numa",
      "\"numa\" must be between 0 and 2147483647, not -1" },
};

#define D(rest)  DEVICES("[{'id':'d0','memory':'mem-a'" rest "}]")
#define W(value) D(",'type':'gpu','workers':" value)
#define ONE      "{'id':'d0','memory':'mem-a'},"

static const bad_input devices[] = {
    { DEVICES("[@0]"), "/devices/0", "a device must be an object, found an integer" },
    { D(",'lane':@2"), "/devices/0/lane", "unknown key \"lane\" (did you mean \"lanes\"?)" },
    { DEVICES("[@{'memory':'host'}]"), "/devices/0", "missing key \"id\": give a string" },
    { DEVICES("[{'id':@'d*','memory':'host'}]"), "/devices/0/id",
      "\"d*\" is not an id: use a letter, then letters, digits, \".\", \"_\" or \"-\"" },
    { DEVICES("[" ONE "{'id':@'d0','memory':'host'}]"), "/devices/1/id",
      "\"d0\" is defined twice, first at /devices/0" },
    { D(",'type':@'tpu'"), "/devices/0/type", "type is \"tpu\"; it must be \"cpu\" or \"gpu\"" },
    { D(",'type':@1"), "/devices/0/type", "\"type\" must be a string, not an integer" },
    { D(",'use':@'none'"), "/devices/0/use", "use is \"none\"; it must be \"any\" or \"host\"" },
    { DEVICES("[" ONE "{'id':'g','type':'gpu','use':@'host','memory':'mem-a'}]"), "/devices/1/use",
      "use is \"host\" on a gpu; only devices of type \"cpu\" run host calls" },
    { D(",'use':@'host'"), "/devices/0/use",
      "use is \"host\" on the first device; at least one device must take other nodes" },
    { DEVICES("[" ONE "{'id':'c','use':'host','memory':'host'},@{'id':'e','memory':'host'}]"), "/devices/2",
      "device \"e\" comes after \"c\" whose use is \"host\"; list those devices last" },
    { D(",'kind':@3"), "/devices/0/kind", "\"kind\" must be a string, not an integer" },
    { D(",'kind':@'RTX 3090'"), "/devices/0/kind",
      "\"RTX 3090\" is not an id: use a letter, then letters, digits, \".\", \"_\" or \"-\"" },
    { DEVICES("[@{'id':'d0'}]"), "/devices/0", "missing key \"memory\": give a string" },
    { DEVICES("[{'id':'d0','memory':@'mem-aa'}]"), "/devices/0/memory",
      "no memory \"mem-aa\" (did you mean \"mem-a\"?)" },
    { DEVICES("[{'id':'d0','memory':@'vram'}]"), "/devices/0/memory",
      "no memory \"vram\"; memories are listed in \"memories\"" },
    { D(",'lanes':@0"), "/devices/0/lanes", "\"lanes\" must be between 1 and 65535, not 0" },
    { D(",'copy_engines':@0"), "/devices/0/copy_engines", "\"copy_engines\" must be between 1 and 65535, not 0" },
    { D(",'threads':@0"), "/devices/0/threads", "\"threads\" must be between 1 and 1024, not 0" },
    { D(",'type':'gpu','threads':@2"), "/devices/0/threads",
      "threads is given for a gpu; it is of devices of type \"cpu\": leave it out" },
    { D(",'workers':@{}"), "/devices/0/workers",
      "\"workers\" is given for a cpu; they are of devices of type \"gpu\": leave it out" },
    { W("@{'switch_us':1,'start_us':1}"), "/devices/0/workers",
      "no \"times_us\": give [launched, by workers] pairs of microseconds" },
    { W("@{'times_us':[[1,1],[2,2]],'start_us':1}"), "/devices/0/workers", "missing key \"switch_us\": give a number" },
    { W("{'times_us':[[1,1],@[2]],'switch_us':1,'start_us':1}"), "/devices/0/workers/times_us/1",
      "a pair must be [microseconds launched, microseconds by workers], such as [2.1, 0.6], each from 0 to 1e+09" },
    { W("{'times_us':[[1,1],@[-2,3]],'switch_us':1,'start_us':1}"), "/devices/0/workers/times_us/1",
      "a pair must be [microseconds launched, microseconds by workers], such as [2.1, 0.6], each from 0 to 1e+09" },
    { W("{'times_us':[[1,1],@[1,2]],'switch_us':1,'start_us':1}"), "/devices/0/workers/times_us/1",
      "[1, 2] after [1, 1]: list the pairs by rising time of the launched op; that of workers must not fall" },
    { W("{'times_us':[[1,2],@[2,1]],'switch_us':1,'start_us':1}"), "/devices/0/workers/times_us/1",
      "[2, 1] after [1, 2]: list the pairs by rising time of the launched op; that of workers must not fall" },
    { W("{'times_us':@[[1,1]],'switch_us':1,'start_us':1}"), "/devices/0/workers/times_us",
      "1 pair; give at least two" },
    { W("{'times_us':@[[1,1],[2,1]],'switch_us':1,'start_us':1}"), "/devices/0/workers/times_us",
      "workers take as long for the last two; larger ops go on at their slope, so it must rise" },
    { W("{'times_us':[[1,1],[2,2]],'switch_us':1,'start_us':1,'beside':@0.5}"), "/devices/0/workers/beside",
      "\"beside\" must be between 1 and 1000, not 0.5" },
    { D(",'ordinal':@-1"), "/devices/0/ordinal", "\"ordinal\" must be between 0 and 2147483647, not -1" },
    { D(",'launch_us':@'4'"), "/devices/0/launch_us", "\"launch_us\" must be a number, not a string" },
    { D(",'signal_us':@-1"), "/devices/0/signal_us", "\"signal_us\" must be between 0 and 1000000000, not -1" },
    { D(",'bandwidth_gbs':@0"), "/devices/0/bandwidth_gbs",
      "\"bandwidth_gbs\" must be between 1e-09 and 1000000, not 0" },
    { D(",'gflops':@5"), "/devices/0/gflops", "gflops must be an object, found an integer" },
    { D(",'formulas':{'fp32':@5}"), "/devices/0/formulas/fp32", "unknown key \"fp32\" (did you mean \"f32\"?)" },
    { D(",'formulas':@5"), "/devices/0/formulas", "formulas must be an object, found an integer" },
    { D(",'formulas':{'f32':@0}"), "/devices/0/formulas/f32",
      "\"f32\" must be between 1e-09 and 1000000000000, not 0" },
    { W("{'times_us':[[1,1],[2,2]],'switch_us':1,'start_us':1,'formulas':{'f64':@-1}}"),
      "/devices/0/workers/formulas/f64", "\"f64\" must be between 1e-09 and 1000000000000, not -1" },
    { D(",'gflops':{'fp32':@5}"), "/devices/0/gflops/fp32", "unknown key \"fp32\" (did you mean \"f32\"?)" },
    { D(",'gflops':{'f32':@-5}"), "/devices/0/gflops/f32", "\"f32\" must be between 1e-09 and 1000000000000, not -5" },
};

static const bad_input routes[] = {
    { FRAME(MEM, DEV, "'resources':@[],", ALL), "/resources",
      "\"resources\" must be an object of GB/s by name, found an array" },
    { FRAME(MEM, DEV, "'resources':{'a/b':@1},", ALL), "/resources/a~1b",
      "\"a/b\" is not an id: use a letter, then letters, digits, \".\", \"_\" or \"-\"" },
    { FRAME(MEM, DEV, "'resources':{'bus':@0},", ALL), "/resources/bus",
      "\"bus\" must be between 1e-09 and 1000000, not 0" },
    { FRAME(MEM, DEV, "'resources':{'bus':@-1},", ALL), "/resources/bus",
      "\"bus\" must be between 1e-09 and 1000000, not -1" },
    { FRAME(MEM, DEV, "'resources':{'bus':@'fast'},", ALL), "/resources/bus",
      "\"bus\" must be a number, not a string" },
    { ROUTES("@{}"), "/routes", "\"routes\" must be an array, found an object" },
    { ROUTES("[{'from':'host','to':'mem-a','bandwidth_gbs':1,'kernel_bytes':@-1}]"), "/routes/0/kernel_bytes",
      "\"kernel_bytes\" must be at least 0, not -1" },
    { ROUTES("[@[]]"), "/routes/0", "a route must be an object, found an array" },
    { ROUTES("[{'from':'host','to':'mem-a','bandwith_gbs':@1}]"), "/routes/0/bandwith_gbs",
      "unknown key \"bandwith_gbs\" (did you mean \"bandwidth_gbs\"?)" },
    { ROUTES("[@{'to':'host','bandwidth_gbs':1}]"), "/routes/0",
      "no \"from\": name a memory, a list of memories or a pattern such as \"gpu*\"" },
    { ROUTES("[@{'from':'host','bandwidth_gbs':1}]"), "/routes/0",
      "no \"to\": name a memory, a list of memories or a pattern such as \"gpu*\"" },
    { ROUTES("[{'from':@'mem-c','to':'host','bandwidth_gbs':1}]"), "/routes/0/from",
      "no memory \"mem-c\" (did you mean \"mem-a\"?)" },
    { ROUTES("[{'from':'host','to':['mem-a',@'x'],'bandwidth_gbs':1}]"), "/routes/0/to/1",
      "no memory \"x\"; memories are listed in \"memories\"" },
    { ROUTES("[{'from':'host','to':['mem-a',@2],'bandwidth_gbs':1}]"), "/routes/0/to/1",
      "a memory must be named by a string, found an integer" },
    { ROUTES("[{'from':@'gpu*','to':'host','bandwidth_gbs':1}]"), "/routes/0/from",
      "no memory matches \"gpu*\"; \"*\" stands for any ending and comes last" },
    { ROUTES("[{'from':@'*em-a','to':'host','bandwidth_gbs':1}]"), "/routes/0/from",
      "no memory matches \"*em-a\"; \"*\" stands for any ending and comes last" },
    { ROUTES("[@{'from':['host'],'to':'host','bandwidth_gbs':1}]"), "/routes/0",
      "from and to name no two different memories" },
    { ROUTES("[{'from':'*','to':'*','both':@1,'bandwidth_gbs':1}]"), "/routes/0/both",
      "\"both\" must be true or false, not an integer" },
    { ROUTES("[@{'from':'host','to':'host','both':true,'bandwidth_gbs':1}]"), "/routes/0",
      "\"both\" on a copy within one memory, which has no other direction; drop it" },
    { ROUTES("[{'from':'host','to':'mem-a','bandwidth_gbs':1},@{'from':'h*','to':'*','bandwidth_gbs':1}]"), "/routes/1",
      "the route from \"host\" to \"mem-a\" is given twice, first at /routes/0" },
    { ROUTE(""), "/routes/0", "no times: give \"points\" or \"bandwidth_gbs\"" },
    { ROUTE(",'latency_us':1"), "/routes/0", "no times: give \"points\" or \"bandwidth_gbs\"" },
    { ROUTE(",'points':[[1,1],[2,2]],'bandwidth_gbs':1"), "/routes/0",
      "\"points\" and \"bandwidth_gbs\" exclude each other; keep one" },
    { ROUTE(",'points':[[1,1],[2,2]],'latency_us':1"), "/routes/0",
      "\"points\" and \"latency_us\" exclude each other; keep one" },
    { ROUTES("[{'from':'host','to':'mem-a','bandwidth_gbs':@0}]"), "/routes/0/bandwidth_gbs",
      "\"bandwidth_gbs\" must be between 1e-09 and 1000000, not 0" },
    { ROUTES("[{'from':'host','to':'mem-a','latency_us':@-2,'bandwidth_gbs':1}]"), "/routes/0/latency_us",
      "\"latency_us\" must be between 0 and 1000000000, not -2" },
    { POINTS("@3"), "/routes/0/points", "\"points\" must be an array, found an integer" },
    { POINTS("@[]"), "/routes/0/points", "0 points; give at least two, or \"latency_us\" and \"bandwidth_gbs\"" },
    { POINTS("@[[4,1]]"), "/routes/0/points", "1 point; give at least two, or \"latency_us\" and \"bandwidth_gbs\"" },
    { POINTS("[[1,1],@[2]]"), "/routes/0/points/1", "a point must be [bytes, microseconds], such as [4096, 1.72]" },
    { POINTS("[@[1.5,1],[2,2]]"), "/routes/0/points/0", "a point must be [bytes, microseconds], such as [4096, 1.72]" },
    { POINTS("[@[1,'1'],[2,2]]"), "/routes/0/points/0", "a point must be [bytes, microseconds], such as [4096, 1.72]" },
    { POINTS("[@{},[2,2]]"), "/routes/0/points/0", "a point must be [bytes, microseconds], such as [4096, 1.72]" },
    { POINTS("[@[-1,1],[2,2]]"), "/routes/0/points/0", "-1 bytes is not a size; give 0 to 4611686018427387903" },
    { POINTS("[[1,1],@[2,-1]]"), "/routes/0/points/1", "-1 us is not a time; give 0 to 1e+09" },
    { POINTS("[[1,1],@[2,1e10]]"), "/routes/0/points/1", "1e+10 us is not a time; give 0 to 1e+09" },
    { POINTS("[[8,1],@[8,2]]"), "/routes/0/points/1", "8 bytes after 8; list the points by rising size" },
    { POINTS("[[1,1.5],@[2,1.25]]"), "/routes/0/points/1",
      "1.25 us after 1.5 us: more bytes cannot take less time; smooth the measurements" },
    { POINTS("@[[1,1],[2,2],[3,2]]"), "/routes/0/points",
      "the last two points take the same time; larger copies go on at their slope, so it must rise" },
    { ROUTES("[{'from':'host','to':'mem-a','bandwidth_gbs':1,'via':@'bus'}]"), "/routes/0/via",
      "\"via\" must be an array, found a string" },
    { ROUTES("[{'from':'host','to':'mem-a','bandwidth_gbs':1,'via':[@1]}]"), "/routes/0/via/0",
      "a resource must be named by a string, found an integer" },
    { ROUTES("[{'from':'host','to':'mem-a','bandwidth_gbs':1,'via':['bus',@'lame']}]"), "/routes/0/via/1",
      "no resource \"lame\" (did you mean \"lane\"?)" },
    { ROUTES("[{'from':'host','to':'mem-a','bandwidth_gbs':1,'via':[@'{from}-{to}.out']}]"), "/routes/0/via/0",
      "no resource \"host-mem-a.out\"; resources are listed in \"resources\"" },
    { ROUTES("[{'from':'host','to':'mem-a','bandwidth_gbs':1,'via':['bus',@'bus']}]"), "/routes/0/via/1",
      "resource \"bus\" is listed twice" },
    { ROUTES("@[{'from':'host','to':'mem-a','bandwidth_gbs':1}]"), "/routes",
      "no route from memory \"host\" to \"mem-b\", not even through one other memory; declare one in \"routes\"" },
    { "@{" HEAD MEM "'devices':[{'id':'d0','memory':'mem-a'}]}", "",
      "no route from memory \"host\" to \"mem-a\", not even through one other memory; declare one in \"routes\"" },
};

#define TABLES(list)                                                                                                   \
    FRAME(MEM, "'devices':[{'id':'d0','kind':'fast','memory':'mem-a'}],", "", ALL ",'collectives':" list)
#define TABLE(head, rest)                                                                                              \
    TABLES("[" head "'collective':'all_reduce','algorithm':'ring','kind':'fast','ranks':2," rest                       \
           "'points':[[1,1],[2,2]]}]")

static const bad_input tables[] = {
    { TABLES("@{}"), "/collectives", "\"collectives\" must be an array, found an object" },
    { TABLES("[@3]"), "/collectives/0", "a measured collective must be an object, found an integer" },
    { TABLES("[{'collective':@'al_reduce'}]"), "/collectives/0/collective",
      "no collective \"al_reduce\" (did you mean \"all_reduce\"?)" },
    { TABLES("[{'collective':@'x'}]"), "/collectives/0/collective",
      "no collective \"x\"; there are all_reduce, reduce, broadcast, scatter, gather, all_gather, reduce_scatter, "
      "all_to_all" },
    { TABLES("[{'collective':'gather','algorithm':@'zigzag'}]"), "/collectives/0/algorithm",
      "no algorithm \"zigzag\"; there are copy_engine, ring, tree, recursive, one_shot, two_shot, islands, counters, "
      "nccl" },
    { TABLES("[{'collective':'gather','algorithm':'nccl','kind':@'fats'}]"), "/collectives/0/kind",
      "no device of kind \"fats\" (did you mean \"fast\"?)" },
    { TABLES("[{'collective':'gather','algorithm':'nccl','kind':'fast','ranks':@1}]"), "/collectives/0/ranks",
      "\"ranks\" must be between 2 and 65535, not 1" },
    { TABLES("[@{'collective':'gather','algorithm':'nccl','kind':'fast','ranks':2}]"), "/collectives/0",
      "no \"points\": give measured [bytes, microseconds] pairs" },
    { TABLES("[{'collective':'gather','algorithm':'nccl','kind':'fast','ranks':2,'points':@[[1,1]]}]"),
      "/collectives/0/points", "1 point; give at least two" },
    { TABLE("{", "'bytes':@1,"), "/collectives/0/bytes",
      "unknown key \"bytes\": allowed here: collective, algorithm, kind, ranks, points" },
    { TABLE("{'collective':'all_reduce','algorithm':'ring','kind':'fast','ranks':2,'points':[[1,1],[2,2]]},@{", ""),
      "/collectives/1", "all_reduce by ring of 2 devices of kind \"fast\" is given twice" },
};

#define MEASURED(rest)      FRAME(MEM, "'devices':[{'id':'d0','kind':'fast','memory':'mem-a'}],", "", ALL "," rest)
#define KERNELS(list)       MEASURED("'kernels':" list)
#define KERNEL(rest)        KERNELS("[{'kernel':'gemm','dtype':'f32','kind':'fast','by':'flops'," rest "}]")
#define GEMM                "'kernel':'gemm','dtype':'f32','kind':'fast','by':'flops','points':[[1,1]]}"
#define CALIBRATION(object) MEASURED("'calibration':" object)

#define PACK(rest)                                                                                                     \
    KERNELS("[{'kernel':'halo_pack','dtype':'f32','kind':'fast','by':'bytes','points':[[1,1]]," rest "}]")
#define PAIR                                                                                                           \
    "a pair must be [bytes that lie together, so many times as many bytes], such as [8, 2.5]: whole bytes from 1 on, " \
    "and 1 to 1000 times"

static const bad_input kernels[] = {
    { KERNELS("@{}"), "/kernels", "\"kernels\" must be an array, found an object" },
    { KERNELS("[@'gemm']"), "/kernels/0", "a measured kernel must be an object, found a string" },
    { KERNELS("[@{}]"), "/kernels/0", "missing key \"kernel\": give a string" },
    { KERNELS("[{'kernel':@3}]"), "/kernels/0/kernel", "\"kernel\" must be a string, not an integer" },
    { KERNELS("[@{'kernel':'gemm'}]"), "/kernels/0", "missing key \"dtype\": give a string" },
    { KERNELS("[{'kernel':'gemm','dtype':@'f23'}]"), "/kernels/0/dtype", "no dtype \"f23\" (did you mean \"f32\"?)" },
    { KERNELS("[{'kernel':'gemm','dtype':'f32','kind':@'fats'}]"), "/kernels/0/kind",
      "no device of kind \"fats\" (did you mean \"fast\"?)" },
    { KERNELS("[{'kernel':'gemm','dtype':'f32','kind':'fast','by':@'time'}]"), "/kernels/0/by",
      "no by \"time\"; there are bytes, flops" },
    { KERNELS("[@{'kernel':'gemm','dtype':'f32','kind':'fast','by':'flops'}]"), "/kernels/0",
      "no \"points\": give measured [work, microseconds] pairs" },
    { KERNEL("'points':@[]"), "/kernels/0/points", "\"points\" is empty: give measured [work, microseconds] pairs" },
    { KERNEL("'points':[@[0,1]]"), "/kernels/0/points/0",
      "0 flops are no work; times of a kernel are given for at least 1" },
    { KERNEL("'points':[[1,2],@[1,3]]"), "/kernels/0/points/1", "1 flops after 1; list the points by rising size" },
    { KERNEL("'points':[[1,2],@[2,1]]"), "/kernels/0/points/1",
      "1 us after 2 us: more flops cannot take less time; smooth the measurements" },
    { KERNEL("'points':[[1,1]],'batched':@[]"), "/kernels/0/batched",
      "\"batched\" is empty: give measured [work, microseconds] pairs" },
    { KERNEL("'points':[[1,1]],'batched':@[[0,1]]"), "/kernels/0/batched",
      "1 points of flops; what an op adds to a batch is given for at least one work, from 1 on" },
    { KERNEL("'points':[[1,1]],'batched':[[1,1],@[1,2]]"), "/kernels/0/batched/1",
      "1 flops after 1; list the points by rising size" },
    { KERNEL("'points':[[1,1]],'size':@1"), "/kernels/0/size",
      "unknown key \"size\": allowed here: kernel, dtype, kind, case, by, points, share, scratch, batched, strided" },
    { KERNEL("'points':[[1,1]],'strided':@[[8,2]]"), "/kernels/0/strided",
      "\"strided\" is of tables by bytes that speak of all arguments, and this one goes by flops: leave it out" },
    { PACK("'case':'8x8','strided':@[[8,2]]"), "/kernels/0/strided",
      "\"strided\" is of tables by bytes that speak of all arguments, and this one goes by exact arguments: leave it "
      "out" },
    { PACK("'strided':@[]"), "/kernels/0/strided",
      "\"strided\" is empty: give [bytes that lie together, times as many] pairs" },
    { PACK("'strided':[@[8]]"), "/kernels/0/strided/0", PAIR },
    { PACK("'strided':[@[8,0.5]]"), "/kernels/0/strided/0", PAIR },
    { PACK("'strided':[[8,2],@[0,1]]"), "/kernels/0/strided/1", PAIR },
    { PACK("'strided':[@[8,1001]]"), "/kernels/0/strided/0", PAIR },
    { PACK("'strided':[[8,2],@[8,1]]"), "/kernels/0/strided/1",
      "[8, 1] after [8, 2]: list the pairs by rising bytes; where more lie together they cannot take longer" },
    { PACK("'strided':[[8,2],@[16,2.5]]"), "/kernels/0/strided/1",
      "[16, 2.5] after [8, 2]: list the pairs by rising bytes; where more lie together they cannot take longer" },
    { KERNEL("'points':[[1,1]],'scratch':@0"), "/kernels/0/scratch",
      "\"scratch\" must be between 1 and 2305843009213693951, not 0" },
    { KERNEL("'points':[[1,1]],'share':@0.5"), "/kernels/0/share", "\"share\" must be an array, found a real number" },
    { KERNEL("'points':[[1,1],[2,2]],'share':@[0.5]"), "/kernels/0/share",
      "1 portions for 2 points; give one for each point" },
    { KERNEL("'points':[[1,1],[2,2]],'share':[0.5,@'half']"), "/kernels/0/share/1",
      "a portion of the device is a number, found a string" },
    { KERNEL("'points':[[1,1],[2,2]],'share':[@0,1]"), "/kernels/0/share/0",
      "0 is no portion of a device; give 0.001 to 1" },
    { KERNEL("'points':[[1,1],[2,2]],'share':[1,@1.5]"), "/kernels/0/share/1",
      "1.5 is no portion of a device; give 0.001 to 1" },
    { KERNEL("'points':[[1,1]],'case':@3"), "/kernels/0/case", "\"case\" must be a string, not an integer" },
    { KERNEL("'points':[[1,1]],'case':@''"), "/kernels/0/case",
      "\"case\" is a text of 0 bytes; give the arguments as `gantry run --calibrate` writes them, 1 to 1000 bytes "
      "without control characters" },
    { KERNEL("'case':'8 8','points':@[[1,1],[2,2]]"), "/kernels/0/points",
      "2 points; a time for exact arguments (\"case\") is one point" },
    { KERNELS("[{'case':'8 8'," GEMM ",@{'case':'8 8'," GEMM "]"), "/kernels/1",
      "kernel \"gemm\" of f32 on devices of kind \"fast\" with arguments \"8 8\" is given twice" },
    { KERNELS("[{" GEMM ",@{" GEMM "]"), "/kernels/1",
      "kernel \"gemm\" of f32 on devices of kind \"fast\" is given twice" },
};

static const bad_input calibrations[] = {
    { CALIBRATION("@[]"), "/calibration", "calibration must be an object, found an array" },
    { CALIBRATION("{'launchs':@{}}"), "/calibration/launchs", "unknown key \"launchs\" (did you mean \"launches\"?)" },
    { CALIBRATION("{'fingerprint':@[]}"), "/calibration/fingerprint",
      "\"fingerprint\" must be an object of texts by name, found an array" },
    { CALIBRATION("{'fingerprint':{'driver':@580}}"), "/calibration/fingerprint/driver",
      "\"driver\" must be a string, not an integer" },
    { CALIBRATION("{'copies':@3}"), "/calibration/copies", "copies must be an object, found an integer" },
    { CALIBRATION("{'copies':@{}}"), "/calibration/copies", "missing key \"figures\": give an integer" },
    { CALIBRATION("{'copies':{'figures':@0}}"), "/calibration/copies/figures",
      "\"figures\" must be between 1 and 4294967295, not 0" },
    { CALIBRATION("{'copies':{'figures':1,'samples':2,'mad':@-1}}"), "/calibration/copies/mad",
      "\"mad\" must be between 0 and 1000000000, not -1" },
    { CALIBRATION("{'copies':{'figures':1,'samples':2,'mad':0,'worst':0,'best':@1}}"), "/calibration/copies/best",
      "unknown key \"best\": allowed here: figures, samples, mad, worst" },
};

/* Takes the mark out and says where it was. */
static char *unmark(const char *text, int *line, int *column)
{
    char *json = with_quotes(text), *mark = strchr(json, '@');
    ck_assert_msg(mark && !strchr(mark + 1, '@'), "a case needs one mark: %s", text);
    *line = *column = 1;
    for (const char *c = json; c < mark; c++) {
        *column = *c == '\n' ? 1 : *column + 1;
        *line += *c == '\n';
    }
    memmove(mark, mark + 1, strlen(mark));
    return json;
}

static void check_case(const bad_input *bad)
{
    gantry_machine *untouched = (gantry_machine *)(uintptr_t)8, *m = untouched;
    gantry_error err = { 0 };
    int line, column;
    char *json = unmark(bad->text, &line, &column);
    gantry_status status = gantry_machine_parse(&m, json, strlen(json), "bad.json", &err);
    ck_assert_msg(status == GANTRY_E_MACHINE && err.status == status, "%s: %s", gantry_status_name(status), bad->text);
    ck_assert_ptr_eq(m, untouched);
    ck_assert_str_eq(err.text, bad->message);
    ck_assert_str_eq(err.where, bad->where);
    ck_assert_str_eq(err.file, "bad.json");
    ck_assert_msg(err.line == line && err.column == column, "%d:%d, not %d:%d, in %s", err.line, err.column, line,
                  column, bad->text);
    ck_assert_int_eq(gantry_machine_parse(&m, json, strlen(json), "bad.json", NULL), status);
    free(json);
}

#define EACH(list)                                                                                                     \
    for (size_t i = 0; i < sizeof(list) / sizeof *(list); i++)                                                         \
        check_case(&(list)[i]);

START_TEST(bad_heading)
{ EACH(heading) } END_TEST
START_TEST(bad_memories)
{ EACH(memories) } END_TEST
START_TEST(bad_devices)
{ EACH(devices) } END_TEST
START_TEST(bad_routes)
{ EACH(routes) } END_TEST

START_TEST(bad_tables)
{ EACH(tables) } END_TEST

START_TEST(bad_kernels)
{ EACH(kernels) } END_TEST
START_TEST(bad_calibrations)
{ EACH(calibrations) } END_TEST

START_TEST(bad_syntax)
{
    static const char *const text[] = { "", "{'gantry_machine':1,'gantry_machine':1}", "{'gantry_machine':}", "{} x" };
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        gantry_machine *m = NULL;
        gantry_error err = { 0 };
        char *json = with_quotes(text[i]);
        ck_assert_int_eq(gantry_machine_parse(&m, json, strlen(json), "bad.json", &err), GANTRY_E_SYNTAX);
        ck_assert_str_eq(err.file, "bad.json");
        ck_assert_int_eq(err.line, 1);
        ck_assert_ptr_null(m);
        free(json);
    }
}
END_TEST

START_TEST(bad_calls)
{
    gantry_machine *m = NULL;
    gantry_error err = { 0 };
    ck_assert_int_eq(gantry_machine_parse(NULL, "", 0, "x", &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text,
                     "gantry_machine_parse was called with NULL for `machine`; pass what its header asks for");
    ck_assert_int_eq(gantry_machine_parse(&m, NULL, 0, "x", &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text, "gantry_machine_parse was called with NULL for `text`; pass what its header asks for");
    ck_assert_int_eq(gantry_machine_load(&m, NULL, &err), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_machine_load(NULL, "x", &err), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_machine_load(&m, "/nowhere/x.json", &err), GANTRY_E_IO);
    ck_assert_int_eq(gantry_machine_save(NULL, "x", &err), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_machine_save(m, NULL, &err), GANTRY_E_INVALID);
    ck_assert_ptr_null(m);
    gantry_machine_free(NULL);
    ck_assert_ptr_null(gy_machine_ref(NULL));
}
END_TEST

START_TEST(too_many_memories)
{
    gy_text text = { 0 };
    gantry_machine *m = NULL;
    gantry_error err = { 0 };
    gy_text_add(&text, "{\"gantry_machine\":1,\"memories\":[0");
    for (int i = 0; i < 4097; i++)
        gy_text_add(&text, ",0");
    gy_text_add(&text, "],\"devices\":[0]}");
    ck_assert_int_eq(gantry_machine_parse(&m, text.at, text.length, "big", &err), GANTRY_E_MACHINE);
    ck_assert_str_eq(err.text, "4098 memories; this version reads up to 4097");
    ck_assert_str_eq(err.where, "/memories");
    gy_text_free(&text);
}
END_TEST

/* A machine inside another file: the pointer starts where the reader was put. */
START_TEST(inline_pointer)
{
    char *json =
        with_quotes("{'machine':{" HEAD MEM "'devices':[{'id':'d','memory':'host'},{'id':'d','memory':'host'}]}}");
    json_t *root = NULL;
    gantry_machine *m = NULL;
    gantry_error err = { 0 };
    ck_assert_int_eq(gy_json_parse(&root, json, strlen(json), "g.json", "gantry", &err), GANTRY_OK);
    gy_json_at top = { NULL, NULL, 0, root };
    gy_json_at at = gy_json_key(&top, "machine");
    ck_assert_int_eq(gy_machine_read(&m, &at, &err), GANTRY_E_MACHINE);
    ck_assert_str_eq(err.where, "/machine/devices/1/id");
    ck_assert_str_eq(err.text, "\"d\" is defined twice, first at /machine/devices/0");
    json_decref(root);
    free(json);
}
END_TEST

START_TEST(defaults)
{
    gantry_machine *m = machine_of("{'$schema':'m.json','gantry_machine':1,'memories':[{'id':'h','capacity':'1.5KiB'}],"
                                   "'devices':[{'id':'c','memory':'h'},{'id':'g','type':'gpu','memory':'h'}],"
                                   "'model':{'launch_us':0.25}}");
    const gy_device *c = &m->device[0], *g = &m->device[1];
    ck_assert_str_eq(gantry_machine_name(m), "machine");
    ck_assert(m->contention && !m->source && m->notes == 0);
    ck_assert_uint_eq(m->memory[0].capacity, 1536);
    ck_assert(m->memory[0].host && !m->memory[0].pinned && m->memory[0].numa == -1 && m->memory[0].reserved == 0);
    ck_assert(!c->gpu && !c->host_only && c->lanes == 1 && c->copy_engines == 1 && c->ordinal == -1);
    ck_assert(g->gpu && g->lanes == 4 && g->copy_engines == 2 && g->ordinal == -1);
    ck_assert_str_eq(c->kind, "cpu");
    ck_assert_str_eq(g->kind, "gpu");
    ck_assert_int_eq(c->launch, 250000);
    ck_assert_int_eq(g->signal, 0);
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("machine reader");
    TCase *tc = tcase_create("read");
    tcase_add_test(tc, bad_heading);
    tcase_add_test(tc, bad_memories);
    tcase_add_test(tc, bad_devices);
    tcase_add_test(tc, bad_routes);
    tcase_add_test(tc, bad_tables);
    tcase_add_test(tc, bad_kernels);
    tcase_add_test(tc, bad_calibrations);
    tcase_add_test(tc, bad_syntax);
    tcase_add_test(tc, bad_calls);
    tcase_add_test(tc, too_many_memories);
    tcase_add_test(tc, inline_pointer);
    tcase_add_test(tc, defaults);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
