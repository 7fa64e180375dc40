/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two halves of the reader: read.c (what there is) and read_routes.c (how bytes move). */
#ifndef GY_MACHINE_READ_H
#define GY_MACHINE_READ_H

#include "base/vec.h"
#include "machine/build.h"

/* The machine being filled, and what its errors are. */
typedef struct gy_machine_reader {
    gantry_machine *m;
    gantry_error *err;
} gy_machine_reader;

#define GY_COUNT(array) (sizeof(array) / sizeof *(array))
#define GY_MOST_GBS     1e6  /* GB/s, the limit of what a file may say: GY_RATE_MAX */
#define GY_LEAST_GBS    1e-9 /* one byte per second */
#define GY_MOST_US      1e9  /* so that microseconds in a double hold every picosecond */

/* The elements of `list` must be objects: refuses another kind and unknown keys. `what`: "a memory". */
gantry_status gy_machine_object(gantry_error *err, const gy_json_at *at, const char *what, const char *const *keys,
                                size_t count);
/* The array at `key`; absent: an empty one, or an error if `required` says what is missing. */
gantry_status gy_machine_array(gantry_error *err, const gy_json_at *at, const char *key, const char *required,
                               gy_json_at *list);
/* An id: a letter, then letters, digits, '.', '_' or '-'. */
gantry_status gy_machine_id(gantry_error *err, const gy_json_at *at, const char *id);

/* Reports an unknown memory, with a near miss. */
gantry_status gy_machine_no_memory(const gy_machine_reader *r, const gy_json_at *at, const char *id);

typedef GY_VEC(gy_point) gy_point_list;
/* The measured [work, us] pairs in an array: replaces those in `to`. `unit` of the work: "bytes". */
gantry_status gy_machine_read_pairs(gantry_error *err, const gy_json_at *list, const char *unit, gy_point_list *to);
/* The same for bytes; at least two, the last two rising. `instead`: what the message for less than two says behind
 * "give at least two". */
gantry_status gy_machine_read_points(gantry_error *err, const gy_json_at *list, const char *instead, gy_point_list *to);
/* The number of the name at `key`; `name_of` gives the names of first .. last. */
gantry_status gy_machine_read_name(gy_machine_reader *r, const gy_json_at *at, const char *key, int first, int last,
                                   const char *(*name_of)(int), int *out);
/* The kind of a device at "kind". */
gantry_status gy_machine_read_kind(gy_machine_reader *r, const gy_json_at *at, const char **kind);

/* "resources" of the machine object: fills m->resource. */
gantry_status gy_machine_read_resources(gy_machine_reader *r, const gy_json_at *resources);
/* "routes", once memories and resources are known. */
gantry_status gy_machine_read_routes(gy_machine_reader *r, const gy_json_at *root);

/* One of "collectives" or "kernels", once devices are known; `points` is room for its points. */
typedef gantry_status gy_table_reader(gy_machine_reader *r, const gy_json_at *at, gy_point_list *points);
gy_table_reader gy_machine_read_collective, gy_machine_read_kernel;
/* The optional GFLOP/s by element type under `key`. */
gantry_status gy_machine_read_gflops(gy_machine_reader *r, const gy_json_at *at, const char *key, double *gflops);
/* The optional "strided" of a kernel, all else of which is known (strided.c). */
gantry_status gy_machine_read_strided(gy_machine_reader *r, const gy_json_at *at, gy_kernel_table *to);
/* The optional "batched" of a kernel (batched.c). */
gantry_status gy_machine_read_batched(gy_machine_reader *r, const gy_json_at *at, const char *unit,
                                      gy_kernel_table *to);
/* All in the list at `key`. */
gantry_status gy_machine_read_tables(gy_machine_reader *r, const gy_json_at *root, const char *key,
                                     gy_table_reader *read);
/* The optional "workers" of a device (worker_times.c). */
gantry_status gy_machine_read_workers(gy_machine_reader *r, const gy_json_at *at, gy_device *d);
/* "network" (network.c). */
gantry_status gy_machine_read_network(gy_machine_reader *r, const gy_json_at *root);
/* "calibration". */
gantry_status gy_machine_read_calibration(gy_machine_reader *r, const gy_json_at *root);

#endif
