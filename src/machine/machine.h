/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The machine as the layers above read it: arrays indexed by small numbers, and a dense matrix of routes.
 *
 * A machine is made once (read, detected, invented or selected), then never changed; it is shared by reference count.
 * Everything it points to lives in its arena. Strings are never NULL unless a comment says so.
 *
 * Copies. A copy along a route is a latency phase (gy_route_latency), then a flow of `bytes` that runs at most at
 * gy_route_rate(route, bytes) and shares the route's resources max-min fairly with the other flows. Alone on the
 * machine both phases add up to gy_route_time. With `contention` false nothing is shared: every copy takes its solo
 * time and the copies of one device are not serialised (the textbook machine).
 */
#ifndef GY_MACHINE_MACHINE_H
#define GY_MACHINE_MACHINE_H

#include "base/arena.h"
#include "base/json.h"
#include "base/text.h"
#include "base/ticks.h"
#include <gantry/graph.h>
#include <gantry/machine.h>
#include <stdatomic.h>
#include <stdbool.h>

#define GY_MACHINE_NONE UINT32_MAX                /* no device, no memory */
#define GY_RATE_MAX     INT64_C(1000000000000000) /* bytes per second: "takes no time"; also the most a file may say */

enum { GY_MOST_THREADS = 1024 }; /* of a device */

/* Bytes. Memory 0 is the host memory, `host` is true for it alone. */
typedef struct gy_memory {
    const char *id;
    uint64_t capacity, reserved; /* `reserved` of `capacity` are taken by contexts, libraries and communicators */
    bool host, pinned;           /* pinned: page-locked, so that copies to and from it run at full speed */
    int numa;                    /* NUMA node, or -1 */
    gy_ticks signal;             /* of the devices that work in it, the slowest to tell: gy_machine_signals */
    uint32_t rank;   /* of the process that has it, and whose devices work in it: 0 .. gy_machine_ranks - 1 */
    uint32_t arrays; /* where arrays of the program that each process has are for devices that work in it: memory 0, or,
                      * where that is another computer's, the host memory of its own */
    uint32_t computer; /* its first memory: no network is between the two */
} gy_memory;

typedef struct gy_point {
    int64_t bytes;
    gy_ticks time;
} gy_point;

/* Times of ops that workers of a resident kernel carry out (replay mode "device"), measured beside launches. */
typedef struct gy_worker_times {
    const gy_point *point; /* `bytes`: ticks of an op that is launched, which rise; `time`: of the same op by workers,
                              which never fall. At least two, the last two rising */
    uint32_t points;       /* 0: nothing was measured */
    gy_ticks change;       /* a switch: from a worker to the stream of a lane, or back */
    gy_ticks start;        /* as that of the machine, of a start by workers */
    double formulas[GANTRY_DTYPE_COUNT]; /* as those of the device, by workers */
    uint32_t beside; /* thousandths, GY_ALONE or more: of its time, what a launched op takes while there are workers */
} gy_worker_times;

enum { GY_ALONE = 1000 };

typedef struct gy_device {
    const char *id, *kind;
    bool gpu;
    bool host_only;               /* takes host calls and nodes that `on` puts there; policies offer it nothing else */
    uint32_t memory;              /* index of the memory it works in; devices may share one */
    uint32_t lanes, copy_engines; /* ops that run at once; copies that run at once; both >= 1 */
    uint32_t threads;             /* of a cpu: that it computes with; 0: not said */
    uint32_t multiprocessors;     /* of a gpu: a block of threads runs on one of them; 0: not known */
    int ordinal;                  /* the back end's own number (CUDA ordinal), or -1 */
    double gflops[GANTRY_DTYPE_COUNT];   /* GFLOP/s as given; 0: not given, see gy_device_gflops */
    double formulas[GANTRY_DTYPE_COUNT]; /* GFLOP/s that formulas were measured to reach; 0: not known */
    double bandwidth_gbs;                /* memory bandwidth, GB/s; 0: not given, memory is no limit */
    gy_ticks launch;                     /* added to every op that runs on it */
    gy_ticks signal;         /* from the end of an op to what waited for it in another queue: see gy_device_signal */
    gy_worker_times workers; /* of a gpu */
} gy_device;

