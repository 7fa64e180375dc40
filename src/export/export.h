/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Inside export: the view of a schedule that all pictures and reports share, worked out once, and how numbers, names
 * and colours are written. Only the files of this folder see it.
 *
 * Pictures are text made with gy_text: its `failed` is looked at once, at the end. Numbers are written by integer
 * arithmetic, so that no locale gets into a file.
 */
#ifndef GY_EXPORT_EXPORT_H
#define GY_EXPORT_EXPORT_H

#include "schedule/memory_profile.h"
#include "schedule/schedule.h"

struct gy_fold;

/* ---- numbers and names (write.c) ---- */

#define GY_EXPORT_SHORT 48 /* room for any of the texts below */

/* "0 s", "850 ns", "12.3 us", "1.234 ms": `digits` significant digits, zeros at the end dropped. `micro` is "us" or
 * "µs". */
const char *gy_export_time(char *to, gy_ticks t, int digits, const char *micro);
/* "1,234,567" */
const char *gy_export_count(char *to, uint64_t n);
/* "396 GB/s" for bytes in a time; "-" where the time is 0. */
const char *gy_export_rate(char *to, uint64_t bytes, gy_ticks t);
/* At most so many decimals, halves away from 0, zeros at the end dropped: "-0.5", "12.25", "3". */
void gy_export_fixed(gy_text *to, double value, int decimals);
/* "83 %", "0.9 %", "-": part of whole. */
const char *gy_export_percent(char *to, uint64_t part, uint64_t whole);
/* Clean UTF-8 on one line: control characters become spaces, bytes that are no character become U+FFFD; more than
 * `most` characters are cut in the middle ("blur[1…99]"); most 0: never. Appends. */
void gy_export_name(gy_text *to, const char *name, size_t most);
/* A name inside a quoted string of DOT, cut likewise. */
void gy_export_dot_name(gy_text *to, const char *name, size_t most);
/* A name inside XML or HTML, cut likewise. */
void gy_export_xml_name(gy_text *to, const char *name, size_t most);
/* Characters of a clean text. */
size_t gy_export_length(const char *text);

/* ---- colours (palette.c) ---- */

/* A light fill and a dark line on white; text on the fill is GY_EXPORT_INK (contrast above 10:1). */
typedef struct gy_colour {
    const char *fill, *line;
} gy_colour;

#define GY_EXPORT_INK    "#1b1f24"
#define GY_EXPORT_GREY   "#6b7480"
#define GY_EXPORT_HOT    "#d1370b" /* the critical path */
#define GY_EXPORT_MEMORY ((gy_colour){ "#dde3ea", "#4a5a6a" })

/*
 * Nodes and ops fall into groups that share a colour: the node's name without index and number ("gemm" of "gemm[1,2]")
 * for what computes; one each for copies, collectives, fills, host calls and spills.
 */
enum {
    GY_GROUP_COPY,
    GY_GROUP_SPILL,
    GY_GROUP_COLLECTIVE,
    GY_GROUP_FILL,
    GY_GROUP_HOST,
    GY_GROUP_OTHER,
    GY_GROUP_FIRST_NAME
};
#define GY_GROUP_NAMES 7 /* with a colour of their own: those with the most weight; the rest are "other" */

typedef struct gy_groups {
    gy_names names;
    GY_VEC(uint64_t) weight;                             /* per name */
    uint64_t used[GY_GROUP_FIRST_NAME + GY_GROUP_NAMES]; /* items per group */
    uint32_t top[GY_GROUP_NAMES];                        /* by colour: its name; GY_NO_NAME */
    bool failed;
} gy_groups;

/* The colours of nodes in every picture. First every name with its weight, then gy_groups_rank, then gy_groups_of. */
void gy_groups_add(gy_groups *g, const char *name, uint64_t weight);
void gy_groups_rank(gy_groups *g);
/* The group of a name; counts it as used. */
uint32_t gy_groups_of(gy_groups *g, const char *name);
const char *gy_group_label(const gy_groups *g, uint32_t group);
gy_colour gy_group_colour(uint32_t group);
void gy_groups_free(gy_groups *g);

/* ---- the view that all pictures of a schedule share (view.c) ---- */

typedef struct gy_view_lane {
    uint32_t number; /* among the lanes of its kind on its device that have ops */
    uint32_t ops;
    gy_ticks busy;
} gy_view_lane;

typedef struct gy_view {
    const gantry_schedule *s;
    gantry_schedule_summary sum;
    gy_view_lane *lane; /* per lane */
    uint8_t *critical;  /* per op */
    uint32_t *cause;    /* per critical op: the op whose end let it begin; GY_NONE */
    uint32_t *group;    /* per op */
    gy_groups groups;
    gy_ticks *busy;       /* per device: compute lanes, at most one counted at a time */
    uint64_t conditional; /* nodes that may be left out by their `when` */
} gy_view;

/* There are such nodes, and it is known what a start takes where none of them runs. */
static inline bool gy_view_knows_without(const gy_view *view)
{
    return view->conditional && view->s->without >= 0;
}

gantry_status gy_view_make(gy_view *view, const gantry_schedule *s, gantry_error *err);
void gy_view_free(gy_view *view);

uint32_t gy_view_device(const gantry_schedule *s, const gy_op *op); /* of its first lane; GY_NONE without lanes */
/* Bytes a copy or collective handles: of its reads; 0 for others. */
uint64_t gy_view_bytes(const gantry_schedule *s, const gy_op *op);
/* "compute 0", "copy 1"; just "compute" where the device has one of the kind. Appends. */
void gy_view_lane_text(gy_text *to, const gy_view *view, uint32_t lane);
/* "makespan 1.23 ms, bound 1.1 ms, gap 11.8 %, 120 ops, ..." for titles. Appends. */
void gy_view_headline(gy_text *to, const gy_view *view, const char *micro); /* as of gy_export_time */
/* Everything about an op, a line each with `newline` between: for titles and tool tips. Not escaped. Appends. */
void gy_view_details(gy_text *to, const gy_view *view, uint32_t op, const char *newline);
/* The share of devices' time: devices that have lanes with ops. */
bool gy_view_device_used(const gy_view *view, uint32_t device);

/* ---- copies by route (route_traffic.c) ---- */

typedef struct gy_route_traffic {
    uint64_t copies, bytes;
    gy_ticks busy; /* sum of the copies' times */
} gy_route_traffic;

/* memories x memories, row = from; free with gy_free. NULL: out of memory. */
gy_route_traffic *gy_route_traffic_make(const gantry_schedule *s);

/* Bytes that go from rank to rank. */
typedef struct gy_network_traffic {
    uint64_t bytes;   /* of messages, sent and received counted once */
    uint32_t busiest; /* of the resources that messages go over, the one with most to do */
    gy_ticks busy;    /* that all that crosses it takes at its rate */
} gy_network_traffic;
/* false: out of memory */
bool gy_network_traffic_make(gy_network_traffic *to, const gantry_schedule *s);

/* ---- formats ---- */

/* A text as the public functions give it; frees `made` in any case. */
gantry_status gy_export_hand_over(gy_text *made, char **text, size_t *length, gantry_error *err);

void gy_export_graph_dot(gy_text *to, const struct gy_fold *fold);
void gy_export_schedule_dot(gy_text *to, const gy_view *view);
void gy_export_svg(gy_text *to, const gy_view *view);
void gy_export_html(gy_text *to, const gy_view *view); /* page/page.c */
void gy_export_chrome(gy_text *to, const gy_view *view);
void gy_export_summary(gy_text *to, const gy_view *view);
void gy_export_report(gy_text *to, const gy_view *view);

#endif
