#include "device_agent/run/opencl_runtime.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "device_agent/run/crash_report.h"
#include "device_agent/run/opencl_api.h"
#include "device_agent/run/opencl_device.h"
#include "device_agent/run/opencl_memory.h"

namespace regatta {
namespace {

using opencl::Api;
using opencl::ErrorName;
using opencl::GuardedBuffer;
using opencl::kSuccess;

constexpr size_t kMaxDimensions = 3;
constexpr size_t kMaxLogBytes = 2000;
// Launches that are in flight at once: their events are host memory.
constexpr int64_t kMaxInFlight = 512;
// A call must last so many ticks of the device's clock to be timed by itself:
// the error of both ends is then below 1 %.
constexpr uint64_t kTicksPerCall = 200;

// Of an error that comes before a kernel runs.
v1::Outcome OutcomeOf(int32_t error) {
  switch (error) {
    case opencl::kMemObjectAllocationFailure:
    case opencl::kOutOfHostMemory:
    case opencl::kInvalidBufferSize:
      return v1::OUTCOME_OUT_OF_MEMORY;
    case opencl::kOutOfResources:
    case opencl::kInvalidWorkGroupSize:
    case opencl::kInvalidWorkItemSize:
    case opencl::kInvalidGlobalWorkSize:
    case opencl::kImageFormatNotSupported:
    case opencl::kInvalidImageSize:
      return v1::OUTCOME_REFUSED;
    case opencl::kBuildProgramFailure:
    case opencl::kInvalidKernelName:
    case opencl::kInvalidArgIndex:
    case opencl::kInvalidKernelArgs:
      return v1::OUTCOME_COMPILE_ERROR;
    default:
      return v1::OUTCOME_DEVICE_FAULT;
  }
}

// Of an error that is told once a kernel has begun: drivers tell the kernel's
// own faults as errors of resources or of the events that waited.
v1::Outcome OutcomeOfRun(int32_t error) {
  return error == opencl::kOutOfResources ||
                 error == opencl::kExecStatusErrorForEventsInWaitList
             ? v1::OUTCOME_CRASHED
             : OutcomeOf(error);
}

MaybeFailure FailedBefore(int32_t error, std::string_view what) {
  if (error == kSuccess) return std::nullopt;
  return Failed(OutcomeOf(error),
                absl::StrCat(std::string(what), ": ", ErrorName(error)));
}

struct Launch {
  opencl::Kernel kernel = nullptr;
  std::string entry;
  uint32_t dimensions = 1;
  size_t global[kMaxDimensions] = {1, 1, 1};
  size_t local[kMaxDimensions] = {1, 1, 1};
};

class OpenClRuntime : public ModuleRuntime {
 public:
  OpenClRuntime(const Module& module, opencl::FoundDevice found)
      : module_(module), api_(*found.api), device_(found.device) {}
  ~OpenClRuntime() override;

  // Before anything else.
  MaybeFailure Load(int64_t evict_bytes);

  MaybeFailure SetInputs(const std::vector<GuardedMemory>& inputs) override;
  // The driver compiles when kernels are first launched, opens files and starts
  // threads as it likes: nothing can be taken from it.
  absl::Status Tighten() override { return absl::OkStatus(); }
  MaybeFailure Poison(uint8_t pattern) override;
  MaybeFailure Call() override;
  MaybeFailure TimeCalls(int64_t calls, int64_t* elapsed_ns) override;
  MaybeFailure Evict() override;
  MaybeFailure ReadOutputs(std::vector<const void*>* outputs) override;
  MaybeFailure FindDamage(std::string* damage) override;

 private:
  struct Span {
    uint64_t start = 0, end = 0;
  };
  MaybeFailure Build();
  MaybeFailure AddBuffers();
  MaybeFailure AddLaunch(const ModuleKernel& kernel);
  MaybeFailure Finish();
  // Enqueues the host sequence; `first` and `last` may be null.
  MaybeFailure Enqueue(opencl::Event* first, opencl::Event* last);
  // Waits for `calls` calls and appends when each ran.
  MaybeFailure Run(int64_t calls, std::vector<Span>* spans);
  // Of buffer `index` of the module.
  GuardedBuffer& buffer(size_t index) { return *buffers_[index]; }
  template <typename Visit>
  MaybeFailure ForEach(std::initializer_list<BufferRole> roles, Visit visit);