/* Anything that flows share: a direction of a link, a port, a switch, a bus. */
typedef struct gy_resource {
    const char *id;
    int64_t rate; /* bytes per second, > 0 */
} gy_resource;

typedef enum {
    GY_ROUTE_NONE,   /* bytes cannot get there */
    GY_ROUTE_DIRECT, /* one copy; from == to: a copy within the memory */
    GY_ROUTE_RELAY,  /* two direct copies, through the memory `via` of another device */
    GY_ROUTE_STAGED  /* two direct copies, through host memory (`via` = 0) */
} gy_route_kind;

/**
 * DIRECT: at least two measured solo times with rising `bytes`, never falling `time` and a last pair that rises;
 * linear between points, the first time below them, the last slope beyond them. RELAY and STAGED: no points and no
 * resources of their own, two hops that run one after the other (store and forward).
 */
typedef struct gy_route {
    gy_route_kind kind;
    uint32_t from, to, via; /* memories; via: GY_MACHINE_NONE unless RELAY or STAGED */
    bool given;             /* declared; false: composed, or the default copy within a memory */
    const gy_point *point;
    uint32_t points;
    const uint32_t *resource;
    uint32_t resources;
    int64_t kernel_bytes; /* copies of up to so many bytes are faster by a kernel than by copy engines */
    bool network;         /* DIRECT: a message, which ports of both computers carry: no kernel moves its bytes */
    const struct gy_route *hop[2]; /* RELAY, STAGED: the DIRECT routes from -> via -> to; else NULL */
} gy_route;

/* How a collective is carried out: X(constant, name in files). scheduler/collective.h says what each does. */
#define GY_ALGORITHM_MAP(X)                                                                                            \
    X(COPY, copy_engine)                                                                                               \
    X(RING, ring)                                                                                                      \
    X(TREE, tree)                                                                                                      \
    X(RECURSIVE, recursive)                                                                                            \
    X(ONE_SHOT, one_shot)                                                                                              \
    X(TWO_SHOT, two_shot)                                                                                              \
    X(ISLANDS, islands)                                                                                                \
    X(COUNTERS, counters)                                                                                              \
    X(NCCL, nccl)

typedef enum gy_algorithm {
    GY_ALGORITHM_NONE, /* not said */
#define GY_X(name, text) GY_ALGORITHM_##name,
    GY_ALGORITHM_MAP(GY_X)
#undef GY_X
        GY_ALGORITHM_COUNT
} gy_algorithm;

const char *gy_algorithm_name(gy_algorithm algorithm); /* "ring"; NULL if there is none */
gy_algorithm gy_algorithm_find(const char *name);      /* NONE if there is none */

/* Measured times of a collective among `ranks` devices of one kind that work in memories of their own. `bytes` of a
 * point: all_reduce, reduce, broadcast: what one rank has; else of all parts together; all_to_all: of all ranks. */
typedef struct gy_collective_table {
    gantry_collective collective;
    gy_algorithm algorithm;
    const char *kind;
    uint32_t ranks;
    const gy_point *point; /* as of a DIRECT route */
    uint32_t points;
} gy_collective_table;

/* Bytes that lie together in memory, and how many times their number such ones take as long as, in thousandths. */
typedef struct gy_strided {
    int64_t bytes;
    uint32_t times; /* GY_ALONE or more */
} gy_strided;

/* Measured times of a kernel on devices of one kind, by the work of a node: flops or bytes as the kernel's manifest
 * counts them. A time is that of the op from end to end, its launch included. Work rises, times never fall. */
