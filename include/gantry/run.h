/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file gantry/run.h
 * @brief Carrying a schedule out, again and again.
 *
 * Between gantry_run_new and gantry_run_free nothing is allocated or loaded in flight. An input is bound once and read
 * at every start; an output may be bound, else the run keeps it and gantry_run_output shows it.
 */
#ifndef GANTRY_RUN_H
#define GANTRY_RUN_H

#include <gantry/schedule.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gantry_run gantry_run;

typedef struct gantry_run_options {
    size_t struct_size;
    const char *backend;  /* "host", "sim", "auto"; NULL: auto */
    int32_t check;        /* 1: checking mode: one op at a time in a random legal order, guarded memory, poison;
                             functions are called two to four times a node */
    int32_t allow_code;   /* 1: kernels that name code may be compiled and loaded */
    uint64_t seed;        /* of the order in checking mode */
    double deadline_us;   /* 0: none beyond the watchdog's */
    int32_t record_trace; /* 1: times per op, for gantry_run_trace */
    int32_t reserved;
} gantry_run_options;
#define GANTRY_RUN_OPTIONS_INIT                                                                                        \
    {                                                                                                                  \
        sizeof(gantry_run_options), NULL, 0, 0, 0, 0, 0, 0                                                             \
    }

/** Builds everything that starts need. The schedule must have its graph (made from one, or attached). */
GANTRY_MUST_USE gantry_status gantry_run_new(gantry_run **run, gantry_schedule *schedule,
                                             const gantry_run_options *options, gantry_error *err);
/** Waits for what is running, then frees. */
GANTRY_API void gantry_run_free(gantry_run *run);

/** Binds host memory (C order, whole array, `bytes` exactly the buffer's) to an input, state, const or output buffer.
 *  Borrowed until it is bound to something else or the run is freed. An input that is also an output takes its input
 *  from here; bind its result with gantry_run_bind_output. Only while idle. */
GANTRY_MUST_USE gantry_status gantry_run_bind(gantry_run *run, gantry_buffer buffer, const void *host, uint64_t bytes,
                                              gantry_error *err);
GANTRY_MUST_USE gantry_status gantry_run_bind_output(gantry_run *run, gantry_buffer buffer, void *host, uint64_t bytes,
                                                     gantry_error *err);
/** Reads a .npy file (dtype and shape must match) or a raw file into memory of the run and binds that. */
GANTRY_MUST_USE gantry_status gantry_run_bind_file(gantry_run *run, gantry_buffer buffer, const char *path,
                                                   gantry_error *err);
/** Changes a dynamic scalar. Only while idle. */
GANTRY_MUST_USE gantry_status gantry_run_set_scalar(gantry_run *run, gantry_node node, const char *name, double value,
                                                    gantry_error *err);

/** Asynchronous: returns a ticket at once; blocks only at the schedule's in-flight limit. Returns an earlier failure.
 */
GANTRY_MUST_USE gantry_status gantry_run_start(gantry_run *run, uint64_t *ticket, gantry_error *err);
/** When it returns, outputs of that start are readable and bound inputs reusable. The first failure, with the node. */
GANTRY_MUST_USE gantry_status gantry_run_wait(gantry_run *run, uint64_t ticket, gantry_error *err);

/** The host memory of an output after a wait; borrowed until the next start. */
GANTRY_MUST_USE gantry_status gantry_run_output(gantry_run *run, gantry_buffer buffer, const void **host,
                                                uint64_t *bytes, gantry_error *err);
/** Writes an output: .npy by that ending, else raw. Under a temporary name, renamed when complete. */
GANTRY_MUST_USE gantry_status gantry_run_save(gantry_run *run, gantry_buffer buffer, const char *path,
                                              gantry_error *err);
/** xxh64 (seed 0) of the C-order bytes of an output. */
GANTRY_MUST_USE gantry_status gantry_run_hash(gantry_run *run, gantry_buffer buffer, uint64_t *hash, gantry_error *err);

typedef struct gantry_run_info {
    size_t struct_size;
    const char *backend, *replay;
    double predicted_us; /* makespan of the schedule */
    double last_us;      /* of the last start that was waited for; sim: the predicted time */
    uint64_t starts;
} gantry_run_info;
#define GANTRY_RUN_INFO_INIT                                                                                           \
    {                                                                                                                  \
        sizeof(gantry_run_info), NULL, NULL, 0, 0, 0                                                                   \
    }
GANTRY_MUST_USE gantry_status gantry_run_get_info(const gantry_run *run, gantry_run_info *info, gantry_error *err);
/** The last start as a Chrome trace, next to the prediction. `*text` is yours. Needs record_trace. */
GANTRY_MUST_USE gantry_status gantry_run_trace(const gantry_run *run, char **text, size_t *length, gantry_error *err);

/** The i-th back end and one line on whether it can be used here and why not; NULL past the last. */
GANTRY_API const char *gantry_backend_name(size_t i);
GANTRY_API const char *gantry_backend_summary(size_t i);

#ifdef __cplusplus
}
#endif
#endif /* GANTRY_RUN_H */
