/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The machine of this computer. Without GPUs the CPU becomes virtual devices, one per NUMA node that has cores; GPUs
 * that are only seen on the bus are named in the notes: memory, speed and links are facts that a back end's `discover`
 * brings. With those, gpus.c makes the machine.
 */
#include "base/error.h"
#include "base/memory.h"
#include "machine/gpus_build.h"
#include "machine/virtual.h"

static bool note_gpu(gantry_machine *m, const gy_host_gpu *g)
{
    gy_arena *arena = &m->arena;
    const char *place = g->numa >= 0 ? gy_arena_printf(arena, ", NUMA node %d", g->numa) : "";
    const char *link = g->link_gbs > 0 ? gy_arena_printf(arena, ", PCI link %.1f GB/s", g->link_gbs) : "";
    if (!place || !link)
        return false;
    return gy_machine_note(m, gy_arena_printf(arena, "GPU seen, not used: %s %s at %s%s%s; a GPU back end adds it",
                                              g->maker, g->model, g->bus, place, link));
}

static bool describe(gantry_machine *m, const gy_host_info *host)
{
    m->source = gy_arena_printf(&m->arena, "cores and memory from hwloc; speeds %s", gy_virtual_source);
    bool ok = m->source != NULL;
    if (host->hidden_bytes) {
        char seen[32], hidden[32];
        gy_bytes_text(seen, sizeof seen, host->bytes + host->forbidden_bytes - host->hidden_bytes);
        gy_bytes_text(hidden, sizeof hidden, host->bytes + host->forbidden_bytes);
        ok = ok &&
             gy_machine_note(m, gy_arena_printf(&m->arena, "memory: hwloc tells of %s, the system of %s, which is used",
                                                seen, hidden));
    }
    if (host->forbidden_bytes) {
        char allowed[32], all[32];
        gy_bytes_text(allowed, sizeof allowed, host->bytes);
        gy_bytes_text(all, sizeof all, host->bytes + host->forbidden_bytes);
        ok = ok &&
             gy_machine_note(m, gy_arena_printf(&m->arena, "memory: a control group allows %s of %s", allowed, all));
    }
    for (uint32_t i = 0; i < host->gpus && ok; i++)
        ok = note_gpu(m, &host->gpu[i]);
    return ok;
}

/* Half of the memory is the host memory, half is shared out: nothing is counted twice. */
static gantry_machine *make_machine(const gy_host_info *host)
{
    gantry_machine *m = NULL;
    gy_text name = { 0 };
    gy_virtual_device *each = gy_calloc(host->nodes, sizeof *each);
    gy_text_printf(&name, "%s, %u core%s", host->cpu, host->cores, host->cores == 1 ? "" : "s");
    if (!each || name.failed)
        goto free_all;
    for (uint32_t i = 0; i < host->nodes; i++)
        each[i] = (gy_virtual_device){ host->node[i].bytes - host->node[i].bytes / 2, host->node[i].number };
    m = gy_virtual_machine(name.at, host->nodes, each, host->bytes > 1 ? host->bytes / 2 : 1);
    if (m && !describe(m, host)) {
        gantry_machine_free(m);
        m = NULL;
    }
free_all:
    gy_free(each);
    gy_text_free(&name);
    return m;
}

gantry_status gy_machine_detect(gantry_machine **machine, const gy_gpus *gpus, gantry_error *err)
{
    gy_host_info host;
    GY_TRY(gy_host_read(&host, err));
    gantry_machine *m = gpus && gpus->count ? gy_gpu_machine(&host, gpus) : make_machine(&host);
    gy_host_free(&host);
    if (!m)
        return gy_fail_nomem(err);
    *machine = m;
    return GANTRY_OK;
}
