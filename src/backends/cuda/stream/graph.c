/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/stream/stream.h"

void gy_graph_free(gy_cuda *h, uint32_t turn)
{
    gy_cuda_turn *t = &h->turn[turn];
    if (t->exec) {
        h->d.cuGraphExecDestroy(t->exec);
        t->exec = NULL;
    }
    for (uint32_t i = 0; t->beside && i < h->devices; i++) {
        if (t->beside[i])
            h->d.cuGraphExecDestroy(t->beside[i]);
        t->beside[i] = NULL;
    }
    for (uint32_t i = 0; h->op && i < h->job->schedule->ops.count; i++) {
        CUgraphExec *own = h->op[i].when ? &h->op[i].when[turn] : NULL;
        if (own && *own)
            h->d.cuGraphExecDestroy(*own);
        if (own)
            *own = NULL;
    }
    gy_callbacks_reset(&t->exec_callbacks);
}