typedef struct gy_kernel_table {
    const char *kernel, *kind;
    gantry_dtype dtype;    /* as gy_node_dtype says it of a node */
    bool by_flops;         /* else by bytes */
    const gy_point *point; /* at least one; `bytes` is the work */
    uint32_t points;
    const uint16_t *share; /* per point: thousandths of the device that an op takes, >= 1; NULL: all of it */
    uint64_t scratch;      /* bytes that a launch takes at most beside what its manifest says: a library's workspace */
    const gy_point *batched;   /* what one more op of that work adds to a batch, up to the work of the last */
    uint32_t batched_points;   /* 0: its ops are in no batch */
    const gy_strided *strided; /* of a table by bytes: rising bytes, falling times */
    uint32_t strides;          /* 0: nothing is known of that */
    const char *arguments;     /* that the table speaks of, which has one point then (gy_node_case); NULL: all */
} gy_kernel_table;

/* Families of figures that are measured for a machine: X(constant, name in files). */
#define GY_FAMILY_MAP(X)                                                                                               \
    X(COPIES, copies)                                                                                                  \
    X(TRAFFIC, traffic)                                                                                                \
    X(KERNELS, kernels)                                                                                                \
    X(COLLECTIVES, collectives)                                                                                        \
    X(LAUNCHES, launches)                                                                                              \
    X(WORKERS, workers)

typedef enum gy_family {
#define GY_X(name, text) GY_FAMILY_##name,
    GY_FAMILY_MAP(GY_X)
#undef GY_X
        GY_FAMILY_COUNT
} gy_family;

const char *gy_family_name(gy_family family);

/* How good the figures of a family are. */
typedef struct gy_quality {
    uint32_t figures;  /* 0: none were measured */
    uint32_t samples;  /* behind the figure that has the fewest */
    double mad, worst; /* median absolute deviation over median: the median of the figures, and the largest */
} gy_quality;

/* One thing that has to be the same for measured figures to hold: "driver", "580.65.06". */
typedef struct gy_fact {
    const char *name, *value;
} gy_fact;

/* The ports by which one computer reaches others, once it is joined with them. No schedule for itself depends on it. */
typedef struct gy_uplink {
    gy_ticks latency;
    int64_t rate; /* bytes per second of a port, each way; 0: the file says nothing of a network */
    gantry_ports ports;
} gy_uplink;

typedef struct gy_calibration {
    bool measured; /* the machine has figures that were measured; false: facts of a detected machine, in no file */
    const gy_fact *fact;
    uint32_t facts;
    gy_quality quality[GY_FAMILY_COUNT];
} gy_calibration;

const char *gy_ports_name(int ports); /* "host", ..., by gantry_ports */

struct gantry_machine {
    atomic_uint references;
    gy_arena arena;
    const char *name;
    const char *source; /* where the numbers come from; NULL: not said */
    const char **note;  /* remarks for people, one line each */
    gy_memory *memory;  /* [0] is the host memory */
    gy_device *device;  /* host_only ones come last */
    gy_resource *resource;
    gy_route *route; /* memories x memories, row = from; use gy_machine_route */
    const gy_collective_table *table;
    const gy_kernel_table *kernel;
    uint32_t tables, kernels;
    gy_calibration calibration;
    gy_uplink network;
    uint32_t notes, memories, devices, resources;
    bool contention;  /* false: flows do not share and copy engines do not queue */
    bool workers;     /* GPUs carry starts out by themselves: made by gy_machine_for_workers; in no file */
    gy_ticks launch;  /* `launch_us` of the model: that of devices which give none */
    gy_ticks issue;   /* time of the host to give out each wait of work that goes over several GPUs; sim.h */
    gy_ticks submit;  /* time of the host to give out each op that is replayed in streams; sim.h */
    gy_ticks start;   /* time of a start beyond its ops: until the first begins, and until the last's end is seen */
    gy_ticks another; /* so much longer for each GPU beyond the first, where one graph goes over several */
    gy_ticks edge; /* from the end of an op to the beginning of one of another GPU behind it, in one graph over both */
    gy_ticks gate; /* the same by a gate, where each GPU has a graph of its own; 0: neither is known */
    gy_ticks when; /* of a node with `when` on a GPU, beyond its work; 0: not known, */
    gy_ticks left_out; /* and where it is left out */
    /* Nodes of one graph x devices: so many times what the model says they take, as was measured (scheduler/guided.h);
     * NULL: nothing was. In no file. */
    const double *pace;
    uint32_t paces; /* nodes */
};

