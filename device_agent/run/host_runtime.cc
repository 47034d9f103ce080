#include "device_agent/run/host_runtime.h"

#include <dlfcn.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/memory_file.h"
#include "base/status_macros.h"
#include "compiler/module/c_interface.h"
#include "device_agent/run/cache_eviction.h"
#include "device_agent/run/crash_report.h"
#include "device_agent/sandbox/sandbox.h"

namespace regatta {
namespace {

// What the workspace needs, and what callers who care for speed give tensors,
// whatever less a module would accept.
constexpr int64_t kAlignment = 64;

// The exported function NAME_call: pointers to inputs then outputs, and the
// workspace; 0 or a code of c_interface.h.
using Entry = int (*)(void* const* buffers, void* workspace);

// Internal with the loader's message, or when NAME_call is missing; other
// errors are of this board's memory files.
absl::StatusOr<Entry> LoadEntry(const Module& module) {
  ASSIGN_OR_RETURN(UniqueFd file, SealedMemoryFile("module", module.loadable));
  const std::string path = absl::StrCat("/proc/self/fd/", file.get());
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::InternalError(absl::StrCat("loading the module: ", dlerror()));
  }
  const std::string symbol = module.name + "_call";
  const auto entry = reinterpret_cast<Entry>(dlsym(library, symbol.c_str()));
  if (entry == nullptr) {
    return absl::InternalError(absl::StrCat("the module exports no ", symbol));
  }
  return entry;
}

std::string CallError(int code) {
  switch (code) {
    case kCallNoMemory:
      return "no memory for its workspace";
    case kCallNullArgument:
      return "a null argument";
    case kCallMisaligned:
      return "a misaligned argument";
    default:
      return "an unknown code";
  }
}

class HostRuntime : public ModuleRuntime {
 public:
  HostRuntime(Entry entry, std::vector<GuardedMemory> outputs,
              std::vector<GuardedMemory> workspace,
              const RuntimeOptions& options)
      : entry_(entry),
        clock_(*options.clock),
        outputs_(std::move(outputs)),
        workspace_(std::move(workspace)) {
    for (const GuardedMemory& memory : outputs_) DescribeCrashesNear(&memory);
    for (const GuardedMemory& memory : workspace_) DescribeCrashesNear(&memory);
    if (options.evict_bytes > 0) {
      eviction_ = std::make_unique<CacheEviction>(options.evict_bytes);
    }
  }

  MaybeFailure SetInputs(const std::vector<GuardedMemory>& inputs) override {
    for (const GuardedMemory& input : inputs) {
      pointers_.push_back(input.data());
      DescribeCrashesNear(&input);
    }
    for (const GuardedMemory& output : outputs_) {
      pointers_.push_back(output.data());
    }
    return std::nullopt;
  }

  absl::Status Tighten() override { return TightenForCandidate(); }

  MaybeFailure Poison(uint8_t pattern) override {
    for (GuardedMemory& memory : outputs_) memory.Poison(pattern);
    for (GuardedMemory& memory : workspace_) memory.Poison(pattern);
    return std::nullopt;
  }

  MaybeFailure Call() override {
    NoteCall(++calls_);
    const int error = entry_(
        pointers_.data(), workspace_.empty() ? nullptr : workspace_[0].data());
    if (error == kCallOk) return std::nullopt;
    return Failed(v1::OUTCOME_CRASHED,
                  absl::StrCat("call ", calls_, " returned ", error, " (",
                               CallError(error), ")"));
  }

  MaybeFailure TimeCalls(int64_t calls, int64_t* elapsed_ns) override {
    const SteadyTime start = clock_.Steady();
    for (int64_t i = 0; i < calls; ++i) {
      if (MaybeFailure failed = Call()) return failed;
    }
    *elapsed_ns = clock_.Steady().ns - start.ns;
    return std::nullopt;
  }

  MaybeFailure Evict() override {
    CHECK(eviction_ != nullptr) << "eviction was not asked for";
    eviction_->Evict();
    return std::nullopt;
  }

  MaybeFailure ReadOutputs(std::vector<const void*>* outputs) override {
    for (const GuardedMemory& output : outputs_) {
      outputs->push_back(output.data());
    }
    return std::nullopt;
  }

  MaybeFailure FindDamage(std::string* damage) override {
    damage->clear();
    for (const auto* group : {&outputs_, &workspace_}) {
      for (const GuardedMemory& memory : *group) {
        if (damage->empty()) *damage = memory.Damage();
      }
    }
    return std::nullopt;
  }

 private:
  const Entry entry_;
  const Clock& clock_;
  std::vector<GuardedMemory> outputs_;
  std::vector<GuardedMemory> workspace_;  // one or none
  std::vector<void*> pointers_;           // inputs, then outputs
  std::unique_ptr<CacheEviction> eviction_;
  long calls_ = 0;
};

absl::Status Allocate(const Module& module, std::vector<GuardedMemory>* outputs,
                      std::vector<GuardedMemory>* workspace) {
  for (const ModuleBuffer* output :
       module.BuffersWithRole(BufferRole::kOutput)) {
    ASSIGN_OR_RETURN(
        GuardedMemory memory,
        GuardedMemory::Allocate("output " + output->name, output->bytes,
                                std::max(kAlignment, output->alignment)));
    outputs->push_back(std::move(memory));
  }
  if (module.workspace_bytes > 0) {
    ASSIGN_OR_RETURN(GuardedMemory memory,
                     GuardedMemory::Allocate(
                         "the workspace", module.workspace_bytes, kAlignment));
    workspace->push_back(std::move(memory));
  }
  return absl::OkStatus();
}

}  // namespace

RuntimeOrFailure CreateHostRuntime(const Module& module,
                                   const RuntimeOptions& options) {
  std::vector<GuardedMemory> outputs, workspace;
  const absl::Status allocated = Allocate(module, &outputs, &workspace);
  if (!allocated.ok()) {
    return {nullptr, Failed(v1::OUTCOME_OUT_OF_MEMORY,
                            std::string(allocated.message()))};
  }
  const absl::StatusOr<Entry> entry = LoadEntry(module);
  if (!entry.ok()) {
    return {nullptr,
            Failed(absl::IsInternal(entry.status()) ? v1::OUTCOME_CRASHED
                                                    : v1::OUTCOME_DEVICE_FAULT,
                   std::string(entry.status().message()))};
  }
  return {std::make_unique<HostRuntime>(*entry, std::move(outputs),
                                        std::move(workspace), options),
          std::nullopt};
}

}  // namespace regatta
