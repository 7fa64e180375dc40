/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/host/check.h"

#include "base/error.h"
#include <sys/mman.h>
#include <unistd.h>

#define MOST_RESERVED  (UINT64_C(1) << 38) /* addresses only: nothing stands behind them */
#define LEAST_RESERVED (UINT64_C(1) << 26)

static void *reserve(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

gantry_status gy_windows_make(gy_windows *w, gantry_error *err)
{
    *w = (gy_windows){ .page = (size_t)sysconf(_SC_PAGESIZE) };
    for (uint64_t bytes = MOST_RESERVED; bytes >= LEAST_RESERVED && !w->reserve; bytes /= 4) {
        w->reserve = reserve((size_t)bytes);
        w->bytes = (size_t)bytes;
    }
    return w->reserve ? GANTRY_OK : gy_fail_nomem(err);
}

void gy_windows_free(gy_windows *w)
{
    if (w->reserve)
        munmap(w->reserve, w->bytes);
    *w = (gy_windows){ 0 };
}

gantry_status gy_window_open(gy_windows *w, gy_window *window, size_t bytes, bool at_end, gantry_error *err)
{
    size_t inside = (bytes + w->page - 1) / w->page * w->page, all = inside + 2 * w->page;
    if (all > w->bytes)
        return gy_fail(err, GANTRY_E_NOMEM, NULL, "checking mode has no addresses for a region of %zu bytes", bytes);
    w->next = w->next > w->bytes - all ? 0 : w->next;
    char *pages = w->reserve + w->next;
    if (inside && mprotect(pages + w->page, inside, PROT_READ | PROT_WRITE) != 0)
        return gy_fail_nomem(err);
    w->next += all;
    *window = (gy_window){ .data = pages + w->page + (at_end ? inside - bytes : 0),
                           .bytes = bytes,
                           .pages = pages,
                           .mapped = all,
                           .guard = w->page };
    return GANTRY_OK;
}

void gy_window_protect(gy_window *window)
{
    mprotect(window->pages + window->guard, window->mapped - 2 * window->guard, PROT_READ);
}

/* Gives the memory back and keeps the addresses. */
void gy_window_close(gy_window *window)
{
    const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    void *kept = window->pages ? mmap(window->pages, window->mapped, PROT_NONE, how, -1, 0) : NULL;
    (void)kept; /* where it fails, the memory is the process's until it ends */
    *window = (gy_window){ 0 };
}
