#include "device_agent/cuda_sim/simulated_context.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ptxsim/cost_model.h"

namespace regatta::cuda_sim {
namespace {

using ptxsim::FaultKind;

// Races in global memory are looked for in launches whose buffers are no larger
// together: the search takes ten times their bytes.
constexpr uint64_t kMaxRacesBytes = uint64_t{64} << 20;
constexpr double kPicosecondsPerSecond = 1e12;

cuda::Result ErrorOf(FaultKind kind) {
  switch (kind) {
    case FaultKind::kGlobalOutOfBounds:
      return cuda::kIllegalAddress;
    case FaultKind::kMisaligned:
      return cuda::kMisalignedAddress;
    default:
      return cuda::kLaunchFailed;
  }
}

bool Ends(FaultKind kind) {
  return kind != FaultKind::kTimeout && kind != FaultKind::kDeadlock;
}

void Append(std::string* key, const void* bytes, size_t count) {
  key->append(static_cast<const char*>(bytes), count);
}

}  // namespace

SimulatedContext::SimulatedContext(Gpu gpu)
    : gpu_(std::move(gpu)), memory_(kMemoryBytes), memo_(&memory_) {}

void SimulatedContext::BeginCall() {
  if (error_ == cuda::kSuccess && !hung_) fault_.clear();
}

cuda::Result SimulatedContext::Refuse(cuda::Result error, std::string why) {
  fault_ = std::move(why);
  return error;
}

void SimulatedContext::Advance(uint64_t bytes) {
  picoseconds_ +=
      std::llround(static_cast<double>(bytes) /
                   static_cast<double>(gpu_.model.memory_bytes_per_second) *
                   kPicosecondsPerSecond);
}

cuda::Result SimulatedContext::Allocate(uint64_t bytes, bool managed,
                                        uint64_t* address) {
  if (error_ != cuda::kSuccess) return error_;
  const auto made =
      managed ? memory_.AllocateShared(bytes) : memory_.Allocate(bytes);
  if (!made.ok()) {
    return Refuse(absl::IsResourceExhausted(made.status())
                      ? cuda::kOutOfMemory
                      : cuda::kInvalidValue,
                  std::string(made.status().message()));
  }
  *address = *made;
  memo_.NoteWrite(*made);
  return cuda::kSuccess;
}

cuda::Result SimulatedContext::Free(uint64_t address) {
  if (error_ != cuda::kSuccess) return error_;
  const absl::Status status = memory_.Free(address);
  if (!status.ok()) {
    return Refuse(cuda::kInvalidValue, std::string(status.message()));
  }
  memo_.NoteWrite(address);
  return cuda::kSuccess;
}

cuda::Result SimulatedContext::Write(uint64_t address, const void* from,
                                     uint64_t bytes) {
  if (error_ != cuda::kSuccess) return error_;
  const absl::Status status =
      memory_.Write(address, {static_cast<const std::byte*>(from), bytes});
  if (!status.ok()) {
    return Refuse(cuda::kInvalidValue, std::string(status.message()));
  }
  memo_.NoteWrite(address);
  Advance(bytes);
  return cuda::kSuccess;
}

cuda::Result SimulatedContext::Read(uint64_t address, void* to,
                                    uint64_t bytes) {
  if (error_ != cuda::kSuccess) return error_;
  const absl::Status status =
      memory_.Read(address, {static_cast<std::byte*>(to), bytes});
  if (!status.ok()) {
    return Refuse(cuda::kInvalidValue, std::string(status.message()));
  }
  Advance(bytes);
  return cuda::kSuccess;
}

cuda::Result SimulatedContext::Fill(uint64_t address, uint8_t value,
                                    uint64_t bytes) {
  if (error_ != cuda::kSuccess) return error_;
  const absl::Status status = memory_.Fill(address, bytes, std::byte{value});
  if (!status.ok()) {
    return Refuse(cuda::kInvalidValue, std::string(status.message()));
  }
  memo_.NoteWrite(address);
  Advance(bytes);
  return cuda::kSuccess;
}

cuda::Result SimulatedContext::LoadCode(const void* image, CodeModule** module,
                                        std::string* log) {
  if (error_ != cuda::kSuccess) return error_;
  if (LooksLikeCubin(image)) {
    last_cubin_.reset();
    const auto bytes = CubinBytes(image);
    if (!bytes.ok()) return cuda::kInvalidImage;
    auto cubin = ptxsim::ReadCubin(*bytes);
    if (!cubin.ok()) {
      return Refuse(cuda::kInvalidImage, std::string(cubin.status().message()));
    }
    last_cubin_ = *std::move(cubin);
    return cuda::kNoBinaryForGpu;
  }
  auto made =
      CodeModule::Create(static_cast<const char*>(image),
                         last_cubin_.has_value() ? &*last_cubin_ : nullptr,
                         gpu_.model.architecture);
  last_cubin_.reset();
  if (!made.ok()) {
    *log = std::string(made.status().message());
    return cuda::kInvalidPtx;
  }
  modules_.push_back(std::make_unique<CodeModule>(*std::move(made)));
  *module = modules_.back().get();
  return cuda::kSuccess;
}

cuda::Result SimulatedContext::Unload(CodeModule* module) {
  if (error_ != cuda::kSuccess) return error_;
  const auto found =
      std::find_if(modules_.begin(), modules_.end(),
                   [&](const auto& one) { return one.get() == module; });
  if (found == modules_.end()) return cuda::kInvalidHandle;
  modules_.erase(found);
  // Another module may come to stand where this one stood.
  memo_.Clear();
  return cuda::kSuccess;
}

cuda::Result SimulatedContext::Allow(Kernel* kernel, int64_t dynamic_shared) {
  if (error_ != cuda::kSuccess) return error_;
  const int64_t most = int64_t{gpu_.model.architecture.max_shared_per_block} -
                       kernel->entry->static_shared_bytes;
  if (dynamic_shared < 0 || dynamic_shared > most) {
    return Refuse(cuda::kInvalidValue,
                  absl::StrCat(dynamic_shared,
                               " bytes of dynamic shared memory; at most ",
                               most, " are left beside the static"));
  }
  kernel->max_dynamic_shared = static_cast<uint32_t>(dynamic_shared);
  return cuda::kSuccess;
}

cuda::Result SimulatedContext::CheckShape(const Kernel& kernel,
                                          const LaunchShape& shape) {
  if (shape.shared_bytes > kernel.max_dynamic_shared) {
    return Refuse(cuda::kInvalidValue,
                  absl::StrCat(shape.shared_bytes,
                               " bytes of dynamic shared memory, leave for ",
                               kernel.max_dynamic_shared));
  }
  if (shape.block.Count() > static_cast<uint64_t>(kernel.max_threads)) {
    return Refuse(cuda::kLaunchOutOfResources,
                  absl::StrCat(shape.block.Count(), " threads of ",
                               kernel.registers, " registers, at most ",
                               kernel.max_threads, " are possible"));
  }
  return cuda::kSuccess;
}

cuda::Result SimulatedContext::Launch(const Kernel& kernel,
                                      const LaunchShape& shape,
                                      void** arguments) {
  if (error_ != cuda::kSuccess) return error_;
  // Stands behind the one that never ends.
  if (hung_) return cuda::kSuccess;
  const cuda::Result refused = CheckShape(kernel, shape);
  if (refused != cuda::kSuccess) return refused;
  const auto& parameters = kernel.entry->parameters;
  std::vector<ptxsim::Argument> values;
  std::string key;
  Append(&key, &kernel.entry, sizeof(kernel.entry));
  Append(&key, &shape, sizeof(shape));
  for (size_t i = 0; i < parameters.size(); ++i) {
    values.push_back(
        ptxsim::Argument::FromBytes(arguments[i], parameters[i].bytes));
    Append(&key, arguments[i], parameters[i].bytes);
  }
  if (const std::optional<int64_t> known = memo_.Find(key)) {
    picoseconds_ += *known;
    return cuda::kSuccess;
  }
  memo_.Before(key, values);
  ptxsim::RunOptions options;
  options.find_global_races = BytesBehind(values) <= kMaxRacesBytes;
  ptxsim::Launch launch;
  launch.entry = kernel.entry->name;
  launch.grid = shape.grid;
  launch.group = shape.block;
  launch.dynamic_shared_bytes = shape.shared_bytes;
  launch.arguments = std::move(values);
  ++simulated_launches_;
  const auto report =
      ptxsim::RunKernel(kernel.module->ptx(), launch, memory_, options);
  if (!report.ok()) {
    return Refuse(absl::IsResourceExhausted(report.status())
                      ? cuda::kOutOfMemory
                      : cuda::kInvalidValue,
                  std::string(report.status().message()));
  }
  if (report->fault.has_value()) {
    TakeFault(*report->fault);
    return cuda::kSuccess;
  }
  const auto cost = ptxsim::EstimateCost(
      gpu_.model,
      {.threads = static_cast<int>(shape.block.Count()),
       .registers_per_thread = kernel.registers,
       .shared_bytes = kernel.entry->static_shared_bytes + shape.shared_bytes},
      report->blocks, report->counters);
  if (!cost.ok()) {
    return Refuse(cuda::kLaunchOutOfResources,
                  std::string(cost.status().message()));
  }
  const int64_t picoseconds = std::llround(cost->nanoseconds * 1e3);
  memo_.After(key, *report, picoseconds);
  picoseconds_ += picoseconds;
  return cuda::kSuccess;
}

uint64_t SimulatedContext::BytesBehind(
    const std::vector<ptxsim::Argument>& arguments) const {
  uint64_t bytes = 0;
  for (const ptxsim::Argument& argument : arguments) {
    uint64_t address = 0;
    if (argument.bytes().size() != sizeof(address)) continue;
    std::memcpy(&address, argument.bytes().data(), sizeof(address));
    const ptxsim::DeviceMemory::Buffer* buffer = memory_.Near(address);
    if (buffer != nullptr) bytes += buffer->bytes;
  }
  return bytes;
}

void SimulatedContext::TakeFault(const ptxsim::Fault& fault) {
  fault_ = fault.ToString();
  if (Ends(fault.kind)) {
    error_ = ErrorOf(fault.kind);
  } else {
    hung_ = true;
  }
}

}  // namespace regatta::cuda_sim