/* The machine as it is where GPUs carry starts out by themselves (replay mode "device"): an op takes a turn of a worker
 * in place of a launch, workers of a GPU are its lanes, and they tell each other of ends, and copy, without the host.
 * NULL: out of memory. */
gantry_machine *gy_machine_for_workers(const gantry_machine *from);
/* The machine as a schedule for launches is simulated with where workers carry out some of its ops: a start takes what
 * one by workers does, and the host gives out nothing, since that is in the durations then. NULL: out of memory. */
gantry_machine *gy_machine_beside_workers(const gantry_machine *from);
/* The machine as if that were not known. NULL: out of memory. */
gantry_machine *gy_machine_without_workers(const gantry_machine *from);
/* True if what workers take was measured on all GPUs, of which there is one. That machine says so of none. */
bool gy_machine_knows_workers(const gantry_machine *m);
/* An op that takes `launched` on the GPU, carried out by workers. */
gy_ticks gy_worker_time(const gy_device *d, gy_ticks launched);
/* The same of formulas, with so much of gy_formula_work: no less than these take by workers. */
gy_ticks gy_worker_formula_time(const gy_device *d, gantry_dtype dtype, double work, gy_ticks launched);

/* Another owner; returns the same object. Each owner calls gantry_machine_free. NULL gives NULL. */
gantry_machine *gy_machine_ref(const gantry_machine *m);

/* Index by id; GY_MACHINE_NONE if there is none. */
uint32_t gy_machine_find_memory(const gantry_machine *m, const char *id);
uint32_t gy_machine_find_device(const gantry_machine *m, const char *id);
/* Adds "gpu0, gpu1, ..., cpu": all of a few, or the first, second and last. */
void gy_machine_list_devices(gy_text *to, const gantry_machine *m);
/* How many processes it takes to have all memories: 1 for one computer. Memory 0 has rank 0, and each other rank has a
 * device that is not host_only. */
uint32_t gy_machine_ranks(const gantry_machine *m);
static inline uint32_t gy_device_rank(const gantry_machine *m, uint32_t device)
{
    return m->memory[m->device[device].memory].rank;
}
/* Devices that are not host_only: they are devices 0 .. n-1. Never 0. */
uint32_t gy_machine_workers(const gantry_machine *m);
/* Devices that a count of devices counts (gantry_machine_select): a CPU beside GPUs is none. */
uint32_t gy_machine_counted(const gantry_machine *m);
/* GFLOP/s for a dtype: the figure given; else bf16's for f8e4m3, and f32's for the types it can stand in for (f64: half
 * of f32's); 0 if the file gives nothing to go by: arithmetic is then no limit. */
double gy_device_gflops(const gy_device *d, gantry_dtype dtype);

/* Of `formulas`: all but f64 is calculated in f32 or in whole numbers. 0: not known. */
static inline double gy_formula_gflops(const double formulas[GANTRY_DTYPE_COUNT], gantry_dtype dtype)
{
    return formulas[dtype] > 0 || dtype == GANTRY_F64 ? formulas[dtype] : formulas[GANTRY_F32];
}