  const Module& module_;
  const Api& api_;
  const opencl::Device device_;
  uint64_t resolution_ns_ = 1;
  opencl::Context context_ = nullptr;
  opencl::Queue queue_ = nullptr;
  opencl::Program program_ = nullptr;
  std::vector<std::unique_ptr<GuardedBuffer>> buffers_;  // as the module's
  std::unique_ptr<GuardedBuffer> eviction_;
  std::vector<Launch> launches_;  // by kernel of the module
  const std::vector<GuardedMemory>* inputs_ = nullptr;
  std::vector<std::vector<char>> outputs_;
  uint8_t evict_pattern_ = 0;
  long calls_ = 0;
};

OpenClRuntime::~OpenClRuntime() {
  for (const Launch& launch : launches_) {
    if (launch.kernel != nullptr) api_.ReleaseKernel(launch.kernel);
  }
  eviction_.reset();
  buffers_.clear();
  if (program_ != nullptr) api_.ReleaseProgram(program_);
  if (queue_ != nullptr) api_.ReleaseCommandQueue(queue_);
  if (context_ != nullptr) api_.ReleaseContext(context_);
}

MaybeFailure OpenClRuntime::Load(int64_t evict_bytes) {
  resolution_ns_ = std::max<size_t>(
      1, opencl::DeviceNumber<size_t>(api_, device_,
                                      opencl::kDeviceProfilingTimerResolution));
  int32_t error = kSuccess;
  context_ = api_.CreateContext(nullptr, 1, &device_, nullptr, nullptr, &error);
  if (auto failed = FailedBefore(error, "making a context")) return failed;
  queue_ = api_.CreateCommandQueue(context_, device_,
                                   opencl::kQueueProfilingEnable, &error);
  if (auto failed = FailedBefore(error, "making a queue")) return failed;
  if (auto failed = Build()) return failed;
  if (auto failed = AddBuffers()) return failed;
  for (const ModuleKernel& kernel : module_.kernels) {
    if (auto failed = AddLaunch(kernel)) return failed;
  }
  if (evict_bytes > 0) {
    eviction_ = GuardedBuffer::Create(api_, context_, "cache eviction",
                                      evict_bytes, 1, &error);
  }
  return FailedBefore(error, "memory for emptying the caches");
}

MaybeFailure OpenClRuntime::Build() {
  const char* source = module_.loadable.data();
  const size_t bytes = module_.loadable.size();
  int32_t error = kSuccess;
  program_ = api_.CreateProgramWithSource(context_, 1, &source, &bytes, &error);
  if (auto failed = FailedBefore(error, "loading the source")) return failed;
  error = api_.BuildProgram(program_, 1, &device_, "", nullptr, nullptr);
  if (error != opencl::kBuildProgramFailure) {
    return FailedBefore(error, "compiling");
  }
  size_t log_bytes = 0;
  api_.GetProgramBuildInfo(program_, device_, opencl::kProgramBuildLog, 0,
                           nullptr, &log_bytes);
  std::string log(log_bytes, '\0');
  api_.GetProgramBuildInfo(program_, device_, opencl::kProgramBuildLog,
                           log_bytes, log.data(), nullptr);
  log.erase(std::find(log.begin(), log.end(), '\0'), log.end());
  return Failed(v1::OUTCOME_COMPILE_ERROR, log.substr(0, kMaxLogBytes));
}

MaybeFailure OpenClRuntime::AddBuffers() {
  const size_t alignment =
      std::max<size_t>(1, opencl::DeviceNumber<uint32_t>(
                              api_, device_, opencl::kDeviceMemBaseAddrAlign) /
                              8);
  for (const ModuleBuffer& wanted : module_.buffers) {
    const char* role = wanted.role == BufferRole::kInput    ? "input "
                       : wanted.role == BufferRole::kOutput ? "output "
                                                            : "workspace ";
    int32_t error = kSuccess;
    const std::string name = role + wanted.name;
    auto made =
        wanted.image_width > 0
            ? GuardedBuffer::CreateImage(
                  api_, context_, name, wanted.dtype == DType::kF16,
                  wanted.image_width, wanted.image_height, &error)
            : GuardedBuffer::Create(
                  api_, context_, name, wanted.bytes,
                  std::max(alignment, static_cast<size_t>(wanted.alignment)),
                  &error);
    if (auto failed = FailedBefore(
            error,
            absl::StrCat("memory for ", name, " (", wanted.bytes, " bytes)"))) {
      return failed;
    }
    buffers_.push_back(std::move(made));
  }
  return std::nullopt;
}

MaybeFailure OpenClRuntime::AddLaunch(const ModuleKernel& kernel) {
  Launch& launch = launches_.emplace_back();
  launch.entry = kernel.entry;
  const size_t dimensions = kernel.grid.size();
  if (dimensions == 0 || dimensions > kMaxDimensions ||
      kernel.group.size() != dimensions) {
    return Failed(v1::OUTCOME_COMPILE_ERROR,
                  absl::StrCat("kernel ", kernel.entry, " has ", dimensions,
                               " dimensions of groups and ",
                               kernel.group.size(), " of work-items"));
  }
  launch.dimensions = static_cast<uint32_t>(dimensions);
  size_t items = 1;
  for (size_t d = 0; d < dimensions; ++d) {
    launch.local[d] = static_cast<size_t>(kernel.group[d]);
    launch.global[d] = static_cast<size_t>(kernel.grid[d]) * launch.local[d];
    items *= launch.local[d];
  }
  int32_t error = kSuccess;
  launch.kernel = api_.CreateKernel(program_, kernel.entry.c_str(), &error);
  if (auto failed = FailedBefore(error, "kernel " + kernel.entry)) {
    return failed;
  }
  for (size_t i = 0; i < kernel.arguments.size(); ++i) {
    const auto index = static_cast<size_t>(kernel.arguments[i]);
    error = api_.SetKernelArg(launch.kernel, static_cast<uint32_t>(i),
                              sizeof(opencl::Memory), &buffer(index).memory());
    if (auto failed = FailedBefore(
            error, absl::StrCat("argument ", i, " of ", kernel.entry))) {
      return failed;
    }
  }
  size_t most = 0;
  api_.GetKernelWorkGroupInfo(launch.kernel, device_,
                              opencl::kKernelWorkGroupSize, sizeof(most), &most,
                              nullptr);
  if (most > 0 && items > most) {
    return Failed(v1::OUTCOME_REFUSED,
                  absl::StrCat("kernel ", kernel.entry, " has groups of ",
                               items, " work-items; this device runs it with ",
                               most, " at most"));
  }
  uint64_t local_bytes = 0;
  api_.GetKernelWorkGroupInfo(launch.kernel, device_,
                              opencl::kKernelLocalMemSize, sizeof(local_bytes),
                              &local_bytes, nullptr);
  const auto has = opencl::DeviceNumber<uint64_t>(api_, device_,
                                                  opencl::kDeviceLocalMemSize);
  if (has > 0 && local_bytes > has) {
    return Failed(
        v1::OUTCOME_REFUSED,
        absl::StrCat("kernel ", kernel.entry, " needs ", local_bytes,
                     " bytes of local memory; this device has ", has));
  }
  return std::nullopt;
}

template <typename Visit>
MaybeFailure OpenClRuntime::ForEach(std::initializer_list<BufferRole> roles,
                                    Visit visit) {
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (std::find(roles.begin(), roles.end(), module_.buffers[i].role) ==
        roles.end()) {
      continue;
    }
    if (MaybeFailure failed =
            FailedBefore(visit(buffer(i)), buffer(i).name())) {
      return failed;
    }
  }
  return std::nullopt;
}

MaybeFailure OpenClRuntime::Finish() {
  const int32_t error = api_.Finish(queue_);
  if (error == kSuccess) return std::nullopt;
  return Failed(OutcomeOfRun(error),
                absl::StrCat("call ", calls_, ": ", ErrorName(error)));
}

MaybeFailure OpenClRuntime::SetInputs(
    const std::vector<GuardedMemory>& inputs) {
  inputs_ = &inputs;
  size_t next = 0;
  return ForEach({BufferRole::kInput}, [&](GuardedBuffer& buffer) {
    const GuardedMemory& input = inputs[next++];
    CHECK(input.bytes() == 0 || input.bytes() == buffer.bytes())
        << input.name();
    const int32_t error =
        input.bytes() == 0 ? kSuccess : buffer.Write(queue_, input.data());
    return error != kSuccess ? error : buffer.Guard(queue_);
  });
}

MaybeFailure OpenClRuntime::Poison(uint8_t pattern) {
  if (auto failed = ForEach({BufferRole::kOutput, BufferRole::kWorkspace},
                            [&](GuardedBuffer& buffer) {
                              return buffer.Poison(queue_, pattern);
                            })) {
    return failed;
  }
  return Finish();
}

MaybeFailure OpenClRuntime::Enqueue(opencl::Event* first, opencl::Event* last) {
  NoteCall(++calls_);
  const std::vector<int>& sequence = module_.host_sequence;
  for (size_t i = 0; i < sequence.size(); ++i) {
    const Launch& launch = launches_[static_cast<size_t>(sequence[i])];
    // One event says start and end where there is one kernel.
    opencl::Event* event = i + 1 == sequence.size() ? last
                           : i == 0                 ? first
                                                    : nullptr;
    const int32_t error = api_.EnqueueNDRangeKernel(
        queue_, launch.kernel, launch.dimensions, nullptr, launch.global,
        launch.local, 0, nullptr, event);
    if (auto failed = FailedBefore(error, "launching kernel " + launch.entry)) {
      return failed;
    }
  }
  return std::nullopt;
}

MaybeFailure OpenClRuntime::Call() {
  if (auto failed = Enqueue(nullptr, nullptr)) return failed;
  return Finish();
}

MaybeFailure OpenClRuntime::Run(int64_t calls, std::vector<Span>* spans) {
  std::vector<opencl::Event> first(static_cast<size_t>(calls), nullptr);
  std::vector<opencl::Event> last(static_cast<size_t>(calls), nullptr);
  MaybeFailure failed;
  for (size_t i = 0; i < last.size() && !failed; ++i) {
    failed = Enqueue(&first[i], &last[i]);
  }
  if (!failed) failed = Finish();
  int32_t error = kSuccess;
  for (size_t i = 0; i < last.size(); ++i) {
    const opencl::Event begin = first[i] == nullptr ? last[i] : first[i];
    Span span;
    if (!failed && error == kSuccess) {
      error =
          api_.GetEventProfilingInfo(begin, opencl::kProfilingCommandStart,
                                     sizeof(span.start), &span.start, nullptr);
    }
    if (!failed && error == kSuccess) {
      error = api_.GetEventProfilingInfo(last[i], opencl::kProfilingCommandEnd,
                                         sizeof(span.end), &span.end, nullptr);
    }
    spans->push_back(span);
    if (first[i] != nullptr) api_.ReleaseEvent(first[i]);
    if (last[i] != nullptr) api_.ReleaseEvent(last[i]);
  }
  return failed ? failed : FailedBefore(error, "reading a kernel's times");
}

MaybeFailure OpenClRuntime::TimeCalls(int64_t calls, int64_t* elapsed_ns) {
  uint64_t each = 0, together = 0;
  for (int64_t done = 0; done < calls; done += kMaxInFlight) {
    std::vector<Span> spans;
    if (auto failed = Run(std::min(kMaxInFlight, calls - done), &spans)) {
      return failed;
    }
    for (const Span& span : spans) each += span.end - span.start;
    together += spans.back().end - spans.front().start;
  }
  const bool fine =
      each >= kTicksPerCall * resolution_ns_ * static_cast<uint64_t>(calls);
  *elapsed_ns = static_cast<int64_t>(fine ? each : together);
  return std::nullopt;
}

MaybeFailure OpenClRuntime::Evict() {
  CHECK(eviction_ != nullptr) << "eviction was not asked for";
  if (auto failed = FailedBefore(eviction_->Poison(queue_, ++evict_pattern_),
                                 "emptying the caches")) {
    return failed;
  }
  return Finish();
}

MaybeFailure OpenClRuntime::ReadOutputs(std::vector<const void*>* outputs) {
  size_t next = 0;
  outputs_.resize(module_.BuffersWithRole(BufferRole::kOutput).size());
  return ForEach({BufferRole::kOutput}, [&](const GuardedBuffer& buffer) {
    std::vector<char>& bytes = outputs_[next++];
    bytes.resize(static_cast<size_t>(buffer.bytes()));
    const int32_t error = buffer.Read(queue_, bytes.data());
    outputs->push_back(bytes.data());
    return error;
  });
}

MaybeFailure OpenClRuntime::FindDamage(std::string* damage) {
  damage->clear();
  if (auto failed = ForEach(
          {BufferRole::kInput, BufferRole::kOutput, BufferRole::kWorkspace},
          [&](const GuardedBuffer& buffer) {
            return damage->empty() ? buffer.FindDamage(queue_, damage)
                                   : kSuccess;
          })) {
    return failed;
  }
  size_t next = 0;
  return ForEach({BufferRole::kInput}, [&](const GuardedBuffer& buffer) {
    const GuardedMemory& given = (*inputs_)[next++];
    if (!damage->empty() || given.bytes() == 0) return kSuccess;
    std::vector<char> now(static_cast<size_t>(given.bytes()));
    const int32_t error = buffer.Read(queue_, now.data());
    if (error == kSuccess &&
        std::memcmp(now.data(), given.data(), now.size()) != 0) {
      *damage = absl::StrCat(buffer.name(), " was overwritten");
    }
    return error;
  });
}

}  // namespace

RuntimeOrFailure CreateOpenClRuntime(const Module& module,
                                     const RuntimeOptions& options) {
  const absl::StatusOr<opencl::FoundDevice> found =
      opencl::FindDevice(options.device);
  if (!found.ok()) {
    return {nullptr, Failed(v1::OUTCOME_DEVICE_FAULT,
                            std::string(found.status().message()))};
  }
  auto runtime = std::make_unique<OpenClRuntime>(module, *found);
  MaybeFailure failed = runtime->Load(options.evict_bytes);
  if (failed) return {nullptr, std::move(failed)};
  return {std::move(runtime), std::nullopt};
}

}  // namespace regatta
