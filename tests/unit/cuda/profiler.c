/* SPDX-License-Identifier: Apache-2.0 */
/* A profiler for tests: what NVTX_INJECTION64_PATH names. Writes a line on each call to the file PROFILER_LOG. */
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *to;
static int depth;
static char *name[16]; /* until the domain is destroyed */
static size_t names;

static nvtxDomainHandle_t NVTX_API create(const char *domain)
{
    fprintf(to, "domain %s\n", domain);
    return (nvtxDomainHandle_t)to;
}

static void NVTX_API destroy(nvtxDomainHandle_t domain)
{
    while (names > 0)
        free(name[--names]);
    fprintf(to, "destroy %d\n", domain == (nvtxDomainHandle_t)to);
    fflush(to);
}

static nvtxStringHandle_t NVTX_API intern(nvtxDomainHandle_t domain, const char *text)
{
    if (domain != (nvtxDomainHandle_t)to || names == sizeof name / sizeof *name ||
        asprintf(&name[names], "%s", text) < 0)
        abort();
    return (nvtxStringHandle_t)name[names++];
}

static int NVTX_API push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
    const char *text =
        a->messageType == NVTX_MESSAGE_TYPE_REGISTERED ? (const char *)a->message.registered : a->message.ascii;
    if (domain != (nvtxDomainHandle_t)to || a->version != NVTX_VERSION || a->size != NVTX_EVENT_ATTRIB_STRUCT_SIZE)
        abort();
    fprintf(to, "%*s%s %llu\n", 2 * depth, "", text, (unsigned long long)a->payload.ullValue);
    return depth++;
}

static int NVTX_API pop(nvtxDomainHandle_t domain)
{
    (void)domain;
    return --depth;
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get)
{
    const NvtxExportTableCallbacks *table = get(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable functions = NULL;
    unsigned size = 0;
    to = fopen(getenv("PROFILER_LOG"), "w");
    if (!to || !table || !table->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &functions, &size) ||
        size <= NVTX_CBID_CORE2_DomainRegisterStringA)
        return 0;
    *functions[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create;
    *functions[NVTX_CBID_CORE2_DomainDestroy] = (NvtxFunctionPointer)destroy;
    *functions[NVTX_CBID_CORE2_DomainRegisterStringA] = (NvtxFunctionPointer)intern;
    *functions[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
    *functions[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
    return 1;
}
