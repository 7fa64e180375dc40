/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/stream/stream.h"

void gy_graph_free(gy_cuda *h, uint32_t turn)
{
    gy_cuda_turn *t = &h->turn[turn];
    if (t->exec) {
        h->d.cuGraphExecDestroy(t->exec);
        t->exec = NULL;
    }
    gy_callbacks_reset(&t->exec_callbacks);
}
