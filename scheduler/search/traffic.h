/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Contention for search: a coarse account of transfers that keeps a decode O(tasks + dependencies). Uploads are queued
 * first, in the order of the tasks that read them, then what each task makes as soon as it ends, once per memory that
 * has a reader; what is fetched goes to host memory likewise. A transfer begins when the copy engine and all resources
 * of its route are free; it holds the engine for its solo time, and each resource for bytes / rate. Nothing goes into
 * gaps that were left. The simulator has the last word on what search finds.
 *
 * A *parcel* is what one task sends to its readers, or one region of a bound input. (Two outputs of one task that have
 * the same size are taken for one.)
 */
#ifndef GY_SCHEDULER_SEARCH_TRAFFIC_H
#define GY_SCHEDULER_SEARCH_TRAFFIC_H

#include "scheduler/plan/plan.h"

struct gy_model;

/* A resource of the machine, and the column of `hold` for its rate. */
typedef struct gy_toll {
    uint32_t resource, rate;
} gy_toll;

/* A direct copy. */
typedef struct gy_hop {
    uint32_t kind;            /* column of the table of transfer times */
    uint32_t engine, engines; /* range of the machine's copy engines: those of the device that copies */
    uint32_t toll, tolls;     /* range of gy_roads.toll */
} gy_hop;

typedef struct gy_road {
    uint32_t hops; /* 0: within a memory */
    gy_hop hop[2];
} gy_road;

/* A parcel for a task. */
typedef struct gy_send {
    uint32_t task, parcel;
} gy_send;

typedef struct gy_roads {
    uint32_t memories, engines, rates;
    uint32_t *memory; /* per device */
    gy_road *road;    /* memories x memories */
    gy_toll *toll;    /* of all hops */
    gy_ticks *hold;   /* sizes x rates: how long a resource is held */

    uint32_t parcels, inputs; /* the last `inputs` parcels are regions of bound inputs */
    uint32_t *size;           /* per parcel: row of the model's table */
    uint32_t *first_parcel;   /* per task: its parcels; tasks + 1 entries */
    gy_send *send;            /* as the model's succ */
    uint32_t *wanted;         /* as the model's pred: the entry of send */
    uint32_t most;            /* parcels of one task */
    size_t *upload_first;     /* tasks + 1 */
    uint32_t *upload;         /* parcels */
} gy_roads;

/* The times of one decode: until when resources and engines are busy, and when parcels arrive. */
typedef struct gy_traffic {
    gy_ticks *resource, *engine;
    gy_ticks *arrived;  /* per entry of send: in the memory of that reader, once its parcel has been sent */
    gy_ticks *uploaded; /* per entry of upload: likewise */
    /* Of what is being sent: where it has gone to already. Those with another stamp are of what was sent before. */
    struct gy_there {
        uint64_t stamp;
        gy_ticks time;
    } * there; /* parcels of a task, or inputs, x memories */
    uint64_t stamp;
} gy_traffic;

/* The model has its arcs, sizes and kinds; both may grow. NULL in the model if contention is off or nothing moves. */
gantry_status gy_roads_make(struct gy_model *m, gantry_error *err);
void gy_roads_free(gy_roads *roads);

gantry_status gy_traffic_init(gy_traffic *t, const struct gy_model *m, gantry_error *err);
void gy_traffic_free(gy_traffic *t);
/* A decode begins: everything is free. */
void gy_traffic_begin(gy_traffic *t, const struct gy_model *m);
/* When `size` bytes that are in `from` at `ready` are in `to`; holds what they need. */
gy_ticks gy_traffic_send(gy_traffic *t, const struct gy_model *m, uint32_t size, uint32_t from, uint32_t to,
                         gy_ticks ready);

#endif
