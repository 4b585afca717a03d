// A sort of float arrays as a target of JAX's foreign function interface: jax_sort.py compiles and calls it.
#include <cuda_runtime_api.h>
#include <gmerge.h>

#include <map>
#include <mutex>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

static ffi::Error failed() { return ffi::Error(ffi::ErrorCode::kInternal, gmerge_last_error()); }

// This library's stream for a stream of JAX, made once for each.
static gmerge_status stream_of(cudaStream_t handle, gmerge_stream **stream) {
    static std::mutex mutex;
    static gmerge_gpu *gpu = nullptr;
    static std::map<cudaStream_t, gmerge_stream *> streams;
    std::lock_guard<std::mutex> lock(mutex);
    gmerge_format format = {GMERGE_F32, 0, 0};
    gmerge_status status = GMERGE_OK;
    if (!gpu) {
        status = gmerge_gpu_open(0, &gpu);
        if (status == GMERGE_OK)
            status = gmerge_gpu_prepare(gpu, format);
    }
    if (status == GMERGE_OK && !streams.count(handle))
        status = gmerge_stream_open(gpu, handle, &streams[handle]);
    *stream = streams[handle];
    return status;
}

static ffi::Error sort(cudaStream_t handle, ffi::ScratchAllocator scratch, ffi::Buffer<ffi::F32> keys,
                       ffi::ResultBuffer<ffi::F32> out) {
    gmerge_format format = {GMERGE_F32, GMERGE_NANS_LAST, 0};
    gmerge_stream *stream;
    size_t count = keys.element_count(), bytes;
    if (stream_of(handle, &stream) != GMERGE_OK || gmerge_device_sort_bytes(format, count, &bytes) != GMERGE_OK)
        return failed();
    auto memory = scratch.Allocate(bytes, 16);
    if (!memory)
        return ffi::Error(ffi::ErrorCode::kResourceExhausted, "no memory for the workspace");
    cudaMemcpyAsync(out->typed_data(), keys.typed_data(), count * sizeof(float), cudaMemcpyDeviceToDevice, handle);
    gmerge_device_elements elements = {(uintptr_t)out->typed_data(), 0, count, 0};
    gmerge_workspace workspace = {(uintptr_t)*memory, bytes};
    return gmerge_device_sort(stream, format, elements, workspace) == GMERGE_OK ? ffi::Error::Success() : failed();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(gmerge_sort_f32, sort,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<cudaStream_t>>()
                                  .Ctx<ffi::ScratchAllocator>()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());
