/* Captures a sort of pairs in a CUDA graph, and launches it for several arrays.
 *
 *     cc graph.c -lgmerge -lcudart
 */
#include <cuda_runtime_api.h>
#include <gmerge.h>
#include <stdio.h>
#include <stdlib.h>

#define N 1000000

#define CUDA(call)                                                              \
    do {                                                                        \
        cudaError_t error = (call);                                             \
        if (error != cudaSuccess) {                                             \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));      \
            exit(1);                                                            \
        }                                                                       \
    } while (0)
#define GMERGE(call)                                                            \
    do {                                                                        \
        if ((call) != GMERGE_OK) {                                              \
            fprintf(stderr, "%s: %s\n", #call, gmerge_last_error());            \
            exit(1);                                                            \
        }                                                                       \
    } while (0)

int main(void) {
    static float keys[N];
    static uint32_t values[N];
    gmerge_format format = {GMERGE_F32, GMERGE_DESCENDING, sizeof values[0]};

    cudaStream_t handle;
    CUDA(cudaStreamCreate(&handle));
    gmerge_gpu *gpu;
    gmerge_stream *stream;
    GMERGE(gmerge_gpu_open(0, &gpu));
    GMERGE(gmerge_stream_open(gpu, handle, &stream));
    /* The driver loads kernels now, and not during the capture. */
    GMERGE(gmerge_gpu_prepare(gpu, format));

    size_t bytes;
    GMERGE(gmerge_device_sort_bytes(format, N, &bytes));
    void *on_gpu, *values_on_gpu, *memory;
    CUDA(cudaMalloc(&on_gpu, sizeof keys));
    CUDA(cudaMalloc(&values_on_gpu, sizeof values));
    CUDA(cudaMalloc(&memory, bytes));
    gmerge_device_elements elements = {(uintptr_t)on_gpu, (uintptr_t)values_on_gpu, N, 0};
    gmerge_workspace workspace = {(uintptr_t)memory, bytes};

    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CUDA(cudaStreamBeginCapture(handle, cudaStreamCaptureModeThreadLocal));
    GMERGE(gmerge_device_sort(stream, format, elements, workspace));
    CUDA(cudaStreamEndCapture(handle, &graph));
    CUDA(cudaGraphInstantiateWithFlags(&executable, graph, 0));

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) {
            keys[i] = (float)rand() / (float)RAND_MAX;
            values[i] = (uint32_t)i;
        }
        float first = keys[0];
        CUDA(cudaMemcpyAsync(on_gpu, keys, sizeof keys, cudaMemcpyHostToDevice, handle));
        CUDA(cudaMemcpyAsync(values_on_gpu, values, sizeof values, cudaMemcpyHostToDevice, handle));
        CUDA(cudaGraphLaunch(executable, handle));
        CUDA(cudaMemcpyAsync(keys, on_gpu, sizeof keys, cudaMemcpyDeviceToHost, handle));
        CUDA(cudaMemcpyAsync(values, values_on_gpu, sizeof values, cudaMemcpyDeviceToHost, handle));
        CUDA(cudaStreamSynchronize(handle));
        for (int i = 1; i < N; i++)
            if (keys[i - 1] < keys[i] || (values[i] == 0 && keys[i] != first)) {
                fprintf(stderr, "key %d is not in order\n", i);
                return 1;
            }
    }
    printf("three arrays of %d pairs were sorted by one graph\n", N);
    CUDA(cudaGraphExecDestroy(executable));
    CUDA(cudaGraphDestroy(graph));
    gmerge_stream_free(stream);
    gmerge_gpu_free(gpu);
    CUDA(cudaStreamDestroy(handle));
    return 0;
}
