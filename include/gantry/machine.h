/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file gantry/machine.h
 * @brief The machine: memories, devices attached to them, and routes that bytes can take. Measured, read or invented.
 *
 * Units in files and here: bytes, microseconds, GB/s (10^9 bytes), GFLOP/s. Inside, times are whole picoseconds.
 */
#ifndef GANTRY_MACHINE_H
#define GANTRY_MACHINE_H

#include <gantry/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gantry_machine gantry_machine;

/** Detects this computer through hwloc; GPU facts come from the back ends that are there. `err->text` is left alone on
 * success. `options` is reserved and NULL. */
GANTRY_MUST_USE gantry_status gantry_machine_detect(gantry_machine **machine, const void *options, gantry_error *err);
/** `devices` >= 1 virtual devices on this computer's CPU, each with a memory of its own. */
GANTRY_MUST_USE gantry_status gantry_machine_virtual(gantry_machine **machine, int devices, gantry_error *err);
/** Reads a machine file (docs/machine-format.md), or a text of that format. `path` "-" is standard input; `name` stands
 * in messages for the file name, and may be NULL. E_SYNTAX, E_MACHINE: with line and place of what is wrong. */
GANTRY_MUST_USE gantry_status gantry_machine_load(gantry_machine **machine, const char *path, gantry_error *err);
GANTRY_MUST_USE gantry_status gantry_machine_parse(gantry_machine **machine, const char *text, size_t length,
                                                   const char *name, gantry_error *err);
/** JSON that gantry_machine_parse reads back to the same bytes. `*text` is yours (gantry_free). */
GANTRY_MUST_USE gantry_status gantry_machine_json(const gantry_machine *machine, char **text, size_t *length,
                                                  gantry_error *err);
/** The same into a file, written under a temporary name and renamed. */
GANTRY_MUST_USE gantry_status gantry_machine_save(const gantry_machine *machine, const char *path, gantry_error *err);
/** A machine with some of the devices: "4" is the first four, "id:0,2" or "id:gpu0,gpu2" those by index or id.
 * A CPU device that shares the host memory is kept beside GPUs; one for host calls takes other nodes, too, where it is
 * named. */
GANTRY_MUST_USE gantry_status gantry_machine_select(gantry_machine **machine, const gantry_machine *from,
                                                    const char *devices, gantry_error *err);

/** Ports of a computer to its network: X(constant, name in files). */
#define GANTRY_PORTS_MAP(X)                                                                                            \
    X(HOST, host)     /* one port, of its host memory; what GPUs have goes through that */                             \
    X(SHARED, shared) /* one port, which reads and writes all of its memories */                                       \
    X(EACH, each)     /* one port for each memory */
typedef enum gantry_ports {
#define GANTRY_X(name, text) GANTRY_PORTS_##name,
    GANTRY_PORTS_MAP(GANTRY_X)
#undef GANTRY_X
} gantry_ports;

/** The network between computers that are joined: full duplex, so each port sends and gets at this rate at once. */
typedef struct gantry_join_options {
    size_t struct_size;
    double latency_us;  /* of one message, >= 0 */
    double gbs;         /* 10^9 bytes per second of a port, each way; 0: what each machine's file says (`network`) */
    gantry_ports ports; /* of each computer, with gbs */
} gantry_join_options;
#define GANTRY_JOIN_OPTIONS_INIT                                                                                       \
    {                                                                                                                  \
        sizeof(gantry_join_options), 0, 0, GANTRY_PORTS_HOST                                                           \
    }
/** One machine of several: the ranks of a node follow those of the node before it, and ids begin with "r<rank>.".
 * Memories of two nodes reach each other over the network, by the ports that both have: the larger latency counts, and
 * the lower rate. Measured times of collectives are left out unless there is one node; of kernels, those of the first
 * node that has such. `nodes` are yours. E_INVALID: a node was joined already, the nodes differ in `contention`, an
 * option makes no sense, or of several nodes neither options nor files say what the network is. */
GANTRY_MUST_USE gantry_status gantry_machine_join(gantry_machine **machine, const gantry_machine *const *nodes,
                                                  size_t count, const gantry_join_options *options, gantry_error *err);
/** The same machine with its devices dealt out to so many processes, in order: the schedule stays as it is, and says
 * which process carries out what. E_INVALID: there are fewer devices than `ranks`, or two of different ranks share a
 * memory. */
GANTRY_MUST_USE gantry_status gantry_machine_spread(gantry_machine **machine, const gantry_machine *from, size_t ranks,
                                                    gantry_error *err);
/** 1: the machine has figures that were measured, and says so (`calibration` in its file); 0: it has none. */
GANTRY_API int gantry_machine_has_calibration(const gantry_machine *machine);
/** Compares the computer that `machine` was calibrated on, by what its file says, with `here`, a machine as detected
 * now, to tell if measured figures still hold: driver, CUDA, devices, ECC. Facts that only one of the two has are
 * left out. `*text` is one line, yours (gantry_free); NULL where nothing speaks against the figures, or none were
 * measured. */
GANTRY_MUST_USE gantry_status gantry_machine_stale(const gantry_machine *machine, const gantry_machine *here,
                                                   char **text, gantry_error *err);
/** Says what is done next: step `done` of `of` (0: not known yet). Called by the thread that called. */
typedef void (*gantry_progress_fn)(void *user, const char *what, size_t done, size_t of);

