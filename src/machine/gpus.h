/* SPDX-License-Identifier: Apache-2.0 */
/**
 * GPUs as a driver reports them, and the machine that follows: plain numbers, so that a back end in a module can tell
 * them without this layer knowing of any driver.
 */
#ifndef GY_MACHINE_GPUS_H
#define GY_MACHINE_GPUS_H

#include "machine/machine.h"

typedef struct gy_gpu {
    char name[96];          /* "NVIDIA H200" */
    char bus[16];           /* "0000:06:00.0" */
    int ordinal;            /* the driver's number */
    int numa;               /* node; -1: unknown */
    int major, minor;       /* compute capability */
    uint64_t bytes, unused; /* of its memory: all, and those that were free */
    int sms, clock_khz;     /* 0: unknown, like the next two */
    int memory_khz, bus_bits;
    int copy_engines;            /* >= 0 */
    int ecc;                     /* of its memory: 1 off, 2 on; 0: unknown */
    char driver[32];             /* "580.65.06", of the computer: the same for all; empty: unknown */
    char cuda[16];               /* "13.0", what the driver can do at most; as `driver` */
    int nvlinks;                 /* that are up; 0: none, or unknown */
    double nvlinks_gbs, pci_gbs; /* nominal rates one way: of all its NVLinks, of its PCI link; 0: unknown */
} gy_gpu;

typedef struct gy_gpus {
    gy_gpu *at;
    uint8_t *peer; /* count x count, row = from: that GPU can address the memory of the other */
    uint32_t count;
    double *nvlink_gbs; /* count x count, row = from: nominal rate of the NVLinks between two, one way; 0: none. May be
                           NULL */
} gy_gpus;              /* zero-initialised is none */

void gy_gpus_free(gy_gpus *gpus);

/* This computer, with these GPUs: each a device with a memory, the CPU beside them in host memory for host calls.
 * Without any (count 0 or NULL): virtual devices on the CPU. */
gantry_status gy_machine_detect(gantry_machine **machine, const gy_gpus *gpus, gantry_error *err);

/* The facts that figures measured with these GPUs depend on, a line of "name: value" each: driver, CUDA, how many GPUs,
 * the name and ECC of each. Unknown ones are left out. Appends. */
void gy_gpus_fingerprint(gy_text *to, const gy_gpus *gpus);

/* The back end's own number of a device: its `ordinal`; of a GPU that has none its place among the GPUs of the machine,
 * from 0; of another device -1. */
int gy_device_ordinal(const gantry_machine *m, uint32_t device);
/* True if both are one GPU of a process. */
bool gy_device_same_gpu(const gantry_machine *m, uint32_t a, uint32_t b);

/* Peak GFLOP/s, by tensor cores where they take the type as it is, that follow from compute capability, SMs and clock;
 * bandwidth of the memory from its clock and bus. 0: unknown. */
double gy_gpu_gflops(const gy_gpu *gpu, gantry_dtype dtype);
double gy_gpu_gbs(const gy_gpu *gpu);

#endif
