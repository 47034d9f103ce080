#include "device_agent/run/cuda_runtime.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/module/cuda_binary.h"
#include "device_agent/run/crash_report.h"
#include "device_agent/run/cuda_device.h"
#include "device_agent/run/cuda_errors.h"
#include "device_agent/run/cuda_memory.h"
#include "device_agent/run/cuda_module.h"
#include "device_agent/run/device_time.h"

namespace regatta {
namespace {

using cuda::FailureOf;
using cuda::GuardedBuffer;
using cuda::kSuccess;

class CudaRuntime : public ModuleRuntime {
 public:
  // A simulated device's clock counts another time than the host's.
  CudaRuntime(const Module& module, const cuda::Gpu& gpu, const Clock* clock)
      : module_(module),
        gpu_(gpu),
        api_(*gpu.api),
        host_time_(gpu.api->simulator == nullptr ? clock : nullptr),
        code_(gpu) {}
  ~CudaRuntime() override;

  // Before anything else.
  MaybeFailure Load(int64_t evict_bytes);

  MaybeFailure SetInputs(const std::vector<GuardedMemory>& inputs) override;
  // The driver opens files and starts threads as it likes: nothing can be
  // taken from it.
  absl::Status Tighten() override { return absl::OkStatus(); }
  MaybeFailure Poison(uint8_t pattern) override;
  MaybeFailure Call() override;
  MaybeFailure TimeCalls(int64_t calls, int64_t* elapsed_ns) override;
  MaybeFailure Evict() override;
  MaybeFailure ReadOutputs(std::vector<const void*>* outputs) override;
  MaybeFailure FindDamage(std::string* damage) override;

 private:
  struct Launch {
    cuda::LoadedModule::Kernel kernel;
    std::vector<cuda::Address> addresses;
    std::vector<void*> arguments;  // where the addresses stand
  };
  MaybeFailure AddBuffers();
  MaybeFailure AddLaunch(const ModuleKernel& kernel);
  MaybeFailure Synchronize();
  // Enqueues the host sequence once.
  MaybeFailure Enqueue();
  template <typename Visit>
  MaybeFailure ForEach(std::initializer_list<BufferRole> roles, Visit visit);