typedef struct gantry_calibrate_options {
    size_t struct_size;
    double seconds;              /* for all of it, about; 0: 45. With less there are fewer samples, not fewer figures,
                                    but of collectives that need no NCCL */
    double patience;             /* a device that has not ended a step for so many seconds is taken for hung; 0: 10 */
    gantry_progress_fn progress; /* NULL: none */
    void *user;
} gantry_calibrate_options;
#define GANTRY_CALIBRATE_OPTIONS_INIT                                                                                  \
    {                                                                                                                  \
        sizeof(gantry_calibrate_options), 0, 0, NULL, NULL                                                             \
    }
/** Measures the GPUs of this computer: copies, what copies share, what giving work costs, kernels, collectives. `from`
 * is the machine whose figures are replaced, whose devices are GPUs of this computer: as detected (NULL: detect it), or
 * with some of them (gantry_machine_select). Nothing else should use these GPUs meanwhile; no setting of theirs is
 * changed. `options` may be NULL. E_DEVICE: there is nothing that can measure, or a call of the driver failed.
 * E_TIMEOUT: a device hangs. */
GANTRY_MUST_USE gantry_status gantry_machine_calibrate(gantry_machine **machine, const gantry_machine *from,
                                                       const gantry_calibrate_options *options, gantry_error *err);
/** The machine `here`, as it was detected (gantry_machine_detect), with what this user's cache knows of computers like
 * it ($XDG_CACHE_HOME/gantry or ~/.cache/gantry): the calibration that gantry_machine_keep kept, and times that
 * gantry_run_keep did. How much of its memories others hold is as in `here`. `*machine` is yours: `here` once more
 * where nothing is known, or it has no GPUs, or GANTRY_MACHINE_CACHE is "off". `*text` is one line on what was found
 * or why it is not used, yours (gantry_free); NULL where there was nothing. A cache that is damaged or cannot be read
 * is no error. */
GANTRY_MUST_USE gantry_status gantry_machine_recall(gantry_machine **machine, const gantry_machine *here, char **text,
                                                    gantry_error *err);
/** Keeps a calibration of all of this computer, which is `here` as detected, in place of what the cache knew of it.
 * E_INVALID: it has other devices, or no measured figures; E_UNSUPPORTED: `here` has no GPUs, or the cache is off;
 * E_IO: it cannot be written. */
GANTRY_MUST_USE gantry_status gantry_machine_keep(const gantry_machine *machine, const gantry_machine *here,
                                                  gantry_error *err);
GANTRY_API void gantry_machine_free(gantry_machine *machine);

/** The name that its file gives it; borrowed. */
GANTRY_API const char *gantry_machine_name(const gantry_machine *machine);
GANTRY_API size_t gantry_machine_device_count(const gantry_machine *machine);
/** Devices that nodes are placed on, which come first: all but those whose use is "host". Expressions of a graph call
 * that number `devices`. */
GANTRY_API size_t gantry_machine_worker_count(const gantry_machine *machine);
/** Processes over which the devices are spread: 1 for a single computer. */
GANTRY_API size_t gantry_machine_rank_count(const gantry_machine *machine);
GANTRY_API size_t gantry_machine_memory_count(const gantry_machine *machine);

/** One device. Pointers are borrowed from the machine. */
typedef struct gantry_device_info {
    size_t struct_size;
    const char *id, *kind; /* "gpu0"; "h200": devices of one kind take the same times */
    int32_t gpu;           /* 1: an accelerator; 0: CPU, runs host versions */
    int32_t memory;        /* index of the memory it works in */
    int32_t lanes;         /* queues for computing */
    int32_t copy_engines;  /* copies that it can make at once */
    double bandwidth_gbs;  /* of the memory it works in */
    double launch_us;      /* what giving it one op takes */
    double signal_us; /* from the end of an op to what waited for it on another device, or on another engine of it */
    int32_t rank;     /* of its memory */
    int32_t threads;  /* that a CPU computes with; 0: not said, see gantry_run_options */
} gantry_device_info;
#define GANTRY_DEVICE_INFO_INIT                                                                                        \
    {                                                                                                                  \
        sizeof(gantry_device_info), NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0                                              \
    }
/** E_INVALID: `device` is not below gantry_machine_device_count. */
GANTRY_MUST_USE gantry_status gantry_machine_device(const gantry_machine *machine, size_t device,
                                                    gantry_device_info *info, gantry_error *err);

/** One memory. `id` is borrowed from the machine. */
typedef struct gantry_memory_info {
    size_t struct_size;
    const char *id;
    uint64_t capacity, reserved; /* bytes; `reserved` of these are taken by contexts, libraries and the like */
    int64_t rank;                /* the process that has it, from 0 */
} gantry_memory_info;
#define GANTRY_MEMORY_INFO_INIT                                                                                        \
    {                                                                                                                  \
        sizeof(gantry_memory_info), NULL, 0, 0, 0                                                                      \
    }
/** E_INVALID: `memory` is not below gantry_machine_memory_count. */
GANTRY_MUST_USE gantry_status gantry_machine_memory(const gantry_machine *machine, size_t memory,
                                                    gantry_memory_info *info, gantry_error *err);

/** Predicted time of a copy alone on the machine, in us; negative if there is no route. Same memory: a local copy. */
GANTRY_API double gantry_machine_copy_us(const gantry_machine *machine, size_t from, size_t to, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif /* GANTRY_MACHINE_H */