/* The time that an op of a node with `when` takes on the device beyond its work, and where it is left out. Launched, as
 * was measured of the machine, else as what asks and a conditional node of a graph took on an H200, in a chain of
 * kernels of which each takes 0.7 us. Workers look at the flag when what they wait for is over, as part of their turn,
 * which is all that is left where they find 0. */
#define GY_WHEN_US          9
#define GY_WHEN_LEFT_OUT_US 5
static inline gy_ticks gy_device_when(const gantry_machine *m, uint32_t device, bool runs)
{
    gy_ticks measured = runs ? m->when : m->left_out;
    if (!m->device[device].gpu)
        return 0;
    if (m->workers)
        return runs ? 0 : m->device[device].launch;
    return measured ? measured : gy_ticks_from_us(runs ? GY_WHEN_US : GY_WHEN_LEFT_OUT_US);
}

/* How long it takes until an op on `b` that waited for one on `a` begins: another device, or another engine of the same
 * (`engines`: one of the two is a copy, the other is not). Work in queues of one engine follows without. */
static inline gy_ticks gy_device_signal(const gy_device *a, const gy_device *b, bool engines)
{
    return a == b && !engines ? 0 : a->signal > b->signal ? a->signal : b->signal;
}
/* The same for rows that were made in a memory, are brought to another, and are used there: both together. */
gy_ticks gy_machine_signals(const gantry_machine *m, uint32_t from, uint32_t to);

/* Of an op that takes `duration` on the device, what others on it may overlap with: the cost of launching one that is
 * hardly more than its launch, where the device is a GPU with several lanes; else 0. */
static inline gy_ticks gy_device_overlap(const gy_device *d, gy_ticks duration)
{
    gy_ticks launch = duration < d->launch ? duration : d->launch;
    return d->gpu && d->lanes > 1 && duration <= 2 * d->launch ? launch : 0;
}

enum { GY_WHOLE_DEVICE = 1000 }; /* thousandths */

/* How long an op that leaves `spare` thousandths of the device keeps others from computing there: a GPU with several
 * lanes carries out others beside it, so that it takes the device for a part of its duration. */
static inline gy_ticks gy_device_hold(const gy_device *d, gy_ticks duration, uint32_t spare)
{
    if (!spare || !d->gpu || d->lanes < 2 || duration >= GY_TICKS_MAX)
        return duration;
    gy_ticks whole = GY_WHOLE_DEVICE, used = whole - (gy_ticks)spare;
    gy_ticks hold = duration / whole * used + duration % whole * used / whole;
    return hold || !duration ? hold : 1;
}

/* Never NULL; kind NONE if there is none. Machines that pass the reader have a route between every two memories. */
const gy_route *gy_machine_route(const gantry_machine *m, uint32_t from, uint32_t to);
/* The latency phase: the time of 0 bytes. RELAY and STAGED: the sum of the hops. NONE: GY_TICKS_MAX. */
gy_ticks gy_route_latency(const gy_route *r);
/* Alone on the machine. RELAY and STAGED: the sum of the hops. NONE: GY_TICKS_MAX. Rounded up to a picosecond. */
gy_ticks gy_route_time(const gantry_machine *m, const gy_route *r, int64_t bytes);
/* Copies along one route that a GPU at one of its ends carries out as a batch: kernels of it read and write the rows of
 * so many at a time in place, also in memories of others. The time of their launches; behind them all bytes go as those
 * of one copy. Over a network they are one message, without a launch, where each has GY_MESSAGE_SMALL bytes at most.
 * GY_TICKS_MAX: they cannot, as the device is no GPU, the route is not DIRECT between two memories, or host memory is
 * not page-locked. */
enum { GY_COPIES_AT_ONCE = 64, GY_MESSAGE_SMALL = 8 << 10 };
gy_ticks gy_copies_launch(const gantry_machine *m, const gy_route *r, uint32_t device, uint32_t copies);
/* The whole of it, alone on the machine. */
gy_ticks gy_copies_time(const gantry_machine *m, const gy_route *r, uint32_t device, uint32_t copies, int64_t bytes);
/* Bytes per second of the flow phase when alone, for that size: bytes / (time - latency), rounded up; from 1 to
 * GY_RATE_MAX (also when the flow takes no time). NONE: 0. */
