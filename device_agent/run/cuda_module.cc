#include "device_agent/run/cuda_module.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "device_agent/run/cuda_errors.h"

namespace regatta::cuda {
namespace {

constexpr size_t kMaxLogBytes = 2000;
constexpr char kArchPrefix[] = "sm_";

}  // namespace

bool RunsOn(const std::string& arch, int architecture) {
  if (arch.rfind(kArchPrefix, 0) != 0) return false;
  char* rest = nullptr;
  const long number =
      std::strtol(arch.c_str() + sizeof(kArchPrefix) - 1, &rest, 10);
  if (*rest != '\0') return number == architecture;
  return number / 10 == architecture / 10 && number <= architecture;
}

LoadedModule::~LoadedModule() {
  if (module_ != nullptr) gpu_.api->ModuleUnload(module_);
}

MaybeFailure LoadedModule::Load(const CudaBinary& binary) {
  Result error = kNoBinaryForGpu;
  if (!binary.cubin.empty() && RunsOn(binary.arch, gpu_.architecture)) {
    error = gpu_.api->ModuleLoadDataEx(&module_, binary.cubin.data(), 0,
                                       nullptr, nullptr);
  }
  if (error == kSuccess) return std::nullopt;
  // An image that this driver does not know may be newer than the driver.
  if (error != kNoBinaryForGpu && error != kInvalidImage) {
    return FailureOf(*gpu_.api, error, "loading the code");
  }
  return LoadPtx(binary.ptx);
}

MaybeFailure LoadedModule::LoadPtx(const std::string& ptx) {
  std::string log(kMaxLogBytes, '\0');
  int options[] = {kJitErrorLog, kJitErrorLogBytes};
  // The driver takes the size as the pointer itself.
  void* values[] = {log.data(), reinterpret_cast<void*>(uintptr_t{log.size()})};
  const Result error =
      gpu_.api->ModuleLoadDataEx(&module_, ptx.c_str(), 2, options, values);
  if (error == kSuccess) return std::nullopt;
  log.erase(std::find(log.begin(), log.end(), '\0'), log.end());
  log = Utf8(log);
  const std::string what =
      absl::StrCat("the driver's compiler of PTX",
                   error == kUnsupportedPtxVersion
                       ? ", which is older than what made the code"
                       : "");
  MaybeFailure failure = FailureOf(*gpu_.api, error, what);
  if (!log.empty()) failure->set_detail(failure->detail() + ": " + log);
  return failure;
}

MaybeFailure LoadedModule::Find(const ModuleKernel& kernel,
                                Kernel* found) const {
  found->entry = kernel.entry;
  if (auto bad = ReadShape(kernel, &found->shape)) return bad;
  const Api& api = *gpu_.api;
  const Result error =
      api.ModuleGetFunction(&found->function, module_, kernel.entry.c_str());
  if (auto failed = FailureOf(api, error, "kernel " + kernel.entry)) {
    return failed;
  }
  if (auto failed = CheckLimits(*found)) return failed;
  if (kernel.shared_bytes <= gpu_.Attribute(kMaxSharedPerBlock)) {
    return std::nullopt;
  }
  return FailureOf(
      api,
      api.FuncSetAttribute(found->function, kFunctionMaxDynamicShared,
                           static_cast<int>(found->shape.shared_bytes)),
      absl::StrCat(kernel.shared_bytes, " bytes of shared memory for ",
                   kernel.entry),
      Asked::kLaunch);
}

MaybeFailure LoadedModule::CheckLimits(const Kernel& kernel) const {
  const auto fact = [&](FunctionAttribute attribute) {
    int value = 0;
    gpu_.api->FuncGetAttribute(&value, attribute, kernel.function);
    return int64_t{value};
  };
  const int64_t threads = kernel.shape.group_threads;
  const int64_t most = fact(kFunctionMaxThreads);
  if (most > 0 && threads > most) {
    return Failed(
        v1::OUTCOME_REFUSED,
        absl::StrCat("kernel ", kernel.entry, " has blocks of ", threads,
                     " threads; with its ", fact(kFunctionRegisters),
                     " registers this device runs ", most, " at most"));
  }
  const int64_t shared =
      kernel.shape.shared_bytes + fact(kFunctionStaticShared);
  const int64_t has = gpu_.Attribute(kMaxSharedPerBlockOptin);
  if (has > 0 && shared > has) {
    return Failed(v1::OUTCOME_REFUSED,
                  absl::StrCat("kernel ", kernel.entry, " needs ", shared,
                               " bytes of shared memory; a block of this "
                               "device has ",
                               has));
  }
  return std::nullopt;
}

}  // namespace regatta::cuda
