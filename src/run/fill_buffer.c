/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a buffer by several threads: elements depend on nothing but their index (fill.h). */
#include "run/fill.h"

#include "base/thread.h"
#include <unistd.h>

#define LEAST_BYTES (INT64_C(1) << 20) /* for a thread to be worth its start */

enum { MOST_THREADS = 16 };

/* Rows of a thread. */
typedef struct piece {
    void *to;
    const gy_buffer *buffer;
    const gy_init *what;
    int64_t first, last;
    pthread_t thread;
} piece;

static void *fill_piece(void *data)
{
    const piece *p = data;
    gy_fill_rows(p->to, p->buffer, p->what, p->first, p->last);
    return NULL;
}

static int64_t count_pieces(const gy_buffer *b, int64_t first, int64_t last)
{
    int64_t cores = sysconf(_SC_NPROCESSORS_ONLN), pieces = gy_buffer_span(b, first, last) / LEAST_BYTES;
    pieces = pieces > cores ? cores : pieces;
    pieces = pieces > last - first ? last - first : pieces;
    return pieces > MOST_THREADS ? MOST_THREADS : pieces < 1 ? 1 : pieces;
}

/* Threads for pieces behind the first, as far as they can be had. Returns the first piece that has none. */
static int64_t begin(piece *all, int64_t pieces)
{
    int64_t begun = 1;
    while (begun < pieces && gy_thread_create(&all[begun].thread, fill_piece, &all[begun]) == 0)
        begun++;
    return begun;
}

void gy_fill_buffer(void *to, const gy_buffer *buffer, const gy_init *what, int64_t first, int64_t last)
{
    piece all[MOST_THREADS];
    int64_t rows = last - first, pieces = count_pieces(buffer, first, last);
    for (int64_t i = 0; i < pieces; i++) {
        piece p = { .buffer = buffer, .what = what };
        p.first = first + i * rows / pieces;
        p.last = first + (i + 1) * rows / pieces;
        p.to = (char *)to + gy_buffer_offset(buffer, p.first);
        all[i] = p;
    }
    int64_t begun = begin(all, pieces);
    fill_piece(&all[0]);
    for (int64_t i = begun; i < pieces; i++)
        fill_piece(&all[i]);
    for (int64_t i = 1; i < begun; i++)
        pthread_join(all[i].thread, NULL);
}
