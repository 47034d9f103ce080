// regatta-build-worker-planted: the build worker, whose spaces also hold the
// schedules "planted{fault=NAME}" (planted/NAME.c; planted_device.cc).
// read_file takes the file: "planted{fault=read_file,path=P}".
#include <signal.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "device_agent/build/build_server.h"
#include "device_agent/build/compiler_module_source.h"
#include "tests/device_agent/planted_code.h"
#include "tests/device_agent/planted_device.h"

namespace regatta {
namespace {

class PlantingModuleSource : public ModuleSource {
 public:
  explicit PlantingModuleSource(CompilerModuleSource* compiler)
      : compiler_(compiler) {}

  absl::StatusOr<v1::Description> Describe(
      const v1::DescribeRequest& request) override {
    if (request.has_device()) {
      v1::Description planted;
      planted.set_compiler_version("planted");
      return planted;
    }
    return compiler_->Describe(request);
  }
  absl::StatusOr<v1::BuilderReach> Reach() override {
    return compiler_->Reach();
  }
  absl::StatusOr<SourcedReference> BuildReference(
      const v1::ReferenceRequest& request) override {
    return compiler_->BuildReference(request);
  }
  absl::StatusOr<SourcedModule> Build(
      const v1::ModuleRequest& request) override {
    const bool used = used_;
    used_ = true;
    absl::string_view fault = request.schedule().text();
    if (!absl::ConsumePrefix(&fault, "planted{fault=") ||
        !absl::ConsumeSuffix(&fault, "}")) {
      return compiler_->Build(request);
    }
    if (!absl::StartsWith(request.target(), "cpu")) {
      return PlantForDevice(request, {fault.data(), fault.size()});
    }
    if (fault == "crash_compiler") std::abort();
    if (fault == "kill_compiler") kill(getpid(), SIGKILL);
    if (fault == "crash_used_compiler") {
      if (used) std::abort();
      fault = "honest";
    }
    for (volatile int i = 0; fault == "hang_compiler"; i = i + 1) {
    }
    const std::vector<std::string> words =
        absl::StrSplit(fault, absl::MaxSplits(",path=", 1));
    auto code = PlantedCode(words[0]);
    if (!code.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("nothing planted: ", fault));
    }
    if (words.size() == 2) RETURN_IF_ERROR(PutPath(words[1], &*code));
    // The module that the default schedule gives, with other code in it.
    ASSIGN_OR_RETURN(const CompilerModuleSource::Subject* subject,
                     compiler_->SubjectOf(request));
    v1::ModuleRequest honest = request;
    honest.mutable_schedule()->set_text(
        subject->space.Print(subject->space.Default()));
    ASSIGN_OR_RETURN(SourcedModule sourced, compiler_->Build(honest));
    sourced.module.schedule = request.schedule().text();
    sourced.module.loadable = *std::move(code);
    return sourced;
  }

 private:
  // Into the code of planted/read_file.c.
  static absl::Status PutPath(const std::string& path, std::string* code) {
    static constexpr char kPlace[] = "the path goes here";
    constexpr size_t kRoom = 512;
    const size_t at = code->find(kPlace);
    if (at == std::string::npos || path.size() >= kRoom) {
      return absl::InvalidArgumentError("no room for a path");
    }
    code->replace(at, path.size() + 1, path.c_str(), path.size() + 1);
    return absl::OkStatus();
  }
  static absl::StatusOr<SourcedModule> PlantForDevice(
      const v1::ModuleRequest& request, std::string_view name) {
    SourcedModule sourced;
    auto module = PlantedDeviceModule(name, request.target());
    if (!module.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("nothing planted: ", std::string(name)));
    }
    sourced.module = *std::move(module);
    sourced.module.workload = request.workload();
    sourced.flops = 1000;
    sourced.all_f32 = true;
    return sourced;
  }

  CompilerModuleSource* const compiler_;
  bool used_ = false;  // a module was asked for before
};

}  // namespace
}  // namespace regatta

int main() {
  regatta::SetLogProgram("regatta-build-worker-planted");
  regatta::FrameChannel agent{regatta::UniqueFd(3)};
  regatta::CompilerModuleSource compiler(regatta::RealClock());
  regatta::PlantingModuleSource source(&compiler);
  const absl::Status status =
      regatta::ServeBuilds(agent, source, regatta::RealClock());
  return status.ok() ? 0 : 1;
}
