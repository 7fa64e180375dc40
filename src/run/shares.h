/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The portion of a GPU that ops take (gy_kernel_table.share), found from a start in which they ran at the same time.
 *
 * An op that took `measured` and takes `alone` was carried out at alone / measured of its rate. While an op is slower
 * than alone its device is full: the portions of the ops that run there then, each times its rate, are 1. While none is
 * slower they are at most 1. Every stretch of time between two beginnings or ends says that once, and the portions that
 * ops of the same arguments have in common follow from all of them: by maximum likelihood, expectation maximisation
 * (Shepp and Vardi 1982, as tomographs find densities from rays), from the portions that the schedule was made with.
 */
#ifndef GY_RUN_SHARES_H
#define GY_RUN_SHARES_H

#include "run/backend.h"

/* An op that computes on a GPU. */
typedef struct gy_share_op {
    uint32_t device, group; /* group: GY_NONE where `fixed` is its portion */
    gy_op_time time;
    double alone_us; /* 0: not known: it counts as not slower */
    double fixed;
} gy_share_op;

/* Sets share[group] of `groups`, which has what they were taken for, and marks those it learned something of. false:
 * out of memory. Changes the order of the ops. */
bool gy_shares_fit(gy_share_op *op, size_t ops, double *share, bool *found, uint32_t groups);

#endif
