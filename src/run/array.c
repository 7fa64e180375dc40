/* SPDX-License-Identifier: Apache-2.0 */
#include "run/array.h"

#include "base/error.h"
#include "base/files.h"
#include "base/npy.h"
#include "graph/flow/flow.h"
#include "run/run.h"
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define CUT_OFF "; it is cut off, or has more than its header says: write it anew"

bool gy_is_npy_name(const char *path)
{
    size_t length = strlen(path);
    return length >= 4 && strcmp(path + length - 4, ".npy") == 0;
}

void gy_array_text(gy_text *to, gantry_dtype dtype, int rank, const int64_t *shape)
{
    gy_text_printf(to, "%s [", gantry_dtype_name(dtype));
    for (int i = 0; i < rank; i++)
        gy_text_printf(to, "%s%" PRId64, i ? ", " : "", shape[i]);
    gy_text_add(to, "]");
}

/* A file with a single number (no dimensions) is as good as one with one element. */
static bool same_shape(const gy_npy *npy, const gy_buffer *b)
{
    if (npy->rank == 0)
        return b->rank == 1 && b->shape[0] == 1;
    return npy->rank == b->rank && memcmp(npy->shape, b->shape, (size_t)b->rank * sizeof *b->shape) == 0;
}

static gantry_status fail_differs(const gy_npy *npy, const gy_buffer *b, const char *path, gantry_error *err)
{
    gy_text seen = { 0 }, wanted = { 0 };
    gy_array_text(&seen, npy->dtype, npy->rank, npy->shape);
    gy_array_text(&wanted, b->dtype, b->rank, b->shape);
    bool failed = seen.failed || wanted.failed;
    gantry_status status = failed
                               ? gy_fail_nomem(err)
                               : gy_fail(err, GANTRY_E_IO, NULL,
                                         "%s holds %s, but buffer \"%s\" is %s; convert the file, or change the buffer",
                                         path, seen.at, b->name, wanted.at);
    gy_text_free(&seen);
    gy_text_free(&wanted);
    return status;
}

/* The header of a .npy file was as wanted. A file whose name does not say that it is bytes, such as an archive or a
 * text, may have been meant otherwise. */
static const char *remedy_of(const char *path)
{
    const char *ending = strrchr(path, '.');
    if (ending && strcmp(ending, ".npy") == 0)
        return CUT_OFF;
    bool is_meant = ending && (strcmp(ending, ".raw") == 0 || strcmp(ending, ".bin") == 0);
    return is_meant ? "; it has all elements of the buffer, in C order, and nothing else: write it anew"
                    : "; what does not end in .npy is plain bytes in C order: numpy.save writes .npy";
}

static gantry_status fail_bytes(uint64_t has, const gy_buffer *b, const gy_file *file, gantry_error *err)
{
    if (!file->regular && has > b->bytes)
        return gy_fail(err, GANTRY_E_IO, NULL, "%s has more than %" PRIu64 " bytes of data, all that buffer \"%s\" has",
                       file->path, b->bytes, b->name);
    return gy_fail(err, GANTRY_E_IO, NULL, "%s has %" PRIu64 " bytes of data, but buffer \"%s\" has %" PRIu64 "%s",
                   file->path, has, b->name, b->bytes, remedy_of(file->path));
}

/* The buffer's shape behind one more axis. */
static bool is_stack(const gy_npy *npy, const gy_buffer *b)
{
    return npy->rank == b->rank + 1 && memcmp(npy->shape + 1, b->shape, (size_t)b->rank * sizeof *b->shape) == 0;
}

static gantry_status take_header(gy_array_place *place, const gy_file *file, const gy_buffer *b, bool stacks,
                                 gantry_error *err)
{
    gy_npy npy;
    GY_TRY(gy_npy_header_get(&npy, file, err));
    gantry_status status = GANTRY_OK;
    place->stacked = stacks && is_stack(&npy, b);
    place->arrays = place->stacked ? (uint64_t)npy.shape[0] : 1;
    place->offset = npy.data_offset;
    if (npy.dtype != b->dtype || !(place->stacked || same_shape(&npy, b)))
        status = fail_differs(&npy, b, file->path, err);
    else if (place->arrays == 0)
        status = gy_fail(err, GANTRY_E_IO, NULL, "%s is a stack of 0 arrays for buffer \"%s\"; leave it out",
                         file->path, b->name);
    gy_npy_free(&npy);
    return status;
}

/* A file whose size is known need not be read to see that it does not fit. */
gantry_status gy_array_look(gy_array_place *place, const gy_file *file, const gy_buffer *b, bool npy, bool stacks,
                            gantry_error *err)
{
    *place = (gy_array_place){ .arrays = 1 };
    if (npy)
        GY_TRY(take_header(place, file, b, stacks, err));
    uint64_t has = file->size < place->offset ? 0 : file->size - place->offset;
    if (!file->regular || has == place->arrays * b->bytes)
        return GANTRY_OK;
    if (!place->stacked)
        return fail_bytes(has, b, file, err);
    return gy_fail(err, GANTRY_E_IO, NULL,
                   "%s has %" PRIu64 " bytes of data, but %" PRIu64 " arrays of buffer \"%s\" have %" PRIu64 CUT_OFF,
                   file->path, has, place->arrays, b->name, place->arrays * b->bytes);
}

/* Of files whose size is not known one byte more is read. */
gantry_status gy_array_get(void *to, const gy_file *file, const gy_buffer *b, gantry_error *err)
{
    size_t got = 0, more = 0;
    char beyond;
    GY_TRY(gy_file_get(file, to, b->bytes, &got, err));
    if (got == b->bytes && !file->regular)
        GY_TRY(gy_file_get(file, &beyond, 1, &more, err));
    return got + more == b->bytes ? GANTRY_OK : fail_bytes(got + more, b, file, err);
}