  const Module& module_;
  const cuda::Gpu& gpu_;
  const cuda::Api& api_;
  const HostTime host_time_;
  cuda::LoadedModule code_;
  std::vector<std::unique_ptr<GuardedBuffer>> buffers_;  // as the module's
  std::unique_ptr<GuardedBuffer> eviction_;
  std::vector<Launch> launches_;  // by kernel of the module
  cuda::Event from_ = nullptr, to_ = nullptr;
  const std::vector<GuardedMemory>* inputs_ = nullptr;
  uint8_t evict_pattern_ = 0;
  long calls_ = 0;
};

CudaRuntime::~CudaRuntime() {
  if (from_ != nullptr) api_.EventDestroy(from_);
  if (to_ != nullptr) api_.EventDestroy(to_);
}

MaybeFailure CudaRuntime::Load(int64_t evict_bytes) {
  const absl::StatusOr<CudaBinary> binary = ParseCudaBinary(module_.loadable);
  if (!binary.ok()) {
    return Failed(v1::OUTCOME_COMPILE_ERROR,
                  std::string(binary.status().message()));
  }
  if (auto failed = code_.Load(*binary)) return failed;
  if (auto failed = AddBuffers()) return failed;
  launches_.reserve(module_.kernels.size());
  for (const ModuleKernel& kernel : module_.kernels) {
    if (auto failed = AddLaunch(kernel)) return failed;
  }
  cuda::Result error = api_.EventCreate(&from_, 0);
  if (error == kSuccess) error = api_.EventCreate(&to_, 0);
  if (auto failed = FailureOf(api_, error, "making events")) return failed;
  if (evict_bytes > 0) {
    eviction_ =
        GuardedBuffer::Create(gpu_, "cache eviction", evict_bytes, &error);
  }
  return FailureOf(api_, error, "memory for emptying the caches");
}

MaybeFailure CudaRuntime::AddBuffers() {
  for (const ModuleBuffer& wanted : module_.buffers) {
    cuda::Result error = kSuccess;
    const std::string name = NameOf(wanted);
    auto made = GuardedBuffer::Create(gpu_, name, wanted.bytes, &error);
    if (auto failed = FailureOf(
            api_, error,
            absl::StrCat("memory for ", name, " (", wanted.bytes, " bytes)"))) {
      return failed;
    }
    buffers_.push_back(std::move(made));
  }
  return std::nullopt;
}

MaybeFailure CudaRuntime::AddLaunch(const ModuleKernel& kernel) {
  Launch& launch = launches_.emplace_back();
  if (auto failed = code_.Find(kernel, &launch.kernel)) return failed;
  for (const int argument : kernel.arguments) {
    launch.addresses.push_back(
        buffers_[static_cast<size_t>(argument)]->address());
  }
  for (cuda::Address& address : launch.addresses) {
    launch.arguments.push_back(&address);
  }
  return std::nullopt;
}

template <typename Visit>
MaybeFailure CudaRuntime::ForEach(std::initializer_list<BufferRole> roles,
                                  Visit visit) {
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (std::find(roles.begin(), roles.end(), module_.buffers[i].role) ==
        roles.end()) {
      continue;
    }
    if (MaybeFailure failed =
            FailureOf(api_, visit(*buffers_[i]), buffers_[i]->name())) {
      return failed;
    }
  }
  return std::nullopt;
}

MaybeFailure CudaRuntime::Synchronize() {
  return FailureOf(api_, api_.CtxSynchronize(), absl::StrCat("call ", calls_));
}

MaybeFailure CudaRuntime::SetInputs(const std::vector<GuardedMemory>& inputs) {
  inputs_ = &inputs;
  size_t next = 0;
  return ForEach({BufferRole::kInput}, [&](GuardedBuffer& buffer) {
    const GuardedMemory& input = inputs[next++];
    CHECK(input.bytes() == 0 || input.bytes() == buffer.bytes())
        << input.name();
    const cuda::Result error =
        input.bytes() == 0 ? kSuccess : buffer.Write(input.data());
    return error != kSuccess ? error : buffer.Guard();
  });
}

MaybeFailure CudaRuntime::Poison(uint8_t pattern) {
  if (auto failed = ForEach(
          {BufferRole::kOutput, BufferRole::kWorkspace},
          [&](GuardedBuffer& buffer) { return buffer.Poison(pattern); })) {
    return failed;
  }
  return Synchronize();
}

MaybeFailure CudaRuntime::Enqueue() {
  NoteCall(++calls_);
  for (const int index : module_.host_sequence) {
    Launch& launch = launches_[static_cast<size_t>(index)];
    const LaunchShape& shape = launch.kernel.shape;
    const cuda::Result error = api_.LaunchKernel(
        launch.kernel.function, shape.groups[0], shape.groups[1],
        shape.groups[2], shape.threads[0], shape.threads[1], shape.threads[2],
        shape.shared_bytes, nullptr, launch.arguments.data(), nullptr);
    if (error != kSuccess) {
      return FailureOf(api_, error,
                       absl::StrCat("call ", calls_, ", launching kernel ",
                                    launch.kernel.entry),
                       cuda::Asked::kLaunch);
    }
  }
  return std::nullopt;
}

MaybeFailure CudaRuntime::Call() {
  if (auto failed = Enqueue()) return failed;
  return Synchronize();
}

// Nothing is waited for in between, also not after Evict: the first kernel
// stands in the queue before the device comes to the first event.
MaybeFailure CudaRuntime::TimeCalls(int64_t calls, int64_t* elapsed_ns) {
  const char* const what = "taking the time";
  const SteadyTime begun = host_time_.Now();
  if (auto failed = FailureOf(api_, api_.EventRecord(from_, nullptr), what)) {
    return failed;
  }
  for (int64_t i = 0; i < calls; ++i) {
    if (auto failed = Enqueue()) return failed;
  }
  if (auto failed = FailureOf(api_, api_.EventRecord(to_, nullptr), what)) {
    return failed;
  }
  if (auto failed = Synchronize()) return failed;
  float milliseconds = 0;
  const cuda::Result error = api_.EventElapsedTime(&milliseconds, from_, to_);
  if (auto failed = FailureOf(api_, error, what)) return failed;
  const double elapsed = double{milliseconds} * 1e6;
  if (auto bad = CheckElapsed(elapsed, cuda::kClockResolutionNs,
                              host_time_.Since(begun))) {
    return bad;
  }
  *elapsed_ns = std::llround(elapsed);
  return std::nullopt;
}

MaybeFailure CudaRuntime::Evict() {
  CHECK(eviction_ != nullptr) << "eviction was not asked for";
  return FailureOf(api_, eviction_->Poison(++evict_pattern_),
                   "emptying the caches");
}

MaybeFailure CudaRuntime::ReadOutputs(std::vector<const void*>* outputs) {
  return ForEach({BufferRole::kOutput}, [&](GuardedBuffer& buffer) {
    outputs->push_back(nullptr);
    return buffer.Read(&outputs->back());
  });
}

MaybeFailure CudaRuntime::FindDamage(std::string* damage) {
  damage->clear();
  if (auto failed = ForEach(
          {BufferRole::kInput, BufferRole::kOutput, BufferRole::kWorkspace},
          [&](const GuardedBuffer& buffer) {
            return damage->empty() ? buffer.FindDamage(damage) : kSuccess;
          })) {
    return failed;
  }
  size_t next = 0;
  return ForEach({BufferRole::kInput}, [&](GuardedBuffer& buffer) {
    const GuardedMemory& given = (*inputs_)[next++];
    if (!damage->empty() || given.bytes() == 0) return kSuccess;
    const void* now = nullptr;
    const cuda::Result error = buffer.Read(&now);
    if (error == kSuccess &&
        std::memcmp(now, given.data(), static_cast<size_t>(given.bytes())) !=
            0) {
      *damage = absl::StrCat(buffer.name(), " was overwritten");
    }
    return error;
  });
}

}  // namespace

RuntimeOrFailure CreateCudaRuntime(const Module& module,
                                   const RuntimeOptions& options) {
  const absl::StatusOr<const cuda::Gpu*> gpu = cuda::Gpu::Open(options.device);
  if (!gpu.ok()) {
    return {nullptr, Failed(v1::OUTCOME_DEVICE_FAULT,
                            std::string(gpu.status().message()))};
  }
  auto runtime =
      std::make_unique<CudaRuntime>(module, **gpu, options.host_clock);
  MaybeFailure failed = runtime->Load(options.evict_bytes);
  if (failed) return {nullptr, std::move(failed)};
  return {std::move(runtime), std::nullopt};
}

}  // namespace regatta
