/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The contents of a foreign file, in one form for all formats: tasks, items of data that one task writes and others
 * read, and plain order. Readers (stg.c, dnn.c, dot.c, wfcommons*.c) fill it; build.c makes a graph of it and machine.c
 * a machine. Everything here is by index; strings live in the arena.
 */
#ifndef GY_IMPORT_IMPORT_H
#define GY_IMPORT_IMPORT_H

#include "base/arena.h"
#include "base/json.h"
#include "base/vec.h"
#include <gantry/import.h>

#define GY_IMPORT_NONE UINT32_MAX
/* Sums of times, in us (11 days): schedules count whole picoseconds in 63 bits, and a node waits for many. */
#define GY_IMPORT_MOST_US    1e12
#define GY_IMPORT_MOST_BYTES 4e18

typedef struct gy_import_task {
    const char *id;
    const char *pointer; /* place in a JSON file, or NULL */
    int line;            /* in another file, or 0 */
    double time, cpu;    /* in units of time of the file, everywhere or on accelerators, and on CPUs; < 0: not said */
    double flops;        /* where no time is said */
    int64_t scratch;     /* bytes while it runs */
    int64_t resident;    /* bytes that it keeps in the memory of its device all the time */
    uint32_t with;       /* must run on the device of this task; GY_IMPORT_NONE */
    bool cpu_only;
} gy_import_task;

typedef struct gy_import_item {
    const char *name;
    uint32_t from; /* the task that writes it; GY_IMPORT_NONE: there from the start */
    double amount; /* > 0: bytes, or the time a transfer takes, see in_bytes */
} gy_import_item;

typedef struct gy_import_read {
    uint32_t task, item;
} gy_import_read;

typedef struct gy_import_order {
    uint32_t before, after;
} gy_import_order;

typedef struct gy_import {
    gantry_import_options options;
    const char *source; /* stands for the file in messages */
    const char *path;   /* NULL: standard input */
    const char *text;
    size_t length;
    bool has_pointers; /* pointers of errors are into `text` */
    gy_arena arena;
    const char *name; /* of the graph */
    GY_VEC(gy_import_task) tasks;
    GY_VEC(gy_import_item) items;
    GY_VEC(gy_import_read) reads;
    GY_VEC(gy_import_order) orders;
    bool in_bytes;       /* amounts of items are bytes, not times */
    bool by_kind;        /* tasks have times of their own on accelerators and CPUs */
    bool in_flops;       /* tasks say operations, not times */
    bool unit_is_second; /* what the file counts in seconds may be made shorter: transfers then as well */
    double unit_us;      /* 1 unit of time */
    uint32_t processors; /* identical ones; 0: none are said */
    uint32_t accelerators, cpus;
    uint64_t capacity; /* bytes of the memory of an accelerator */
    /* Set by gy_import_measure. */
    double bytes_per_amount;
    int64_t link_rate; /* bytes per second that make transfers take the time they should */
    int64_t bytes;     /* of all items, residents and scratches */
} gy_import;

/* Readers: E_GRAPH with a place, or E_SYNTAX where JSON is not well-formed. */
gantry_status gy_import_stg(gy_import *in, gantry_error *err);
gantry_status gy_import_dnn(gy_import *in, gantry_error *err);
gantry_status gy_import_dot(gy_import *in, gantry_error *err);
gantry_status gy_import_wfcommons(gy_import *in, gantry_error *err);

/* A task with nothing but a name (copied) and time 0; its index is tasks.count - 1. NULL: out of memory. */
gy_import_task *gy_import_add_task(gy_import *in, const char *id);
/* Data of one task for another: an item named "from->to", or only order where `amount` is 0. false: out of memory. */
bool gy_import_add_edge(gy_import *in, uint32_t from, uint32_t to, double amount);
/* An item for whoever reads it; its index is items.count - 1. false: out of memory. */
bool gy_import_add_item(gy_import *in, const char *name, uint32_t from, double amount);
bool gy_import_add_read(gy_import *in, uint32_t task, uint32_t item);
bool gy_import_add_order(gy_import *in, uint32_t before, uint32_t after);
/* A key for gy_map. */
static inline uint64_t gy_import_pair(uint32_t a, uint32_t b)
{
    return (uint64_t)a << 32 | b;
}

/* E_GRAPH at the place of a task. */
gantry_status gy_import_fail(const gy_import *in, uint32_t task, gantry_error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The pointer of `at` in the arena; NULL: out of memory. */
const char *gy_import_pointer(gy_import *in, const gy_json_at *at);
/* The array that is member `key` of the object `at`. */
gantry_status gy_import_array(const gy_json_at *at, const char *key, gy_json_at *array, gantry_error *err);
/* That the value is an object; `what` as in "task". */
gantry_status gy_import_object(const gy_json_at *at, const char *what, gantry_error *err);

/* graphviz.c: the graph in DOT as graphviz's JSON; free with gy_free. E_UNSUPPORTED without graphviz, E_TIMEOUT if it
 * takes longer than `seconds`: then it is ended. */
#define GY_GRAPHVIZ_SECONDS 120
gantry_status gy_import_graphviz(const char *text, size_t length, int seconds, char **json, size_t *json_length,
                                 gantry_error *err);

/* order.c: the tasks so that each comes after those it depends on, and otherwise in the order of the file. `sorted` has
 * room for all. E_GRAPH names a circle. */
gantry_status gy_import_sort(const gy_import *in, uint32_t *sorted, gantry_error *err);

/* machine.c: what items are in bytes, and that nothing is too large. */
gantry_status gy_import_measure(gy_import *in, gantry_error *err);
static inline int64_t gy_import_bytes(const gy_import *in, const gy_import_item *item)
{
    return (int64_t)(item->amount * in->bytes_per_amount + 0.5);
}
/* The machine as JSON; *json stays NULL if the file says nothing of one. It lives in the arena. */
gantry_status gy_import_machine(gy_import *in, const char **json, gantry_error *err);

/* build.c: an unchecked graph. NULL: out of memory; mistakes stick to the graph. */
gantry_graph *gy_import_build(gy_import *in, const uint32_t *sorted, const char *machine);

#endif
