/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The parts of a checkpoint, and its manifest: a JSON file that says of which graph it is, how far the run was, and
 * which arrays it has, each with its hash, under a hash of its own. Names are those of the graph: nothing says on how
 * many devices or processes the run was.
 */
#ifndef GY_RUN_CHECKPOINT_MANIFEST_H
#define GY_RUN_CHECKPOINT_MANIFEST_H

#include "base/vec.h"
#include "graph/phase.h"

/* How far a run is. */
typedef struct gy_moment {
    uint64_t starts; /* complete */
    bool inside;     /* amid the next one, and then what follows */
    uint64_t iterations;
    uint32_t phase; /* the one that comes next or goes on */
    gy_phase shape; /* of that */
    int64_t done;   /* starts of it */
} gy_moment;

typedef enum gy_kept_role {
    GY_KEPT_STATE, /* what a state holds between two starts */
    GY_KEPT_VALUE, /* what the name means when the phase begins */
    GY_KEPT_NEXT   /* what the next start of the phase finds in its state of that name */
} gy_kept_role;

/* One array. */
typedef struct gy_kept {
    gy_kept_role role;
    uint32_t buffer;
    uint64_t hash; /* xxh64 of the array in C order */
    void *at;      /* once it is read: in C order for states, else packed */
} gy_kept;

/* `name` means what `from` meant when the start began, or, if `made`, the kept value of `from`. */
typedef struct gy_renamed {
    uint32_t name, from;
    bool made;
} gy_renamed;

typedef struct gy_checkpoint {
    uint64_t number;
    gy_moment moment;
    GY_VEC(gy_kept) kept;
    GY_VEC(gy_renamed) renamed;
} gy_checkpoint;

void gy_checkpoint_free(gy_checkpoint *c);
const gy_kept *gy_checkpoint_find(const gy_checkpoint *c, gy_kept_role role, uint32_t buffer);

/* The name of an array's file: "state-3.npy". */
enum { GY_KEPT_NAME = 32 };
char *gy_kept_name(char to[GY_KEPT_NAME], const gy_kept *kept);

/* The file's text (gy_free), NULL: out of memory. */
char *gy_manifest_write(const gy_checkpoint *c, const gantry_graph *graph);
/* E_IO: the text is damaged. E_INVALID: it is of another graph. `path` stands for the file; `number` is not in it. */
gantry_status gy_manifest_read(gy_checkpoint *c, const char *text, size_t length, const char *path,
                               const gantry_graph *graph, gantry_error *err);

#endif
