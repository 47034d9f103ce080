#include "device_agent/run/opencl_runtime.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/utf8.h"
#include "device_agent/run/crash_report.h"
#include "device_agent/run/device_time.h"
#include "device_agent/run/launch_shape.h"
#include "device_agent/run/opencl_api.h"
#include "device_agent/run/opencl_device.h"
#include "device_agent/run/opencl_errors.h"
#include "device_agent/run/opencl_memory.h"

namespace regatta {
namespace {

using opencl::Api;
using opencl::FailureOf;
using opencl::GuardedBuffer;
using opencl::kSuccess;
using opencl::Step;

constexpr size_t kMaxLogBytes = 2000;
// Launches that are in flight at once: their events are host memory.
constexpr int64_t kMaxInFlight = 512;
// A call must last so many ticks of the device's clock to be timed by itself:
// the error of both ends is then below 1 %.
constexpr int64_t kTicksPerCall = 200;
// What a driver says beyond that is no resolution.
constexpr size_t kCoarsestTickNs = 1'000'000'000;

struct Launch {
  opencl::Kernel kernel = nullptr;
  std::string entry;
  uint32_t dimensions = 1;
  size_t global[LaunchShape::kMaxDimensions] = {1, 1, 1};
  size_t local[LaunchShape::kMaxDimensions] = {1, 1, 1};
  bool taken = false;  // by the driver, at least once
};

class OpenClRuntime : public ModuleRuntime {
 public:
  OpenClRuntime(const Module& module, opencl::FoundDevice found,
                const Clock* clock)
      : module_(module),
        api_(*found.api),
        device_(found.device),
        host_time_(clock) {}
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
  MaybeFailure Build();
  MaybeFailure AddBuffers();
  MaybeFailure AddLaunch(const ModuleKernel& kernel);
  MaybeFailure CheckLimits(const Launch& launch, int64_t threads) const;
  MaybeFailure Finish();
  // Whose it is that a launch failed: an error of a kernel that runs is told by
  // whatever is asked next.
  MaybeFailure LaunchFailed(int32_t error, const Launch& launch);
  // Enqueues the host sequence; `first` and `last` may be null.
  MaybeFailure Enqueue(opencl::Event* first, opencl::Event* last);
  // Waits for `calls` calls and appends when each ran.
  MaybeFailure Run(int64_t calls, std::vector<CallSpan>* spans);
  // Of buffer `index` of the module.
  GuardedBuffer& buffer(size_t index) { return *buffers_[index]; }
  template <typename Visit>
  MaybeFailure ForEach(Step step, std::initializer_list<BufferRole> roles,
                       Visit visit);