gantry_status gy_array_get_bytes(void *to, const gy_file *file, const gy_array_place *place, uint64_t index,
                                 uint64_t first, uint64_t last, const gy_buffer *b, gantry_error *err)
{
    size_t got = 0;
    if (lseek(file->fd, (off_t)(place->offset + index * b->bytes + first), SEEK_SET) < 0)
        return gy_fail_errno(err, "read", file->path);
    GY_TRY(gy_file_get(file, (char *)to + first, last - first, &got, err));
    return got == last - first ? GANTRY_OK : fail_bytes(first + got, b, file, err);
}

static gantry_status read_array(void **array, const gy_file *file, const gy_buffer *b, bool npy, gantry_error *err)
{
    gy_array_place place;
    GY_TRY(gy_array_look(&place, file, b, npy, false, err));
    void *made = gy_alloc_array(b->bytes);
    if (!made)
        return gy_fail_nomem(err);
    gantry_status status = gy_array_get(made, file, b, err);
    if (status) {
        gy_free(made);
        return status;
    }
    *array = made;
    return GANTRY_OK;
}

gantry_status gy_array_read(void **array, const gy_buffer *buffer, const char *path, const char *folder, bool npy,
                            gantry_error *err)
{
    gy_file file;
    gantry_status status = gy_file_open(&file, path, folder, err);
    if (status) {
        gy_error_of_buffer(err, buffer->name); /* a command may name many files */
        return status;
    }
    status = read_array(array, &file, buffer, npy, err);
    gy_file_close(&file);
    return status;
}

gantry_status gy_array_add(gantry_files *files, const void *array, const gy_buffer *buffer, const char *path,
                           gantry_error *err)
{
    gy_text head = { 0 };
    if (gy_is_npy_name(path))
        gy_npy_header_write(&head, buffer->dtype, buffer->rank, buffer->shape);
    const gy_piece pieces[2] = { { head.at, head.length }, { array, buffer->bytes } };
    gantry_status status = head.failed ? gy_fail_nomem(err) : gy_files_add(files, path, pieces, err);
    gy_text_free(&head);
    return status;
}

static bool is_named(const char *name, const char *const *inputs, size_t count)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < count; i++)
        if (strncmp(inputs[i], name, length) == 0 && inputs[i][length] == '=')
            return true;
    return false;
}

/* A file that is not there may come yet. One that is not regular is not opened: a FIFO would wait. */
static gantry_status check_init(const gantry_graph *graph, const gy_buffer *b, gantry_error *err)
{
    gy_file file;
    gy_array_place place;
    if (!gy_file_is_regular(b->init.path) || gy_file_open(&file, b->init.path, b->init.folder, NULL))
        return GANTRY_OK;
    gantry_status status = gy_array_look(&place, &file, b, b->init.kind == GY_INIT_NPY, false, err);
    gy_file_close(&file);
    return status ? gy_run_fail_init(graph, b, status, err) : GANTRY_OK;
}

static gantry_status check_call(const gantry_graph *graph, const char *const *inputs, size_t count, const char *call,
                                gantry_error *err)
{
    if (!graph || (count && !inputs))
        return gy_fail(err, GANTRY_E_INVALID, NULL, "%s: `%s` is NULL; give %s", call, graph ? "inputs" : "graph",
                       graph ? "as many as you say" : "a graph");
    for (size_t i = 0; i < count; i++)
        if (!inputs[i])
            return gy_fail(err, GANTRY_E_INVALID, NULL, "%s: `inputs[%zu]` is NULL; give \"buffer=file.npy\"", call, i);
    if (!graph->sealed)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "the graph was not checked; call gantry_graph_check first");
    return GANTRY_OK;
}

gantry_status gantry_graph_check_files(const gantry_graph *graph, const char *const *inputs, size_t input_count,
                                       gantry_error *err)
{
    GY_TRY(check_call(graph, inputs, input_count, "gantry_graph_check_files", err));
    for (uint32_t id = 0; id < graph->buffers.count; id++) {
        const gy_buffer *b = &graph->buffers.at[id];
        if ((b->init.kind == GY_INIT_NPY || b->init.kind == GY_INIT_RAW) && !is_named(b->name, inputs, input_count))
            GY_TRY(check_init(graph, b, err));
    }
    return GANTRY_OK;
}

gantry_status gantry_graph_check_inputs(const gantry_graph *graph, const char *const *inputs, size_t input_count,
                                        gantry_error *err)
{
    GY_TRY(check_call(graph, inputs, input_count, "gantry_graph_check_inputs", err));
    for (uint32_t id = 0; id < graph->buffers.count; id++) /* a wrong name may be why another buffer has nothing */
        if (is_named(graph->buffers.at[id].name, inputs, input_count))
            GY_TRY(gy_run_check_contents(&graph->buffers.at[id], err));
    for (uint32_t id = 0; id < graph->buffers.count; id++) {
        const gy_buffer *b = &graph->buffers.at[id];
        bool found = false;
        if (b->cls == GANTRY_TEMP || b->external || b->init.kind != GY_INIT_NONE ||
            is_named(b->name, inputs, input_count))
            continue;
        GY_TRY(gy_flow_finds_beginning(graph, id, &found, err));
        if (found)
            return gy_run_fail_unbound(graph, b, err);
    }
    return GANTRY_OK;
}
