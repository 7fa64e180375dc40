/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Figures that were measured on a machine: a back end in a module fills in plain numbers, which become a machine again
 * (calibrate.h). A figure is the median of its samples, with their median absolute deviation: one sample that something
 * else disturbed moves neither.
 */
#ifndef GY_MACHINE_MEASURED_H
#define GY_MACHINE_MEASURED_H

#include "base/vec.h"
#include "machine/machine.h"

/* Microseconds. */
typedef struct gy_figure {
    double us, mad_us;
    uint32_t samples; /* 0: not measured */
} gy_figure;

/* The median of `us`, whose order and contents this destroys. */
gy_figure gy_figure_of(double *us, uint32_t samples);

/* `work`: bytes of a copy, a collective (as in gy_collective_table) or a kernel; flops of a kernel measured by them. */
typedef struct gy_measured_point {
    double work;
    gy_figure time;
    uint32_t share; /* of kernels: thousandths of the device that one takes; 0: not measured */
} gy_measured_point;

typedef GY_VEC(gy_measured_point) gy_measured_points;

/* One copy, alone on the machine. Memories by index; the same twice: within a memory. Pairs without a direct route are
 * passed over: their bytes go by two copies. `partial`: these are sizes that happened to be copied, and others keep
 * their proportion to them; else they are all there is to know. */
typedef struct gy_measured_copy {
    uint32_t from, to;
    bool partial;
    gy_measured_points points;
    int64_t kernel_bytes; /* up to so many bytes a kernel was faster, and the points are its times; with `partial` not
                             known */
} gy_measured_copy;

/* Several copies at once, all of the same size, begun together: what bounds them together. `time` goes from the first
 * beginning to the last end. The next of a memory is the one behind it in the machine, the first beside the host's
 * after the last. Pairs without a direct route are left out. */
typedef enum gy_traffic_pattern {
    GY_TRAFFIC_OUT,      /* from the memory to all other GPUs */
    GY_TRAFFIC_IN,       /* from all other GPUs to the memory */
    GY_TRAFFIC_BOTH,     /* both directions between the memory and the next GPU's */
    GY_TRAFFIC_PAIRS,    /* every GPU to the next, all at once */
    GY_TRAFFIC_HOST_OUT, /* host memory to all GPUs */
    GY_TRAFFIC_HOST_IN,  /* all GPUs to host memory */
    GY_TRAFFIC_HOST_BOTH /* both at once */
} gy_traffic_pattern;

typedef struct gy_measured_traffic {
    gy_traffic_pattern what;
    uint32_t memory; /* the memory whose port is measured; GY_MACHINE_NONE where it is no single memory's */
    double bytes;    /* of all copies together */
    gy_figure time;
} gy_measured_traffic;

/* A kernel on devices of one kind. Times include the launch: what one takes when many follow each other in a graph.
 * With `arguments` it is one figure, of nodes with exactly these; then, or if `partial`, it says nothing of other works
 * than those of the points. */
typedef struct gy_measured_kernel {
    const char *name, *kind; /* of the manifest, of devices; borrowed from library and machine */
    const char *arguments;   /* borrowed, NULL: all */
    gantry_dtype dtype;
    bool by_flops; /* `work` of the points: flops, else bytes, as the manifest's costs say */
    bool partial;  /* these are works that happened to be carried out */
    gy_measured_points points;
    uint64_t scratch;           /* bytes that a launch took at most; 0: none, or not known */
    gy_measured_points batched; /* what one more adds to a batch (gy_kernel_table); empty: it was not measured */
    gy_measured_points strided; /* `work`: bytes that lie together, rising; the time of `strided_work` bytes of such */
    double strided_work;
} gy_measured_kernel;

typedef struct gy_measured_collective {
    gantry_collective collective;
    gy_algorithm algorithm;
    const char *kind; /* borrowed from the machine */
    uint32_t ranks;
    gy_measured_points points;
} gy_measured_collective;

/* An op that is launched, and the same by workers of a resident kernel. */
typedef struct gy_measured_pair {
    gy_figure launched, by_workers;
} gy_measured_pair;

/* As gy_worker_times, of the GPUs of a kind. */
typedef struct gy_measured_workers {
    const char *kind; /* borrowed from the machine */
    GY_VEC(gy_measured_pair) pairs;
    gy_figure change, start;
    double beside;
} gy_measured_workers;

/* Formulas of one element type on the GPUs of a kind, that compute more than they move. */
typedef struct gy_measured_formulas {
    const char *kind; /* borrowed from the machine */
    gantry_dtype dtype;
    double work; /* gy_formula_work */
    gy_figure launched, by_workers;
} gy_measured_formulas;

/* The times of giving work to a device, by device of the machine. */
typedef struct gy_measured_device {
    uint32_t device;
    gy_figure launch;       /* an empty kernel on a stream, one after another */
    gy_figure event;        /* record an event and let another stream wait for it */
    gy_figure graph_node;   /* one node of a graph that is a chain */
    gy_figure graph_launch; /* launching a graph of one node, and its end seen */
    gy_figure signal;       /* in a graph, from the end of an op to what waited for it elsewhere (machine.h) */
    double clock_mhz;       /* of the SMs while it worked; 0: unknown */
} gy_measured_device;

/* All of it. Zero-initialised is nothing. `fingerprint`: what has to be the same for the figures to hold, one line of
 * "name: value" each: driver, CUDA, devices, their clocks, ECC. gy_gpus_fingerprint (gpus.h) gives those that a later
 * detection is compared with; more may follow. Empty: that of the machine stays. */
typedef struct gy_measured {
    GY_VEC(gy_measured_copy) copies;
    GY_VEC(gy_measured_traffic) traffic;
    GY_VEC(gy_measured_kernel) kernels;
    GY_VEC(gy_measured_collective) collectives;
    GY_VEC(gy_measured_device) devices;
    GY_VEC(gy_measured_workers) workers;
    gy_text fingerprint;
    gy_text notes;        /* a line each: "not measured: WHAT: WHY" */
    gy_figure issue;      /* of one wait in a graph over several devices, by the host (gantry_machine.issue) */
    gy_figure edge, gate; /* from a kernel of a GPU to one of the next: in one graph, and by a gate (gantry_machine) */
    GY_VEC(gy_measured_formulas) formulas;
    gy_figure when, left_out; /* as those of gantry_machine */
    gy_figure another;        /* what each GPU beyond the first adds to a start that is one graph */
} gy_measured;

void gy_measured_free(gy_measured *m);

#endif