int64_t gy_route_rate(const gy_route *r, int64_t bytes);

/* The time of so many bytes in a list of points (at least two), as of a DIRECT route. */
gy_ticks gy_points_time(const gy_point *point, uint32_t points, int64_t bytes);
/* The table for a collective of these devices, or NULL. */
const gy_collective_table *gy_machine_table(const gantry_machine *m, gantry_collective collective,
                                            gy_algorithm algorithm, const char *kind, uint32_t ranks);

/* The table of that kernel for all arguments, or NULL. */
const gy_kernel_table *gy_machine_kernel(const gantry_machine *m, const char *kernel, gantry_dtype dtype,
                                         const char *kind);
/* The time of that kernel with exactly these arguments, or NULL. */
const gy_kernel_table *gy_machine_case(const gantry_machine *m, const char *kernel, gantry_dtype dtype,
                                       const char *kind, const char *arguments);
/* True if the table, which is one for all arguments, was made of times for exact ones: each point has the work of one,
 * or about that. */
bool gy_kernel_of_cases(const gantry_machine *m, const gy_kernel_table *table);
/*
 * The time of so much work: on the line that joins two points; below the first on the line from `launch` at no work
 * (the first time where that is shorter); beyond the last at the rate of the last. Rounded up to a picosecond.
 *
 * Lines, not powers: a launch and a rate make a line, so that is what a curve is where points are dense; and whole
 * numbers give the same ticks with every compiler and C library, which log and exp of libm do not.
 */
gy_ticks gy_kernel_time(const gy_kernel_table *t, double work, gy_ticks launch);
/* So many times its bytes is the work of a node whose bytes lie together in pieces of so many only: on the line between
 * two points by places a byte, 1 / contiguous, as each place costs its own; before the first and beyond the last as
 * these. 1 where nothing is known, of the table or the node (0). */
double gy_kernel_strided(const gy_kernel_table *t, double contiguous);
/* True if the launches of some kernel take more scratch than its nodes say. */
bool gy_machine_has_workspace(const gantry_machine *m);
/* The part of a makespan that a plan can change: all but what the host takes before anything begins. */
static inline gy_ticks gy_machine_after_start(const gantry_machine *m, gy_ticks makespan)
{
    return makespan > m->start ? makespan - m->start : 0;
}

/* Thousandths of the device that an op of so much work takes: that of the first point below it, that of the last beyond
 * it. Between two points it is such that what the op takes of the device, its time multiplied by its share, is on the
 * line that joins theirs, as its time is. The share itself is not: of a matrix product it grows with the square of a
 * side up to all of the device, and work with the cube. */
uint32_t gy_kernel_share(const gy_kernel_table *t, double work);
/* The time that one more op of so much work adds to a batch, at least the time of the first point; GY_TICKS_MAX:
 * nothing is known of that, or the work is more than that of the last point. */
gy_ticks gy_kernel_batched(const gy_kernel_table *t, double work);

/**
 * The machine in the JSON object `at->value` (docs/machine-format.md). Errors: GANTRY_E_MACHINE with the pointer of
 * the mistake; the caller, who has the text, adds file, line and column.
 */
gantry_status gy_machine_read(gantry_machine **out, const gy_json_at *at, gantry_error *err);
/* gantry_machine_load of a file that a graph names: beneath `folder`, and of some MiB at most (gy_file_read_in). */
gantry_status gy_machine_load_in(gantry_machine **machine, const char *path, const char *folder, gantry_error *err);
/* The normal form as text, all lines but the first indented by `indent` spaces, no newline at the end. */
void gy_machine_print(gy_text *to, const gantry_machine *m, int indent);

#endif