  const Module& module_;
  const Api& api_;
  const opencl::Device device_;
  const HostTime host_time_;
  int64_t resolution_ns_ = 1;
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
  bool running_ = false;  // kernels that were not waited for
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
  resolution_ns_ = static_cast<int64_t>(std::clamp<size_t>(
      opencl::DeviceNumber<size_t>(api_, device_,
                                   opencl::kDeviceProfilingTimerResolution),
      1, kCoarsestTickNs));
  int32_t error = kSuccess;
  context_ = api_.CreateContext(nullptr, 1, &device_, nullptr, nullptr, &error);
  if (auto failed = FailureOf(error, Step::kDevice, "making a context")) {
    return failed;
  }
  queue_ = api_.CreateCommandQueue(context_, device_,
                                   opencl::kQueueProfilingEnable, &error);
  if (auto failed = FailureOf(error, Step::kDevice, "making a queue")) {
    return failed;
  }
  if (auto failed = Build()) return failed;
  if (auto failed = AddBuffers()) return failed;
  for (const ModuleKernel& kernel : module_.kernels) {
    if (auto failed = AddLaunch(kernel)) return failed;
  }
  if (evict_bytes > 0) {
    eviction_ = GuardedBuffer::Create(api_, context_, "cache eviction",
                                      evict_bytes, 1, &error);
  }
  return FailureOf(error, Step::kBuffers, "memory for emptying the caches");
}

MaybeFailure OpenClRuntime::Build() {
  const char* source = module_.loadable.data();
  const size_t bytes = module_.loadable.size();
  int32_t error = kSuccess;
  program_ = api_.CreateProgramWithSource(context_, 1, &source, &bytes, &error);
  if (auto failed = FailureOf(error, Step::kCode, "loading the source")) {
    return failed;
  }
  error = api_.BuildProgram(program_, 1, &device_, "", nullptr, nullptr);
  if (error != opencl::kBuildProgramFailure) {
    return FailureOf(error, Step::kCode, "compiling");
  }
  size_t log_bytes = 0;
  api_.GetProgramBuildInfo(program_, device_, opencl::kProgramBuildLog, 0,
                           nullptr, &log_bytes);
  std::string log(log_bytes, '\0');
  api_.GetProgramBuildInfo(program_, device_, opencl::kProgramBuildLog,
                           log_bytes, log.data(), nullptr);
  log.erase(std::find(log.begin(), log.end(), '\0'), log.end());
  return Failed(v1::OUTCOME_COMPILE_ERROR, Utf8Beginning(log, kMaxLogBytes));
}

MaybeFailure OpenClRuntime::AddBuffers() {
  const size_t alignment =
      std::max<size_t>(1, opencl::DeviceNumber<uint32_t>(
                              api_, device_, opencl::kDeviceMemBaseAddrAlign) /
                              8);
  for (const ModuleBuffer& wanted : module_.buffers) {
    int32_t error = kSuccess;
    const std::string name = NameOf(wanted);
    auto made =
        wanted.image_width > 0
            ? GuardedBuffer::CreateImage(
                  api_, context_, name, wanted.dtype == DType::kF16,
                  wanted.image_width, wanted.image_height, &error)
            : GuardedBuffer::Create(
                  api_, context_, name, wanted.bytes,
                  std::max(alignment, static_cast<size_t>(wanted.alignment)),
                  &error);
    if (auto failed = FailureOf(
            error, Step::kBuffers,
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
  LaunchShape shape;
  if (auto bad = ReadShape(kernel, &shape)) return bad;
  launch.dimensions = shape.dimensions;
  for (size_t d = 0; d < shape.dimensions; ++d) {
    launch.local[d] = shape.threads[d];
    launch.global[d] = size_t{shape.groups[d]} * shape.threads[d];
  }
  int32_t error = kSuccess;
  launch.kernel = api_.CreateKernel(program_, kernel.entry.c_str(), &error);
  if (auto failed = FailureOf(error, Step::kCode, "kernel " + kernel.entry)) {
    return failed;
  }
  for (size_t i = 0; i < kernel.arguments.size(); ++i) {
    const auto index = static_cast<size_t>(kernel.arguments[i]);
    error = api_.SetKernelArg(launch.kernel, static_cast<uint32_t>(i),
                              sizeof(opencl::Memory), &buffer(index).memory());
    if (auto failed =
            FailureOf(error, Step::kCode,
                      absl::StrCat("argument ", i, " of ", kernel.entry))) {
      return failed;
    }
  }
  return CheckLimits(launch, shape.group_threads);
}

MaybeFailure OpenClRuntime::CheckLimits(const Launch& launch,
                                        int64_t threads) const {
  size_t most = 0;
  api_.GetKernelWorkGroupInfo(launch.kernel, device_,
                              opencl::kKernelWorkGroupSize, sizeof(most), &most,
                              nullptr);
  if (most > 0 && static_cast<uint64_t>(threads) > most) {
    return Failed(
        v1::OUTCOME_REFUSED,
        absl::StrCat("kernel ", launch.entry, " has groups of ", threads,
                     " work-items; this device runs it with ", most,
                     " at most"));
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
        absl::StrCat("kernel ", launch.entry, " needs ", local_bytes,
                     " bytes of local memory; this device has ", has));
  }
  return std::nullopt;
}

template <typename Visit>
MaybeFailure OpenClRuntime::ForEach(Step step,
                                    std::initializer_list<BufferRole> roles,
                                    Visit visit) {
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (std::find(roles.begin(), roles.end(), module_.buffers[i].role) ==
        roles.end()) {
      continue;
    }
    if (MaybeFailure failed =
            FailureOf(visit(buffer(i)), step, buffer(i).name())) {
      return failed;
    }
  }
  return std::nullopt;
}

MaybeFailure OpenClRuntime::Finish() {
  const int32_t error = api_.Finish(queue_);
  const Step step = running_ ? Step::kRun : Step::kBuffers;
  if (error == kSuccess) running_ = false;
  return FailureOf(error, step, absl::StrCat("call ", calls_));
}

MaybeFailure OpenClRuntime::LaunchFailed(int32_t error, const Launch& launch) {
  if (running_) {
    if (auto failed = Finish()) return failed;
  }
  // What was taken before, nobody refuses.
  return FailureOf(
      error, launch.taken ? Step::kDevice : Step::kLaunch,
      absl::StrCat("call ", calls_, ", launching kernel ", launch.entry));
}

MaybeFailure OpenClRuntime::SetInputs(
    const std::vector<GuardedMemory>& inputs) {
  inputs_ = &inputs;
  size_t next = 0;
  return ForEach(
      Step::kBuffers, {BufferRole::kInput}, [&](GuardedBuffer& buffer) {
        const GuardedMemory& input = inputs[next++];
        CHECK(input.bytes() == 0 || input.bytes() == buffer.bytes())
            << input.name();
        const int32_t error =
            input.bytes() == 0 ? kSuccess : buffer.Write(queue_, input.data());
        return error != kSuccess ? error : buffer.Guard(queue_);
      });
}

MaybeFailure OpenClRuntime::Poison(uint8_t pattern) {
  if (auto failed =
          ForEach(Step::kBuffers, {BufferRole::kOutput, BufferRole::kWorkspace},
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
    Launch& launch = launches_[static_cast<size_t>(sequence[i])];
    // One event says start and end where there is one kernel.
    opencl::Event* event = i + 1 == sequence.size() ? last
                           : i == 0                 ? first
                                                    : nullptr;
    const int32_t error = api_.EnqueueNDRangeKernel(
        queue_, launch.kernel, launch.dimensions, nullptr, launch.global,
        launch.local, 0, nullptr, event);
    if (error != kSuccess) return LaunchFailed(error, launch);
    launch.taken = true;
    running_ = true;
  }
  return std::nullopt;
}

MaybeFailure OpenClRuntime::Call() {
  if (auto failed = Enqueue(nullptr, nullptr)) return failed;
  return Finish();
}

MaybeFailure OpenClRuntime::Run(int64_t calls, std::vector<CallSpan>* spans) {
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
    CallSpan span;
    if (!failed && error == kSuccess) {
      error = api_.GetEventProfilingInfo(begin, opencl::kProfilingCommandStart,
                                         sizeof(span.start_ns), &span.start_ns,
                                         nullptr);
    }
    if (!failed && error == kSuccess) {
      error = api_.GetEventProfilingInfo(last[i], opencl::kProfilingCommandEnd,
                                         sizeof(span.end_ns), &span.end_ns,
                                         nullptr);
    }
    spans->push_back(span);
    if (first[i] != nullptr) api_.ReleaseEvent(first[i]);
    if (last[i] != nullptr) api_.ReleaseEvent(last[i]);
  }
  if (failed) return failed;
  failed = FailureOf(error, Step::kDevice, "reading a kernel's times");
  return failed ? failed : CheckSpans(*spans);
}

MaybeFailure OpenClRuntime::TimeCalls(int64_t calls, int64_t* elapsed_ns) {
  const SteadyTime begun = host_time_.Now();
  double each = 0, together = 0;
  for (int64_t done = 0; done < calls; done += kMaxInFlight) {
    std::vector<CallSpan> spans;
    if (auto failed = Run(std::min(kMaxInFlight, calls - done), &spans)) {
      return failed;
    }
    for (const CallSpan& span : spans) {
      each += static_cast<double>(span.end_ns - span.start_ns);
    }
    together +=
        static_cast<double>(spans.back().end_ns - spans.front().start_ns);
  }
  const bool fine = each >= static_cast<double>(kTicksPerCall) *
                                static_cast<double>(resolution_ns_) *
                                static_cast<double>(calls);
  const double elapsed = fine ? each : together;
  if (auto bad =
          CheckElapsed(elapsed, resolution_ns_, host_time_.Since(begun))) {
    return bad;
  }
  *elapsed_ns = std::llround(elapsed);
  return std::nullopt;
}

MaybeFailure OpenClRuntime::Evict() {
  CHECK(eviction_ != nullptr) << "eviction was not asked for";
  if (auto failed = FailureOf(eviction_->Poison(queue_, ++evict_pattern_),
                              Step::kBuffers, "emptying the caches")) {
    return failed;
  }
  return Finish();
}

MaybeFailure OpenClRuntime::ReadOutputs(std::vector<const void*>* outputs) {
  size_t next = 0;
  outputs_.resize(module_.BuffersWithRole(BufferRole::kOutput).size());
  return ForEach(Step::kDevice, {BufferRole::kOutput},
                 [&](const GuardedBuffer& buffer) {
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
          Step::kDevice,
          {BufferRole::kInput, BufferRole::kOutput, BufferRole::kWorkspace},
          [&](const GuardedBuffer& buffer) {
            return damage->empty() ? buffer.FindDamage(queue_, damage)
                                   : kSuccess;
          })) {
    return failed;
  }
  size_t next = 0;
  return ForEach(Step::kDevice, {BufferRole::kInput},
                 [&](const GuardedBuffer& buffer) {
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
  auto runtime =
      std::make_unique<OpenClRuntime>(module, *found, options.host_clock);
  MaybeFailure failed = runtime->Load(options.evict_bytes);
  if (failed) return {nullptr, std::move(failed)};
  return {std::move(runtime), std::nullopt};
}

}  // namespace regatta
