/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the halves of the WfCommons reader share: tasks (wfcommons.c) and files (wfcommons_files.c). */
#ifndef GY_IMPORT_WFCOMMONS_H
#define GY_IMPORT_WFCOMMONS_H

#include "base/map.h"
#include "import/import.h"

/* A file that a task reads or writes, in the order of the document. */
typedef struct gy_wf_use {
    uint32_t task, file;
    bool writes;
} gy_wf_use;

typedef struct gy_wf_file {
    double bytes; /* negative: not said yet */
    bool by_writer;
    uint32_t writers, first_writer; /* range of gy_wf.writer */
    uint32_t input;                 /* item of what is there from the start; GY_IMPORT_NONE: not needed so far */
} gy_wf_file;

typedef struct gy_wf {
    gy_import *in;
    gy_names tasks; /* index: that of in->tasks */
    gy_names names; /* of files */
    GY_VEC(gy_wf_file) files;
    GY_VEC(gy_wf_use) uses;
    uint32_t *writer, *item; /* per file: its writers, and the items they make */
    gantry_error *err;
} gy_wf;

/* Files of 1.5 on: `workflow/specification/files`, and lists of ids at the tasks. */
gantry_status gy_wf_read_files(gy_wf *w, const gy_json_at *specification);
gantry_status gy_wf_read_use(gy_wf *w, const gy_json_at *task, const char *key, bool writes);
/* Before: every task lists its files with sizes. */
gantry_status gy_wf_read_own_files(gy_wf *w, const gy_json_at *task);
/* All tasks, their order and uses of files are read: makes the items. */
gantry_status gy_wf_link_files(gy_wf *w);

#endif
